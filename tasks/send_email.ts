import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { EmailToSend } from '../src/db/api.gen.ts'
import type { Call } from '../src/db/call.ts'
import { coalesce } from '../src/db/coalesce.ts'
import { handOverCopies, type Outcome } from '../src/marketing/hand-over-copies.ts'
import type { UnsubscribeLinks } from '../src/marketing/link.ts'
import type { EmailProvider } from '../src/providers/email.ts'
import { handOver } from '../src/providers/hand-over.ts'

const payloadSchema = v.object({ id: v.pipe(v.string(), v.uuid()) })

/** As many as one commit should carry; more only makes the first of them wait. */
const MAX_IN_ONE_COMMIT = 500

/** Providers have shorter limits of their own; what never answers must not keep its place for good. */
const ANSWERS_WITHIN_MS = 120_000

export type SendEmailOptions = {
  provider: EmailProvider
  /** Takes rehearsals, whatever the provider. */
  sandbox: EmailProvider
  links: UnsubscribeLinks
  answersWithinMs?: number
}

/**
 * Hands one email to the provider, as one or as several copies. Start and finish are shared with the
 * other emails that are in hand at the moment: the hand-over is committed as begun before the
 * provider is called, so that after a crash the provider is asked before it is called again
 * (promise 4).
 */
export default function sendEmail(
  call: Call,
  { provider, sandbox, links, answersWithinMs: withinMs = ANSWERS_WITHIN_MS }: SendEmailOptions,
): Task {
  const start = coalesce<string, EmailToSend | undefined>(
    async (ids) => {
      const started = await call('start_emails', { ids })
      const byId = new Map(started.map((email) => [email.id, email]))
      return ids.map((id) => byId.get(id))
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const finish = coalesce<Outcome & { id: string; job: string; provider: string }, null>(
    async (results) => {
      await call('finish_messages', { results: JSON.stringify(results) })
      return results.map(() => null)
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )

  // A message can come again while it is in hand: with its own job, when the worker was begun anew, or
  // with a second one, when it was held and released meanwhile. That must not take the hand-over under
  // way for one that was cut off, nor end a job that may be all there is if this hand-over fails.
  const inHand = new Map<string, Promise<void>>()

  return async (payload, { abortSignal: signal, job }) => {
    const { id } = v.parse(payloadSchema, payload)
    while (inHand.has(id)) await inHand.get(id)
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    inHand.set(id, ended)
    try {
      const email = await start(id)
      if (!email) return
      const taker = email.isRehearsal ? sandbox : provider
      const outcome = await handOverCopies(email, links, (copy) =>
        handOver(taker, copy, { signal, withinMs }),
      )
      await finish({ id, job: job.id, provider: taker.name, ...outcome })
    } finally {
      inHand.delete(id)
      end()
    }
  }
}
