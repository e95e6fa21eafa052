import type { Logger } from 'pino'
import checkDomain from '../../tasks/check_domain.ts'
import deliverWebhook from '../../tasks/deliver_webhook.ts'
import notifyOwner from '../../tasks/notify_owner.ts'
import pollReceipts from '../../tasks/poll_receipts.ts'
import releaseDomain from '../../tasks/release_domain.ts'
import removeSuppression from '../../tasks/remove_suppression.ts'
import rotateDkim from '../../tasks/rotate_dkim.ts'
import sendEmail from '../../tasks/send_email.ts'
import sendSms from '../../tasks/send_sms.ts'
import type { Call } from '../db/call.ts'
import type { Registry } from '../domains/registry.ts'
import { createSigner } from '../domains/signer.ts'
import type { UnsubscribeLinks } from '../marketing/unsubscribe-link.ts'
import type { EmailProvider } from '../providers/email.ts'
import { createOutcomeLog } from '../providers/outcome-log.ts'
import { createSandbox } from '../providers/sandbox/email.ts'
import { createSmsSandbox } from '../providers/sandbox/sms.ts'
import type { SmsProvider } from '../providers/sms.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Poster } from '../webhooks/post.ts'
import { startWorkerPool, type WorkerPool } from './pool.ts'

export type WorkerOptions = {
  url: string
  role: string
  concurrency: number
  /** The same for SMS, whose networks take few at a time: those that wait must not be in the way of email. */
  smsConcurrency: number
  call: Call
  emailProvider: EmailProvider
  smsProvider: SmsProvider
  poster: Poster
  openSecret(sealed: string): Promise<string>
  registry: Registry
  links: UnsubscribeLinks
  publicUrl: string
  /** The sender of mail to owners, and the label of its return path. */
  systemFrom: string
  mailFromLabel: string
  log: Logger
  metrics: Metrics
  /** Each registers a worker pool: of email, of SMS, of webhooks, of upkeep at the provider. */
  announce: RegisterPool
  registerSms: RegisterPool
  registerWebhooks: RegisterPool
  registerUpkeep: RegisterPool
}

/**
 * A job is an endpoint's turn, and waits for that endpoint most of its time. So this is far more than
 * one process can be busy with, and nothing to be tuned: WORKER_CONCURRENCY is about hand-overs. Many,
 * because endpoints that begin to hang together, as those in one data centre may, keep their places
 * for ten seconds before that is known of them.
 */
const ENDPOINTS_AT_A_TIME = 500

/**
 * Upkeep asks the provider and DNS about domains and messages. Callers cause it, and an answer may take
 * long, so it has places of its own: it never takes one from a message.
 */
const UPKEEP_AT_A_TIME = 10

type RegisterPool = (poolId: string) => Promise<void>

/** Starts taking jobs; `stop` finishes those in hand and hands back the rest. */
export async function startWorker(options: WorkerOptions): Promise<WorkerPool> {
  const { call, emailProvider: provider, registry, links } = options
  const sandbox = createSandbox(call)
  const outcomes = createOutcomeLog(options)
  const sign = createSigner(call, registry)
  const tasks = {
    notify_owner: notifyOwner(call, { ...options, provider, sandbox, sign }),
    send_email: sendEmail(call, {
      provider,
      sandbox,
      links,
      sign,
      onOutcome: outcomes.noteEmail,
    }),
  }
  const maintenanceTasks = {
    check_domain: checkDomain(registry),
    remove_suppression: removeSuppression(call, provider),
    poll_receipts: pollReceipts(call, provider, options.metrics),
    release_domain: releaseDomain(registry),
    rotate_dkim: rotateDkim(registry),
  }
  const smsTasks = {
    send_sms: sendSms(call, {
      provider: options.smsProvider,
      sandbox: createSmsSandbox(call),
      onOutcome: outcomes.noteSms,
    }),
  }
  const stopping = new AbortController()
  const webhookTasks = {
    deliver_webhook: deliverWebhook(call, { ...options, stopping: stopping.signal }),
  }
  const pools: WorkerPool[] = []
  const stop = async () => {
    stopping.abort()
    await Promise.all(pools.map((pool) => pool.stop()))
    outcomes.flush()
  }
  try {
    pools.push(await startWorkerPool({ ...options, tasks }))
    pools.push(
      await startWorkerPool({
        ...options,
        tasks: smsTasks,
        concurrency: options.smsConcurrency,
        announce: options.registerSms,
      }),
    )
    pools.push(
      await startWorkerPool({
        ...options,
        tasks: webhookTasks,
        concurrency: ENDPOINTS_AT_A_TIME,
        announce: options.registerWebhooks,
      }),
    )
    pools.push(
      await startWorkerPool({
        ...options,
        tasks: maintenanceTasks,
        concurrency: UPKEEP_AT_A_TIME,
        maxConnections: 3,
        announce: options.registerUpkeep,
      }),
    )
    return { stop }
  } catch (error) {
    await stop()
    throw error
  }
}
