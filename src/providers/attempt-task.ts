import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import { createBatcher } from '../db/batcher/index.ts'
import type { Call } from '../db/call.ts'
import type { TimeLimit } from './attempt.ts'
import type { SendResult } from './email.ts'

const payloadSchema = v.object({ id: v.pipe(v.string(), v.uuid()) })

/** As many as one commit should carry; more only makes the first of them wait. */
const MAX_IN_ONE_COMMIT = 500

/** Providers have shorter limits of their own; what never answers must not keep its place for good. */
const ANSWERS_WITHIN_MS = 120_000

/** What came of an attempt, and which provider was asked. */
export type Result = SendResult & { provider: string }

/** Called for each message that was handed over, with its UUID and the result. */
export type OnOutcome = (id: string, result: Result) => void

export type AttemptOptions<Message extends { id: string }> = {
  /** Begins the attempts at those of these messages that still wait, as api.start_emails does. */
  start(ids: string[]): Promise<Message[]>
  /** A message that was begun is no longer in hand. */
  end?(message: Message): void
  /** Hands one message over: who took it, and what came of it, as api.finish_messages takes both. */
  attemptSend(message: Message, patience: TimeLimit): Promise<Result>
  answersWithinMs?: number | undefined
  onOutcome?: OnOutcome | undefined
}

/**
 * A task that hands one message to a provider. Start and finish are shared with the other messages
 * that are in hand at the moment: the hand-over is committed as begun before the provider is called,
 * so that after a crash it is known that it may have been (promise 4).
 */
export function attemptTask<Message extends { id: string }>(
  call: Call,
  options: AttemptOptions<Message>,
): Task {
  const { attemptSend, answersWithinMs: withinMs = ANSWERS_WITHIN_MS } = options
  const start = createBatcher<string, Message | undefined>(
    async (ids) => {
      const begun = await options.start(ids)
      const byId = new Map(begun.map((message) => [message.id, message]))
      return ids.map((id) => byId.get(id))
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const finish = createBatcher<Result & { id: string; job: string }, null>(
    async (results) => {
      await call('finish_messages', { results: results })
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
      const message = await start(id)
      if (!message) return
      const result = await attemptSend(message, { signal, withinMs }).finally(() =>
        options.end?.(message),
      )
      options.onOutcome?.(id, result)
      await finish({ id, job: job.id, ...result })
    } finally {
      inHand.delete(id)
      end()
    }
  }
}
