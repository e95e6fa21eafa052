import type { Logger } from 'pino'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'
import type { Registry } from '../domains/registry.ts'
import { SetupError } from '../errors.ts'
import { createUnsubscribeLinks } from '../marketing/unsubscribe-link.ts'
import type { EmailProvider } from '../providers/email.ts'
import { reportSandbox } from '../providers/sandbox/network.ts'
import { createSmsListener } from '../providers/sms-listener.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { countedPoster } from '../webhooks/counted-poster.ts'
import { createPoster } from '../webhooks/post.ts'
import { createSealer, openSecret } from '../webhooks/secrets.ts'
import { startWorker, type WorkerOptions } from '../worker/index.ts'
import type { ServiceOptions } from './options.ts'
import type { Shutdown } from './shutdown.ts'

type WorkerRoleParts = {
  settings: ServiceOptions
  shutdown: Shutdown
  call: Call
  metrics: Metrics
  /** Logs errors that an outage of the database explains at level debug. */
  log: Logger
  emailProvider: EmailProvider
  registry: Registry
  /** The address in unsubscribe links. */
  publicUrl: string
} & Pick<WorkerOptions, 'register' | 'registerAs' | 'onSilenceEnd'>

/** Starts what attempts messages and delivers webhook events. */
export async function startWorkerRole(parts: WorkerRoleParts): Promise<void> {
  const { settings, shutdown, call, metrics, log, publicUrl } = parts
  const { secrets, dnsServers, webhookAllowPrivate, webhookTimeoutMs } = settings

  shutdown.addRole(reportSandbox(call, log))

  const poster = countedPoster(
    createPoster({
      dnsServers,
      allowsPrivate: webhookAllowPrivate,
      ...(webhookTimeoutMs && { timeoutMs: webhookTimeoutMs }),
    }),
    { metrics, log: settings.log },
  )
  shutdown.addResource({ stop: () => poster.close() })

  const listener = createSmsListener(call, { metrics, log: settings.log })
  const smsProvider = settings.createSmsProvider(call, listener, settings.log)
  // Stops beside the worker, not after it: SMS that wait for the limiter end as not sent. If they waited until
  // the worker's time limit, their outcome would be unknown.
  shutdown.addRole({ stop: () => smsProvider.close().finally(listener.flush) })

  const worker = await startWorker({
    ...settings,
    ...parts,
    smsProvider,
    poster,
    openSecret: (sealed) => openSecret(secrets, sealed),
    sealSecrets: createSealer(call, secrets),
    links: createUnsubscribeLinks({ secrets, publicUrl }),
  })
  shutdown.addRole(worker)
}

/**
 * Throws SetupError if SECRET_KEY opens nothing that sending needs: a worker would then defer all mail through a
 * relay and sign no webhook. The doctor reports a key that opens only a part.
 */
export async function checkSecretKey(call: Call, secrets: Secrets): Promise<void> {
  const sealed = await call('sealed_in_use', {})
  if (sealed.length === 0 || sealed.some((text) => secrets.keyOf(text) !== null)) return
  throw new SetupError(
    'SECRET_KEY: it opens no secret in this database; set the key that sealed them, see /docs/deployment#secret-key',
  )
}
