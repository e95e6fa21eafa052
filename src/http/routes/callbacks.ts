import { Router } from '@koa/router'
import type { Logger } from 'pino'
import { createBatcher } from '../../db/batcher/index.ts'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import type { Callback, EmailProvider } from '../../providers/email.ts'
import { structureProblem } from '../../schemas/json.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { summarise } from '../../telemetry/summary.ts'
import type { Bodies } from '../body/index.ts'
import { MB } from '../limits.ts'
import { timeLimitOf } from '../time-limit.ts'

type CallbackOptions = {
  call: Call
  log: Logger
  emailProvider: EmailProvider
  readBody: Bodies['read']
  metrics: Pick<Metrics, 'receipt'>
}

/** A callback has a few KB. */
const LIMIT_BYTES = MB
const MAX_VALUES = 10_000

/** More callbacks in one commit save nothing, and it takes longer. */
const MAX_IN_ONE_COMMIT = 100

/** Anyone can send callbacks, so refusals of one reason are one log line a minute, with their number. */
const REFUSALS_EVERY_MS = 60_000

/**
 * POST /providers/<name>/events: callbacks of the email provider. Responds 200 to a callback that is recorded or
 * was recorded before, and 406, after which Mailgun does not retry, to one that can never be valid. The provider
 * retries after any other status, such as 500 while the database is unavailable.
 */
export function callbacksRouter(options: CallbackOptions) {
  const { call, log, emailProvider, readBody, metrics } = options
  const { name, readCallback } = emailProvider
  // A wrong signing key shows only in this warning.
  const refusals = summarise<string>(
    (reason, refused) => log.warn({ reason, refused }, 'email provider callbacks refused'),
    REFUSALS_EVERY_MS,
  )
  const record = createBatcher<Callback, string>(
    async (callbacks) => {
      const received = await call('receive_callbacks', {
        callbacks: callbacks.map(({ token, signedAt, receipt }, n) => ({
          n,
          token,
          signed_at: signedAt,
          receipt,
        })),
      })
      // `stored` has the new receipts alone: a poll or another callback may have brought a receipt before.
      for (const type of received.flatMap(({ stored }) => stored)) metrics.receipt('email', type)
      return received.flatMap(({ outcomes }) => outcomes)
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )

  const router = new Router()
  if (readCallback) {
    router.post(`/providers/${name}/events`, async (ctx) => {
      const body = await readBody(ctx, LIMIT_BYTES).catch(unreadable)
      const text = body?.toString() ?? ''
      const isPlain = structureProblem(text, MAX_VALUES) === null
      const callback = isPlain ? readCallback(text) : undefined
      const outcome = callback
        ? await timeLimitOf(ctx).wait((signal) => record(callback, signal))
        : 'unreadable'
      const isRefused = outcome !== 'recorded' && outcome !== 'repeated'
      if (isRefused) refusals.note(outcome, outcome)
      ctx.status = isRefused ? 406 : 200
      ctx.body = { status: outcome }
    })
  }
  return {
    router,
    idle: record.idle,
    /** Logs refusals that are not logged yet. */
    flush: refusals.flush,
  }
}

/** Returns no body if the body can never be read; throws the error if a retry may succeed. */
function unreadable(error: unknown): undefined {
  const isFinal = error instanceof Refusal && error.code !== 'rate_limited' && error.status !== 408
  if (!isFinal) throw error
}
