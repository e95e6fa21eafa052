import type { Logger } from 'pino'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'
import type { ClockSettings } from '../db/client.ts'
import type { Resolver } from '../domains/resolver.ts'
import type { HttpLimits } from '../http/limits.ts'
import type { EmailProvider } from '../providers/email.ts'
import type { SmsListener, SmsProvider } from '../providers/sms.ts'

export const ROLES = ['api', 'worker', 'clock'] as const
export type Role = (typeof ROLES)[number]

export type ServiceOptions = {
  url: string
  roles: readonly Role[]
  host: string
  port: number
  /** null: made from host and the port that the API has, or would have. */
  publicUrl: string | null
  /** Called once in each process. */
  createEmailProvider(call: Call): EmailProvider
  /** Called where the worker runs, which also receives from the network. */
  createSmsProvider(call: Call, listener: SmsListener, log: Logger): SmsProvider
  /** Whether messages to sandbox addresses alone go to the sandbox, beside a real provider. */
  hasSandboxMessages: boolean
  /** The same for SMS to sandbox numbers. */
  hasSandboxSms: boolean
  secrets: Secrets
  /** Public DNS. */
  resolver: Resolver
  /** Resolvers of webhook endpoints' names, `host[:port]`; empty: the system's. */
  dnsServers: readonly string[]
  /** Whether webhook endpoints may have http and private addresses. */
  webhookAllowPrivate: boolean
  /** The time limit of an attempt to deliver to an endpoint; 10 s when absent. */
  webhookTimeoutMs?: number
  /** Limits of the API's requests and connections that differ from the defaults. */
  httpLimits?: Partial<HttpLimits>
  dkimZone: string
  mailFromLabel: string
  systemFrom: string
  workerConcurrency: number
  smsConcurrency: number
  /** The port of /metrics; 0: any free port, null: none. */
  metricsPort: number | null
  clock: ClockSettings
  log: Logger
  /** Called when the database has not responded for 60 s: this process can do nothing any more. */
  onSilence?(): void
}
