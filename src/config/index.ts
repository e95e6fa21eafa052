import * as v from 'valibot'
import type { ClockSettings } from '../db/client.ts'
import { SetupError } from '../errors.ts'
import {
  clockSettings,
  countryCode,
  credential,
  databaseUrl,
  databaseUrlOrEmbedded,
  dnsServers,
  domainName,
  EMBEDDED,
  folder,
  hostLabel,
  integer,
  listenAddress,
  mailbox,
  publicUrl,
  secretKeys,
  smppUrl,
  smtpUrl,
  unversionedUrl,
  word,
} from './values.ts'

export type Config = {
  /** The address of the service's login; null when it is not set, or the database is the embedded one. */
  databaseUrl: string | null
  /** The address of the owner, for commands that need one; null: that of the service's login. */
  migrateDatabaseUrl: string | null
  /** Whether the embedded database is used. */
  isEmbedded: boolean
  /** Why the embedded database may not be used; null when it may. */
  embeddedProblem: string | null
  dataFolder: string
  host: string
  port: number
  /** null: made from host and port once the API listens. */
  publicUrl: string | null
  /** Each base64 of 32 bytes, the one in use first; null: one is kept in the data folder. */
  secretKeys: string[] | null
  email: EmailConfig
  /** The zone that the DKIM CNAMEs of sending domains point into. */
  dkimZone: string
  /** The label of the return-path host under a sending domain. */
  mailFromLabel: string
  /** The sender of mail from the service itself to owners. */
  systemFrom: string
  /** Resolvers for domain checks, `host[:port]`; empty: the system's. */
  dnsServers: string[]
  /** Whether names under .test and .example are answered for as if all were published. */
  hasSandboxDns: boolean
  sms: SmsConfig
  /** Whether http and private addresses are fine for webhook endpoints. */
  webhookAllowPrivate: boolean
  workerConcurrency: number
  logLevel: string
  /** Where every role serves its metrics; null: nowhere. */
  metricsPort: number | null
  clock: ClockSettings
  /** NODE_ENV=production. */
  isProduction: boolean
  /** As Launch has it. */
  isRunByNpm: boolean
  /** How commands are given in this installation (cli/commands.ts). */
  commandPrefix: string | null
}

/** How this process was started. */
export type Launch = {
  /** POSTGRAM_COMMAND: the words in front of a command; null when it is not set. */
  commandWords: string | null
  /** Whether npm runs the command as its script of that name, and so is the parent of this process. */
  isRunByNpm: boolean
}

/** The email provider, with what it needs. */
export type EmailConfig =
  | { provider: 'sandbox' }
  | { provider: 'mailgun'; apiKey: string; apiBase: string; signingKey: string }
  | { provider: 'smtp'; url: string }

/** The SMS provider, with what it needs. */
export type SmsConfig =
  | { provider: 'sandbox' }
  | {
      provider: 'smpp'
      url: string
      /** NoResponse PDUs allowed. */
      window: number
      /** Messages per second. */
      rate: number
      /** The country calling code of numbers in national form; null: those are not understood. */
      countryCode: string | null
    }

const environment = v.object({
  DATABASE_URL: v.optional(databaseUrlOrEmbedded),
  MIGRATE_DATABASE_URL: v.optional(databaseUrl),
  POSTGRAM_DATA: v.optional(folder, '.postgram'),
  HOST: v.optional(listenAddress, '127.0.0.1'),
  PORT: v.optional(integer(0, 65_535), '3000'),
  PUBLIC_URL: v.optional(publicUrl),
  SECRET_KEY: v.optional(secretKeys),
  EMAIL_PROVIDER: v.optional(word('sandbox', 'mailgun', 'smtp'), 'sandbox'),
  MAILGUN_API_KEY: v.optional(credential),
  MAILGUN_API_BASE: v.optional(unversionedUrl, 'https://api.mailgun.net'),
  MAILGUN_WEBHOOK_SIGNING_KEY: v.optional(credential),
  SMTP_URL: v.optional(smtpUrl),
  DKIM_ZONE: v.optional(domainName),
  MAIL_FROM_LABEL: v.optional(hostLabel, 'mail'),
  SYSTEM_FROM: v.optional(mailbox),
  DNS_SERVERS: v.optional(dnsServers),
  SMS_PROVIDER: v.optional(word('sandbox', 'smpp'), 'sandbox'),
  SMPP_URL: v.optional(smppUrl),
  SMPP_WINDOW: v.optional(integer(1, 1000), '10'),
  SMPP_RATE: v.optional(integer(1, 10_000), '10'),
  SMPP_COUNTRY_CODE: v.optional(countryCode),
  WEBHOOK_ALLOW_PRIVATE: v.optional(word('true', 'false'), 'false'),
  WORKER_CONCURRENCY: v.optional(integer(1, 1000), '200'),
  LOG_LEVEL: v.optional(word('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info'),
  METRICS_PORT: v.optional(integer(0, 65_535)),
  NODE_ENV: v.optional(v.string()),
  POSTGRAM_NOW: v.optional(clockSettings),
})

/** None of them can be wrong. */
const launchEnvironment = v.object({
  POSTGRAM_COMMAND: v.optional(v.string()),
  /** npm sets it to the name of the script. */
  npm_lifecycle_event: v.optional(v.string()),
})

type Values = v.InferOutput<typeof environment>

/** What cannot be done without once mail leaves for the outside. */
const OUTSIDE = ['DKIM_ZONE', 'SYSTEM_FROM', 'PUBLIC_URL'] as const
const needs: Record<string, readonly (keyof Values)[]> = {
  'EMAIL_PROVIDER=mailgun': ['MAILGUN_API_KEY', 'MAILGUN_WEBHOOK_SIGNING_KEY', ...OUTSIDE],
  'EMAIL_PROVIDER=smtp': ['SMTP_URL', ...OUTSIDE],
  'SMS_PROVIDER=smpp': ['SMPP_URL'],
}

/** What is wrong with the environment, a line for each problem. */
export class ConfigError extends SetupError {}

type Environment = Record<string, string | undefined>

export type ConfigOptions = {
  /** Whether what only a running service needs is required. */
  isServing: boolean
} & Partial<Pick<Config, 'isRunByNpm' | 'commandPrefix'>>

/** Reads how `command` was started, which is known also when settings are wrong. */
export function readLaunch(env: Environment, command: string): Launch {
  const values = v.parse(launchEnvironment, withoutEmpty(env))
  return {
    commandWords: values.POSTGRAM_COMMAND ?? null,
    // Whatever a script starts inherits the variable, and may outlive the script.
    isRunByNpm: values.npm_lifecycle_event === command,
  }
}

/** Reads the settings (design section 3); throws ConfigError. */
export function readConfig(
  env: Environment,
  { isServing, isRunByNpm = false, commandPrefix = null }: ConfigOptions,
): Config {
  const given = withoutEmpty(env)
  const parsed = v.safeParse(environment, given)
  const problems = (parsed.issues ?? []).map((issue) => `${v.getDotPath(issue)}: ${issue.message}`)
  if (isServing) problems.push(...missingFrom(given))
  if (given.POSTGRAM_NOW && given.NODE_ENV === 'production') {
    problems.push('POSTGRAM_NOW: is for tests and refused when NODE_ENV=production')
  }
  if (given.DATABASE_URL === EMBEDDED && given.MIGRATE_DATABASE_URL) {
    problems.push('MIGRATE_DATABASE_URL: must not be set with DATABASE_URL=embedded')
  }
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems.join('\n'))
  const values = parsed.output
  const isProduction = values.NODE_ENV === 'production'
  const url = values.DATABASE_URL === EMBEDDED ? undefined : values.DATABASE_URL
  const resolvers = values.DNS_SERVERS ?? (values.EMAIL_PROVIDER === 'sandbox' ? ['sandbox'] : [])
  return {
    databaseUrl: url ?? null,
    migrateDatabaseUrl: values.MIGRATE_DATABASE_URL ?? null,
    isEmbedded: url === undefined && values.MIGRATE_DATABASE_URL === undefined,
    embeddedProblem: embeddedProblem(given),
    dataFolder: values.POSTGRAM_DATA,
    host: values.HOST,
    port: values.PORT,
    publicUrl: values.PUBLIC_URL ?? null,
    secretKeys: values.SECRET_KEY ?? null,
    email: emailConfig(values),
    dkimZone: values.DKIM_ZONE ?? 'dkim.postgram.test',
    mailFromLabel: values.MAIL_FROM_LABEL,
    systemFrom: values.SYSTEM_FROM ?? 'Postgram <postgram@sandbox.postgram.test>',
    dnsServers: resolvers.filter((server) => server !== 'sandbox'),
    hasSandboxDns: resolvers.includes('sandbox'),
    sms:
      values.SMS_PROVIDER === 'smpp'
        ? {
            provider: 'smpp',
            url: values.SMPP_URL ?? '',
            window: values.SMPP_WINDOW,
            rate: values.SMPP_RATE,
            countryCode: values.SMPP_COUNTRY_CODE ?? null,
          }
        : { provider: 'sandbox' },
    webhookAllowPrivate: values.WEBHOOK_ALLOW_PRIVATE === 'true',
    workerConcurrency: values.WORKER_CONCURRENCY,
    logLevel: values.LOG_LEVEL,
    metricsPort: values.METRICS_PORT ?? null,
    clock: values.POSTGRAM_NOW ?? {},
    isProduction,
    isRunByNpm,
    commandPrefix,
  }
}

/** An empty variable is how a shell or a compose file leaves one out. */
function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
}

/** What is required by what is set. */
function missingFrom(given: Record<string, unknown>): string[] {
  const missing: string[] = []
  if (given.MIGRATE_DATABASE_URL && !given.DATABASE_URL) {
    missing.push(
      "DATABASE_URL: is required with MIGRATE_DATABASE_URL; it is the service's own login",
    )
  }
  const problem = embeddedProblem(given)
  if (problem !== null) missing.push(problem)
  if (given.DATABASE_URL && given.DATABASE_URL !== EMBEDDED && !given.SECRET_KEY) {
    missing.push(
      'SECRET_KEY: is required with DATABASE_URL; make one with "openssl rand -base64 32"',
    )
  }
  for (const [choice, names] of Object.entries(needs)) {
    const [setting = '', provider] = choice.split('=')
    if (given[setting] !== provider) continue
    for (const name of names.filter((name) => given[name] === undefined)) {
      missing.push(`${name}: is required with ${choice}`)
    }
  }
  return missing
}

/** In production the embedded database is used only when that is asked for. */
function embeddedProblem(given: Record<string, unknown>): string | null {
  if (given.NODE_ENV !== 'production' || given.DATABASE_URL || given.MIGRATE_DATABASE_URL) {
    return null
  }
  return 'DATABASE_URL: is required with NODE_ENV=production; DATABASE_URL=embedded keeps a Postgres in POSTGRAM_DATA'
}

function emailConfig(values: Values): EmailConfig {
  switch (values.EMAIL_PROVIDER) {
    case 'sandbox':
      return { provider: 'sandbox' }
    case 'mailgun':
      return {
        provider: 'mailgun',
        apiKey: values.MAILGUN_API_KEY ?? '',
        apiBase: values.MAILGUN_API_BASE,
        signingKey: values.MAILGUN_WEBHOOK_SIGNING_KEY ?? '',
      }
    case 'smtp':
      return { provider: 'smtp', url: values.SMTP_URL ?? '' }
  }
}
