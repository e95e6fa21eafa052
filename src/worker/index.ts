import type { Logger } from 'pino'
import checkDomain from '../../tasks/check_domain.ts'
import deliverWebhook, { type DeliverWebhookOptions } from '../../tasks/deliver_webhook.ts'
import notifyOwner from '../../tasks/notify_owner.ts'
import notifyUser from '../../tasks/notify_user.ts'
import pollReceipts from '../../tasks/poll_receipts.ts'
import releaseDomain from '../../tasks/release_domain.ts'
import removeSuppression from '../../tasks/remove_suppression.ts'
import rotateDkim from '../../tasks/rotate_dkim.ts'
import sendEmail from '../../tasks/send_email.ts'
import sendSms from '../../tasks/send_sms.ts'
import type { Availability } from '../db/availability.ts'
import type { Call } from '../db/call.ts'
import type { Registry } from '../domains/registry.ts'
import { createSigner } from '../domains/signer.ts'
import type { UnsubscribeLinks } from '../marketing/unsubscribe-link.ts'
import type { EmailProvider } from '../providers/email.ts'
import { createOutcomeLog } from '../providers/outcome-log.ts'
import { createPlaces } from '../providers/places.ts'
import { createSandbox } from '../providers/sandbox/email.ts'
import { createSmsSandbox } from '../providers/sandbox/sms.ts'
import type { SmsProvider } from '../providers/sms.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Poster } from '../webhooks/post.ts'
import { startWorkerPool, type WorkerPool } from './pool.ts'

export type WorkerOptions = {
  url: string
  /** Emails in progress at a time. */
  workerConcurrency: number
  /** SMS in progress at a time. Networks take few at once, and waiting SMS must not delay email. */
  smsConcurrency: number
  call: Call
  emailProvider: EmailProvider
  smsProvider: SmsProvider
  poster: Poster
  openSecret: DeliverWebhookOptions['openSecret']
  sealSecrets: DeliverWebhookOptions['sealSecrets']
  registry: Registry
  links: UnsubscribeLinks
  publicUrl: string
  /** The sender of mail to owners, and the label of its return path. */
  systemFrom: string
  mailFromLabel: string
  log: Logger
  metrics: Metrics
  /** Registers the worker pool of email. */
  register: RegisterPool
  /** Returns a function that registers another worker pool. */
  registerAs(names: readonly string[]): RegisterPool
  /** Receives functions that drop connections after the database was silent. */
  onSilenceEnd: Availability['onSilenceEnd']
}

type RegisterPool = (poolId: string, tasks: string[]) => Promise<void>

/**
 * A webhook job holds the lease of one endpoint and waits for it most of the time. The limit is far above
 * what one process can be busy with, so it is not a setting; WORKER_CONCURRENCY is about messages. It is
 * high because endpoints that hang at the same time, for example all in one data centre, each keep their
 * slot for ten seconds before that is noticed.
 */
const WEBHOOK_CONCURRENCY = 500

/**
 * Maintenance asks the provider and DNS about domains and messages. Callers cause it, and it can be slow,
 * so it has its own pool: it never takes the slot of a message.
 */
const MAINTENANCE_CONCURRENCY = 10
const MAINTENANCE_CONNECTIONS = 3

/** After this time a stop waits for no more results to be recorded. A role has 10.5 s to stop. */
const RECORDS_STOP_AFTER_MS = 9000

/** Starts taking jobs. `stop` finishes the jobs in progress and returns the rest. */
export async function startWorker(options: WorkerOptions): Promise<WorkerPool> {
  const { url, call, emailProvider, smsProvider, registry, links, log, metrics, registerAs } =
    options
  const { onSilenceEnd } = options
  const outcomes = createOutcomeLog({ log, metrics })
  const stopping = new AbortController()
  const ending = new AbortController()
  const limitsOf = (concurrency: number) => ({
    places: createPlaces(concurrency, stopping.signal),
    ending: ending.signal,
  })
  const emailLimits = limitsOf(options.workerConcurrency)
  const smsLimits = limitsOf(options.smsConcurrency)
  const email = {
    provider: emailProvider,
    sandbox: createSandbox(call),
    sign: createSigner(call, registry),
  }

  const sendEmails = sendEmail(call, {
    ...email,
    ...emailLimits,
    links,
    onOutcome: outcomes.noteEmail,
  })
  const sendSmsMessages = sendSms(call, {
    ...smsLimits,
    provider: smsProvider,
    sandbox: createSmsSandbox(call),
    onOutcome: outcomes.noteSms,
  })
  const deliver = deliverWebhook(call, { ...options, stopping: stopping.signal })

  const pools = [
    {
      tasks: {
        notify_owner: notifyOwner(call, { ...options, ...email }),
        notify_user: notifyUser(call, { ...options, ...email }),
        send_email: sendEmails,
        send_emails: sendEmails,
      },
      concurrency: options.workerConcurrency,
      places: emailLimits.places,
      register: options.register,
    },
    {
      tasks: { send_sms: sendSmsMessages, send_sms_messages: sendSmsMessages },
      concurrency: options.smsConcurrency,
      places: smsLimits.places,
      register: registerAs(['sms']),
    },
    {
      tasks: { deliver_webhook: deliver, deliver_webhooks: deliver },
      concurrency: WEBHOOK_CONCURRENCY,
      register: registerAs(['webhooks']),
    },
    {
      tasks: {
        check_domain: checkDomain(registry),
        remove_suppression: removeSuppression(call, emailProvider),
        poll_receipts: pollReceipts(call, emailProvider, metrics),
        release_domain: releaseDomain(registry),
        rotate_dkim: rotateDkim(registry),
      },
      concurrency: MAINTENANCE_CONCURRENCY,
      maxConnections: MAINTENANCE_CONNECTIONS,
      register: registerAs(['upkeep']),
    },
  ]
  const started: WorkerPool[] = []
  const stop = async () => {
    stopping.abort()
    const timer = setTimeout(() => ending.abort(), RECORDS_STOP_AFTER_MS)
    await Promise.all(started.map((pool) => pool.stop()))
    clearTimeout(timer)
    outcomes.flush()
  }
  try {
    for (const pool of pools)
      started.push(await startWorkerPool({ url, log, metrics, onSilenceEnd, ...pool }))
    return { stop }
  } catch (error) {
    await stop()
    throw error
  }
}
