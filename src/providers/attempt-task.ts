import { setTimeout as pause } from 'node:timers/promises'
import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import { createBatcher, createRecorder, MAX_IN_ONE_COMMIT } from '../db/batcher/index.ts'
import type { Call } from '../db/call.ts'
import { isTransient } from '../db/repeated-call.ts'
import type { AttemptResult, TimeLimit } from './attempt.ts'

const payloadSchema = v.object({ id: v.pipe(v.string(), v.uuid()) })

/** Providers have shorter limits. This one frees the slot when a provider never responds. */
const ATTEMPT_TIMEOUT_MS = 120_000

const RECORD_AGAIN_AFTER_MS = 500

/** The result of an attempt, with the name of the provider. */
export type NamedResult = AttemptResult & { provider: string }

/** Called after each attempt with the message's UUID and the result. */
export type OnOutcome = (id: string, result: NamedResult) => void

export type AttemptOptions<Message extends { id: string }> = {
  /** Commits the start of an attempt at each message that still waits, and returns those messages. */
  start(ids: string[]): Promise<Message[]>
  /** Called when the attempt at a message is over. */
  end?(message: Message): void
  /** Sends one message to its provider. */
  attempt(message: Message, timeLimit: TimeLimit): Promise<NamedResult>
  responseTimeoutMs?: number | undefined
  onOutcome?: OnOutcome | undefined
}

/**
 * Creates a task that attempts one message. Messages in progress share the transactions that start and
 * finish their attempts. The start is committed before the provider is called, so that after a crash
 * the next attempt knows that the provider may have the message (ARCHITECTURE.md#promise-4).
 */
export function attemptTask<Message extends { id: string }>(
  call: Call,
  options: AttemptOptions<Message>,
): Task {
  const { responseTimeoutMs: timeoutMs = ATTEMPT_TIMEOUT_MS } = options
  const start = createBatcher<string, Message | undefined>(
    async (ids) => {
      const started = await options.start(ids)
      const byId = new Map(started.map((message) => [message.id, message]))
      return ids.map((id) => byId.get(id))
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const finish = createRecorder<NamedResult & { id: string; job: string }>((results) =>
    call('finish_messages', { results }),
  )

  /**
   * Records a result. If the database is away or locked, it repeats the call until the worker has to stop: without
   * its result the message would be attempted again, and a network cannot be asked whether it has an SMS.
   */
  async function record(result: NamedResult & { id: string; job: string }, signal?: AbortSignal) {
    for (;;) {
      try {
        return await finish(result)
      } catch (error) {
        if (!isTransient(error) || signal?.aborted) throw error
        await pause(RECORD_AGAIN_AFTER_MS)
      }
    }
  }

  // A message in progress can come again: with the same job after a restart of the worker pool, or with a
  // second job after it was held and released. The second run must wait. Otherwise it would take the
  // attempt in progress for an interrupted one, or complete the only job left if that attempt fails.
  const inProgress = new Map<string, Promise<void>>()

  return async (payload, { abortSignal: signal, job }) => {
    const { id } = v.parse(payloadSchema, payload)
    while (inProgress.has(id)) await inProgress.get(id)
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    inProgress.set(id, ended)
    try {
      const message = await start(id)
      if (!message) return
      const result = await options
        .attempt(message, { signal, timeoutMs })
        .finally(() => options.end?.(message))
      options.onOutcome?.(id, result)
      await record({ id, job: job.id, ...result }, signal)
    } finally {
      inProgress.delete(id)
      end()
    }
  }
}
