import { type ResourceLimits, Worker } from 'node:worker_threads'
import { type Code, Refusal } from '../../errors.ts'
import type { Fields } from '../../schemas/fields.ts'
import { createYield } from '../yield.ts'
import {
  isBatch,
  type PostBody,
  type Posted,
  type PostKind,
  type PostOptions,
  readPostBody,
} from './post-body.ts'

/** Reads the bodies of POST requests without blocking the event loop for long. */
export type PostReader = {
  /** Parses and validates a body of `party`, or throws the Refusal. */
  read<Kind extends PostKind>(posted: Posted<Kind>, party: string): Promise<PostBody<Kind>>
  close(): Promise<void>
}

/** What the thread makes of the body of a call. */
export type ThreadResult = { call: number } & (
  | { body: PostBody }
  | { refusal: { code: Code; fields: Fields | undefined } }
  | { error: unknown }
)

const MB = 1024 * 1024

/** A single request of this size takes some 5 ms at worst, a batch 100 ms. */
const IN_LOOP_BYTES = 64 * 1024

/** How long single requests are read before connections are served again. */
const TURN_MS = 1

/** The thread has one body in hand that is larger than this, and smaller ones up to so many bytes. */
const LARGE_BYTES = MB
const SMALL_BYTES_IN_THREAD = 2 * MB

/** A thread that needs more dies, and its requests fail; the process is to stay below 600 MB. */
const THREAD_LIMITS: ResourceLimits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 16 }

/** The largest body takes some 5 s at worst. */
const THREAD_TIMEOUT_MS = 60_000

type Job = {
  posted: Posted
  size: number
  resolve(body: PostBody): void
  reject(error: unknown): void
}

/**
 * Reads small single requests in the event loop, of organisations in turn. A thread reads batches and large
 * bodies: of each organisation one at a time, those of several in slices, so that none waits for the largest
 * of all others. The bytes in hand that body.ts allows bound how many wait. The thread starts with the first
 * of them, and again after it has died.
 */
export function createPostReader(options: PostOptions, threadLimits = THREAD_LIMITS): PostReader {
  /** By organisation, first the one whose last turn was the longest ago. */
  const waiting = new Map<string, Job[]>()
  const inThread = new Map<string, Job>()
  const turns = createYield(TURN_MS)
  let thread: Worker | null = null

  async function read(posted: Posted, party: string): Promise<PostBody> {
    const size = posted.bytes.length
    if (size <= IN_LOOP_BYTES && !isBatch(posted.kind)) {
      return turns.run(party, () => readPostBody(posted, options))
    }
    const { promise, resolve, reject } = Promise.withResolvers<PostBody>()
    const jobs = waiting.get(party) ?? []
    jobs.push({ posted, size, resolve, reject })
    waiting.set(party, jobs)
    startJobs()
    return promise
  }

  function startJobs() {
    for (const [party, jobs] of [...waiting]) {
      const [job, ...later] = jobs
      if (!job || inThread.has(party) || !fits(job)) continue
      waiting.delete(party)
      if (later.length > 0) waiting.set(party, later)
      inThread.set(party, job)
      void runInThread(job)
        .then(job.resolve, job.reject)
        .finally(() => {
          inThread.delete(party)
          startJobs()
        })
    }
  }

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
    // Before the listeners of the jobs, which fail with it: the next job gets another thread.
    return worker.setMaxListeners(0).on('error', forget).on('exit', forget)
  }

  return {
    read: read as PostReader['read'],
    async close() {
      await thread?.terminate()
    },
  }
}

/** The thread's result; rejects if the thread dies or takes too long. */
async function ask(worker: Worker, posted: Posted): Promise<ThreadResult> {
  const { promise, resolve, reject } = Promise.withResolvers<ThreadResult>()
  const onMessage = (result: ThreadResult) => {
    if (result.call === posted.call) resolve(result)
  }
  const onExit = () => reject(new Error('the thread that reads request bodies has ended'))
  const timer = setTimeout(() => void worker.terminate(), THREAD_TIMEOUT_MS)
  worker.on('message', onMessage).on('error', reject).on('exit', onExit)
  // Moved, not copied; a small one shares its memory with others.
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
