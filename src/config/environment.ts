import * as v from 'valibot'
import { integer } from '../text/values.ts'
import { providerVariables, requiredByProvider } from './providers.ts'
import {
  clockSettings,
  databaseUrl,
  databaseUrlOrEmbedded,
  dnsServers,
  domainName,
  EMBEDDED,
  hostLabel,
  listenAddress,
  mailbox,
  publicUrl,
  secretKeys,
  word,
} from './values.ts'

/** The environment of a process: variables by name. */
export type Environment = Record<string, string | undefined>

/** Every setting: its environment variable, what it may be, and its default. */
export const environment = v.object({
  DATABASE_URL: v.optional(databaseUrlOrEmbedded),
  MIGRATE_DATABASE_URL: v.optional(databaseUrl),
  POSTGRAM_DATA: v.optional(v.string(), '.postgram'),
  HOST: v.optional(listenAddress, '127.0.0.1'),
  PORT: v.optional(integer(0, 65_535), '3000'),
  PUBLIC_URL: v.optional(publicUrl),
  SECRET_KEY: v.optional(secretKeys),
  ...providerVariables.entries,
  DKIM_ZONE: v.optional(domainName),
  MAIL_FROM_LABEL: v.optional(hostLabel, 'mail'),
  SYSTEM_FROM: v.optional(mailbox),
  DNS_SERVERS: v.optional(dnsServers),
  WEBHOOK_ALLOW_PRIVATE: v.optional(word('true', 'false'), 'false'),
  WORKER_CONCURRENCY: v.optional(integer(1, 1000), '200'),
  LOG_LEVEL: v.optional(word('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info'),
  METRICS_PORT: v.optional(integer(0, 65_535)),
  NODE_ENV: v.optional(v.string()),
  POSTGRAM_NOW: v.optional(clockSettings),
})

/** Returns the environment without empty variables: in a shell or a compose file, empty means not set. */
export function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
}

/** Returns a line for each variable that must not be set together with another one. */
export function conflicts(given: Environment): string[] {
  const problems: string[] = []
  if (given.POSTGRAM_NOW && given.NODE_ENV === 'production') {
    problems.push('POSTGRAM_NOW: is for tests and refused when NODE_ENV=production')
  }
  if (given.DATABASE_URL === EMBEDDED && given.MIGRATE_DATABASE_URL) {
    problems.push('MIGRATE_DATABASE_URL: must not be set with DATABASE_URL=embedded')
  }
  return problems
}

/** Returns a line for each variable that a running service requires, and that is not set. */
export function missingVariables(given: Environment): string[] {
  const missing: string[] = []
  if (given.MIGRATE_DATABASE_URL && !given.DATABASE_URL) {
    missing.push(
      'DATABASE_URL: is required with MIGRATE_DATABASE_URL; set it to the login of the service',
    )
  }
  const problem = embeddedProblem(given)
  if (problem !== null) missing.push(problem)
  if (given.DATABASE_URL && given.DATABASE_URL !== EMBEDDED && !given.SECRET_KEY) {
    missing.push(
      'SECRET_KEY: is required with DATABASE_URL; make one with "openssl rand -base64 32"',
    )
  }
  for (const [choice, names] of Object.entries(requiredByProvider)) {
    const [setting = '', provider] = choice.split('=')
    if (given[setting] !== provider) continue
    for (const name of names.filter((name) => given[name] === undefined)) {
      missing.push(`${name}: is required with ${choice}`)
    }
  }
  return missing
}

/** Says why the embedded database may not be used; null when it may. In production it must be asked for. */
export function embeddedProblem(given: Environment): string | null {
  if (given.NODE_ENV !== 'production' || given.DATABASE_URL || given.MIGRATE_DATABASE_URL) {
    return null
  }
  return 'DATABASE_URL: is required with NODE_ENV=production; DATABASE_URL=embedded runs a Postgres with its data in POSTGRAM_DATA'
}
