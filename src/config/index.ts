import * as v from 'valibot'
import { SetupError } from '../errors.ts'
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

type ConfigOptions = {
  /** Whether the variables that only a running service needs are required. */
  isServing: boolean
  /** As in Launch. */
  isRunByNpm?: boolean
  /** The words in front of a command in this installation (cli/commands.ts); null: npm runs the commands. */
  commandPrefix?: string | null
}

export type Config = ReturnType<typeof readConfig>

/** Returns the settings of the environment. Throws SetupError with a line for each problem. */
export function readConfig(
  env: Environment,
  { isServing, isRunByNpm = false, commandPrefix = null }: ConfigOptions,
) {
  const given = withoutEmpty(env)
  const parsed = v.safeParse(environment, given)
  const problems = [
    ...(parsed.issues ?? []).map((issue) => `${v.getDotPath(issue)}: ${issue.message}`),
    ...(isServing ? missingVariables(given) : []),
    ...conflicts(given),
  ]
  if (!parsed.success || problems.length > 0) throw new SetupError(problems.join('\n'))
  const values = parsed.output
  const url = values.DATABASE_URL === EMBEDDED ? null : (values.DATABASE_URL ?? null)
  const ownerUrl = values.MIGRATE_DATABASE_URL ?? null
  const resolvers = values.DNS_SERVERS ?? (values.EMAIL_PROVIDER === 'sandbox' ? ['sandbox'] : [])
  return {
    /** The address of the service's login; null when it is not set, or the database is the embedded one. */
    databaseUrl: url,
    /** The address of the owner, for commands that need one; null: that of the service's login. */
    migrateDatabaseUrl: ownerUrl,
    /** Whether the embedded database is used. */
    isEmbedded: url === null && ownerUrl === null,
    /** Why the embedded database may not be used; null when it may. */
    embeddedProblem: embeddedProblem(given),
    dataFolder: values.POSTGRAM_DATA,
    host: values.HOST,
    /** 0: any free port. */
    port: values.PORT,
    /** null: made from host and port once the API listens. */
    publicUrl: values.PUBLIC_URL ?? null,
    /** Each base64 of 32 bytes, the one in use first; null: the data folder has one. */
    secretKeys: values.SECRET_KEY ?? null,
    email: emailSettings(values),
    sms: smsSettings(values),
    /** The zone that the DKIM CNAMEs of sending domains point into. */
    dkimZone: values.DKIM_ZONE ?? 'dkim.postgram.test',
    /** The label of the MAIL FROM host under a sending domain. */
    mailFromLabel: values.MAIL_FROM_LABEL,
    /** The sender of mail from the service itself to owners. */
    systemFrom: values.SYSTEM_FROM ?? 'Postgram <postgram@sandbox.postgram.test>',
    /** Resolvers for domain checks, `host[:port]`; empty: the system's. */
    dnsServers: resolvers.filter((server) => server !== 'sandbox'),
    /** Whether all records of names under .test and .example count as published. */
    hasSandboxDns: resolvers.includes('sandbox'),
    /** Whether webhook endpoints may have http and private addresses. */
    webhookAllowPrivate: values.WEBHOOK_ALLOW_PRIVATE === 'true',
    workerConcurrency: values.WORKER_CONCURRENCY,
    logLevel: values.LOG_LEVEL,
    /** The port of /metrics in every role; 0: any free port, null: none. */
    metricsPort: values.METRICS_PORT ?? null,
    clock: values.POSTGRAM_NOW ?? {},
    isProduction: values.NODE_ENV === 'production',
    isRunByNpm,
    commandPrefix,
  }
}
