import { setTimeout as pause } from 'node:timers/promises'
import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import { createBatcher, createRecorder, MAX_IN_ONE_COMMIT } from '../db/batcher/index.ts'
import type { Call } from '../db/call.ts'
import { isTransient } from '../db/repeated-call.ts'
import type { AttemptResult, TimeLimit } from './attempt.ts'
import { NOT_STARTED, type Places } from './places.ts'

const idSchema = v.pipe(v.string(), v.uuid())
const payloadSchema = v.union([
  v.object({ id: idSchema }),
  v.pipe(v.array(idSchema), v.minLength(1), v.maxLength(100)),
])

/** Providers have shorter limits. This one frees the slot when a provider never responds. */
const ATTEMPT_TIMEOUT_MS = 120_000

const RECORD_AGAIN_AFTER_MS = 500

/** The result of an attempt, with the name of the provider. */
export type NamedResult = AttemptResult & { provider: string }

/** Called after each attempt with the message's UUID and the result. */
export type OnOutcome = (id: string, result: NamedResult) => void

/** What the tasks of a worker have in common; tests leave it out. */
export type WorkerLimits = {
  /** The attempts in progress of a worker pool; absent: no limit. */
  places?: Places | undefined
  /** Aborted when the worker has to end: results that could not be recorded until then are lost. */
  ending?: AbortSignal | undefined
}

export type AttemptOptions<Message extends { id: string }> = WorkerLimits & {
  /**
   * Commits the start of an attempt at each message that still waits, and returns those messages. `jobs` are the
   * jobs of the messages, which leave them if they are attempted later.
   */
  start(ids: string[], jobs: string[]): Promise<Message[]>
  /** Called when the attempt at a message is over. */
  end?(message: Message): void
  /** Sends one message to its provider. */
  attempt(message: Message, timeLimit: TimeLimit): Promise<NamedResult>
  responseTimeoutMs?: number | undefined
  onOutcome?: OnOutcome | undefined
}

/**
 * Creates a task that attempts the message of a job, or the messages of a job of several side by side.
 * Messages in progress share the transactions that start and finish their attempts. The start is
 * committed before the provider is called, so that after a crash the next attempt knows that the
 * provider may have the message (ARCHITECTURE.md#promise-4).
 */
export function attemptTask<Message extends { id: string }>(
  call: Call,
  options: AttemptOptions<Message>,
): Task {
  const { places, ending, responseTimeoutMs: timeoutMs = ATTEMPT_TIMEOUT_MS } = options
  const start = createBatcher<{ id: string; job: string }, Message | undefined>(
    async (items) => {
      const ids = items.map(({ id }) => id)
      const started = await options.start(
        ids,
        items.map(({ job }) => job),
      )
      const byId = new Map(started.map((message) => [message.id, message]))
      return ids.map((id) => byId.get(id))
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const finish = createRecorder<NamedResult & { id: string; job: string }>((results) =>
    call('finish_messages', { results }),
  )

  /**
   * Records a result. If the database is away or locked, it repeats the call until the process has to end, also when
   * graphile-worker has ended its pool: without its result the message would be attempted again, and a network
   * cannot be asked whether it has an SMS.
   */
  async function record(result: NamedResult & { id: string; job: string }) {
    for (;;) {
      try {
        return await finish(result)
      } catch (error) {
        if (!isTransient(error) || ending?.aborted) throw error
        await pause(RECORD_AGAIN_AFTER_MS)
      }
    }
  }

  // A message in progress can come again: with the same job after a restart of the worker pool, or with a
  // second job after it was held and released. The second run must wait. Otherwise it would take the
  // attempt in progress for an interrupted one, or complete the only job left if that attempt fails.
  const inProgress = new Map<string, Promise<void>>()

  async function attempt(id: string, job: string, signal: AbortSignal) {
    while (inProgress.has(id)) await inProgress.get(id)
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    inProgress.set(id, ended)
    try {
      await places?.take(signal)
      try {
        await attemptInPlace(id, job, signal)
      } finally {
        places?.leave()
      }
    } finally {
      inProgress.delete(id)
      end()
    }
  }

  async function attemptInPlace(id: string, job: string, signal: AbortSignal) {
    const message = await start({ id, job })
    if (!message) return
    const result = await options
      .attempt(message, { signal, timeoutMs })
      .finally(() => options.end?.(message))
    options.onOutcome?.(id, result)
    await record({ id, job, ...result })
  }

  return async (payload, { abortSignal: signal, job }) => {
    const given = v.parse(payloadSchema, payload)
    if (!Array.isArray(given)) return attempt(given.id, job.id, signal)
    const ends = await Promise.allSettled(given.map((id) => attempt(id, job.id, signal)))
    // The job is retried as it is in the database by then: without those that left it. Of the others, those that are
    // done are skipped.
    const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
    if (failures.length > 0) {
      throw failures.find((reason) => reason?.message !== NOT_STARTED) ?? failures[0]
    }
  }
}
