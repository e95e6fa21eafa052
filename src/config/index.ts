import * as v from 'valibot'
import type { ClockSettings } from '../db/client.ts'
import { SetupError } from '../errors.ts'
import type { EmailSettings, SmsSettings } from '../providers/index.ts'
import {
  conflicts,
  type Environment,
  embeddedProblem,
  environment,
  missingVariables,
  withoutEmpty,
} from './environment.ts'
import { emailSettings, smsSettings } from './providers.ts'
import { EMBEDDED } from './values.ts'

export { type Launch, readLaunch } from './launch.ts'

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
  /** 0: any free port. */
  port: number
  /** null: made from host and port once the API listens. */
  publicUrl: string | null
  /** Each base64 of 32 bytes, the one in use first; null: the data folder has one. */
  secretKeys: string[] | null
  email: EmailSettings
  sms: SmsSettings
  /** The zone that the DKIM CNAMEs of sending domains point into. */
  dkimZone: string
  /** The label of the MAIL FROM host under a sending domain. */
  mailFromLabel: string
  /** The sender of mail from the service itself to owners. */
  systemFrom: string
  /** Resolvers for domain checks, `host[:port]`; empty: the system's. */
  dnsServers: string[]
  /** Whether all records of names under .test and .example count as published. */
  hasSandboxDns: boolean
  /** Whether webhook endpoints may have http and private addresses. */
  webhookAllowPrivate: boolean
  workerConcurrency: number
  logLevel: string
  /** The port of /metrics in every role; 0: any free port, null: none. */
  metricsPort: number | null
  clock: ClockSettings
  /** NODE_ENV=production. */
  isProduction: boolean
  /** As in Launch. */
  isRunByNpm: boolean
  /** The words in front of a command in this installation (cli/commands.ts); null: npm runs the commands. */
  commandPrefix: string | null
}

/** The environment is invalid: the message has a line for each problem. */
export class ConfigError extends SetupError {}

export type ConfigOptions = {
  /** Whether the variables that only a running service needs are required. */
  isServing: boolean
} & Partial<Pick<Config, 'isRunByNpm' | 'commandPrefix'>>

/** Returns the settings of the environment. Throws ConfigError. */
export function readConfig(
  env: Environment,
  { isServing, isRunByNpm = false, commandPrefix = null }: ConfigOptions,
): Config {
  const given = withoutEmpty(env)
  const parsed = v.safeParse(environment, given)
  const problems = [
    ...(parsed.issues ?? []).map((issue) => `${v.getDotPath(issue)}: ${issue.message}`),
    ...(isServing ? missingVariables(given) : []),
    ...conflicts(given),
  ]
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems.join('\n'))
  const values = parsed.output
  const url = values.DATABASE_URL === EMBEDDED ? null : (values.DATABASE_URL ?? null)
  const ownerUrl = values.MIGRATE_DATABASE_URL ?? null
  const resolvers = values.DNS_SERVERS ?? (values.EMAIL_PROVIDER === 'sandbox' ? ['sandbox'] : [])
  return {
    databaseUrl: url,
    migrateDatabaseUrl: ownerUrl,
    isEmbedded: url === null && ownerUrl === null,
    embeddedProblem: embeddedProblem(given),
    dataFolder: values.POSTGRAM_DATA,
    host: values.HOST,
    port: values.PORT,
    publicUrl: values.PUBLIC_URL ?? null,
    secretKeys: values.SECRET_KEY ?? null,
    email: emailSettings(values),
    sms: smsSettings(values),
    dkimZone: values.DKIM_ZONE ?? 'dkim.postgram.test',
    mailFromLabel: values.MAIL_FROM_LABEL,
    systemFrom: values.SYSTEM_FROM ?? 'Postgram <postgram@sandbox.postgram.test>',
    dnsServers: resolvers.filter((server) => server !== 'sandbox'),
    hasSandboxDns: resolvers.includes('sandbox'),
    webhookAllowPrivate: values.WEBHOOK_ALLOW_PRIVATE === 'true',
    workerConcurrency: values.WORKER_CONCURRENCY,
    logLevel: values.LOG_LEVEL,
    metricsPort: values.METRICS_PORT ?? null,
    clock: values.POSTGRAM_NOW ?? {},
    isProduction: values.NODE_ENV === 'production',
    isRunByNpm,
    commandPrefix,
  }
}
