import { type ResourceLimits, Worker } from 'node:worker_threads'
import type { Fields } from '../../errors.ts'
import { type Code, Refusal } from '../../errors.ts'
import { MB } from '../limits.ts'
import { createYield } from '../yield.ts'
import {
  isBatch,
  type PostBody,
  type Posted,
  type PostKind,
  type PostOptions,
  readPostBody,
} from './post-body.ts'

/** Parses the bodies of POST requests without blocking the event loop for long. */
export type PostReader = ReturnType<typeof createPostReader>

/** The thread's result for the body of a call. */
export type ThreadResult = { call: number } & (
  | { body: PostBody }
  | { refusal: { code: Code; fields: Fields | undefined } }
  | { error: unknown }
)

/** A single request of this size takes at most some 5 ms to parse, a batch 100 ms. */
export const IN_LOOP_BYTES = 64 * 1024

/** Small bodies are parsed for this time before the event loop goes on. */
const IN_LOOP_MS = 1

/** The thread has at most one body larger than LARGE_BYTES at a time, and SMALL_BYTES_IN_THREAD of smaller ones. */
const LARGE_BYTES = MB
const SMALL_BYTES_IN_THREAD = 2 * MB

/** A thread that needs more memory exits and its requests fail; the process stays below 600 MB. */
const THREAD_LIMITS: ResourceLimits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16 }

/** The largest body takes at most some 5 s. */
const THREAD_TIMEOUT_MS = 60_000

type Job = {
  posted: Posted
  size: number
  resolve(body: PostBody): void
  reject(error: unknown): void
}

/**
 * Parses small single requests in the event loop, round-robin by organisation. A thread parses batches and
 * large bodies: one of each organisation at a time, those of several organisations in slices, so that none
 * waits for all others. body/reservations.ts limits the bytes of the bodies that wait. The thread starts with the
 * first such body, and restarts with the next one after it has exited.
 */
export function createPostReader(options: PostOptions, threadLimits = THREAD_LIMITS) {
  /** Waiting jobs by organisation; the organisation that has waited longest comes first. */
  const waiting = new Map<string, Job[]>()
  const inThread = new Map<string, Job>()
  const inLoop = createYield(IN_LOOP_MS)
  let thread: Worker | null = null

  /** Parses and validates a body of an organisation; throws a Refusal if it is not valid. */
  async function read(posted: Posted, organisationId: string): Promise<PostBody> {
    const size = posted.bytes.length
    if (size <= IN_LOOP_BYTES && !isBatch(posted.kind)) {
      return inLoop.run(organisationId, () => readPostBody(posted, options))
    }
    const { promise, resolve, reject } = Promise.withResolvers<PostBody>()
    const jobs = waiting.get(organisationId) ?? []
    jobs.push({ posted, size, resolve, reject })
    waiting.set(organisationId, jobs)
    startJobs()
    return promise
  }

  function startJobs() {
    for (const [organisationId, jobs] of [...waiting]) {
      const [job, ...later] = jobs
      if (!job || inThread.has(organisationId) || !fits(job)) continue
      waiting.delete(organisationId)
      if (later.length > 0) waiting.set(organisationId, later)
      inThread.set(organisationId, job)
      void runInThread(job)
        .then(job.resolve, job.reject)
        .finally(() => {
          inThread.delete(organisationId)
          startJobs()
        })
    }
  }

  /** Whether the thread may take a job beside those that it has. */
  function fits({ size }: Job): boolean {
    const sizes = [...inThread.values()].map((job) => job.size)
    if (size > LARGE_BYTES) return sizes.every((other) => other <= LARGE_BYTES)
    const small = sizes.filter((other) => other <= LARGE_BYTES)
    return small.reduce((sum, other) => sum + other, size) <= SMALL_BYTES_IN_THREAD
  }

  async function runInThread({ posted }: Job): Promise<PostBody> {
    thread ??= startThread()
    const result = await ask(thread, posted)
    if ('body' in result) return result.body
    if ('error' in result) throw result.error
    throw new Refusal(result.refusal.code, result.refusal.fields)
  }

  function startThread(): Worker {
    const worker = new Worker(new URL('./post-thread.ts', import.meta.url), {
      workerData: options,
      resourceLimits: threadLimits,
    })
    const forget = () => {
      if (thread === worker) thread = null
    }
    // These listeners run before those of the jobs, so that the next job starts another thread.
    return worker.setMaxListeners(0).on('error', forget).on('exit', forget)
  }

  return {
    read: read as <Kind extends PostKind>(
      posted: Posted<Kind>,
      organisationId: string,
    ) => Promise<PostBody<Kind>>,
    async close() {
      await thread?.terminate()
    },
  }
}

/** Returns the thread's result; rejects if the thread exits or takes too long. */
async function ask(worker: Worker, posted: Posted): Promise<ThreadResult> {
  const { promise, resolve, reject } = Promise.withResolvers<ThreadResult>()
  const onMessage = (result: ThreadResult) => {
    if (result.call === posted.call) resolve(result)
  }
  const onExit = () => reject(new Error('the thread that parses request bodies has exited'))
  const timer = setTimeout(() => void worker.terminate(), THREAD_TIMEOUT_MS)
  worker.on('message', onMessage).on('error', reject).on('exit', onExit)
  // The memory is moved to the thread, not copied. A small body shares its memory with others, so it is copied.
  const isWhole = posted.bytes.length === posted.bytes.buffer.byteLength
  const bytes = isWhole ? posted.bytes : new Uint8Array(posted.bytes)
  worker.postMessage({ ...posted, bytes }, [bytes.buffer as ArrayBuffer])
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    worker.off('message', onMessage).off('error', reject).off('exit', onExit)
  }
}
