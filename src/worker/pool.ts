import { EventEmitter } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Runner,
  run,
  type TaskList,
  type WorkerEvents,
  Logger as WorkerLogger,
} from 'graphile-worker'
import type { Logger } from 'pino'
import { createQueuePool } from '../db/queue-pool.ts'
import type { Metrics } from '../telemetry/metrics.ts'

export type WorkerPoolOptions = {
  url: string
  role: string
  tasks: TaskList
  /** Jobs in hand at a time. */
  concurrency: number
  /** The most connections that it opens to take jobs and to end them. */
  maxConnections?: number
  log: Logger
  metrics: Metrics
  /** Puts the pool on the list of running ones; no job is taken before it settles. */
  announce(poolId: string): Promise<void>
}

/**
 * Unlike all else of the service: which way to jobs is short depends on whether those of this pool are
 * all that wait, or few among a million of another's.
 */
const PLANNING = { plan_cache_mode: 'force_custom_plan', jit: 'off' }

export type WorkerPool = { stop(): Promise<void> }

const BEGIN_ANEW_AFTER_MS = 1000

/** Starts taking jobs of these tasks; `stop` finishes those in hand and hands back the rest. */
export async function startWorkerPool(options: WorkerPoolOptions): Promise<WorkerPool> {
  const { url, role, tasks, concurrency, log, metrics } = options
  // A job taken by a pool that nobody knows would stay locked for four hours if we died now.
  let announced: Promise<void> = Promise.resolve()
  // Settles when the pool that was made last gives up. The runner's own promise may never: two batches
  // of finished jobs that fail side by side leave its count of what is pending below zero.
  let givenUp = Promise.withResolvers<void>()
  let runner: Runner | undefined
  let hasFetched = false
  const events: WorkerEvents = new EventEmitter()
  events.on('pool:create', ({ workerPool }) => {
    announced = options.announce(workerPool.id)
    announced.catch(() => undefined)
    givenUp = Promise.withResolvers()
    hasFetched = false
  })
  events.on('pool:gracefulShutdown', () => givenUp.resolve())
  metrics.expectJobs(Object.keys(tasks))
  events.on('job:success', ({ job }) => metrics.job(job.task_identifier, 'done'))
  events.on('job:error', ({ job }) => metrics.job(job.task_identifier, 'failed'))
  events.on('job:failed', ({ job }) => metrics.job(job.task_identifier, 'gave_up'))
  events.on('localQueue:getJobs:complete', () => {
    hasFetched = true
  })
  // It asks for the ids of its tasks with its first jobs, and when that fails it keeps the failure: all
  // that it fetches from then on fails as well. It has nothing in hand yet, so it is begun anew.
  const onFetchFailed = () => {
    if (!hasFetched) quietly(runner?.stop())
  }
  const pgPool = createQueuePool(url, {
    role,
    settings: PLANNING,
    max: options.maxConnections ?? 7,
    applicationName: 'postgram worker',
    onLost: (error) => log.warn({ err: error }, 'worker connection lost'),
  })
  const connect = pgPool.connect.bind(pgPool) as (...args: unknown[]) => unknown
  // The worker listens by way of the callback, which has to hear of a failure: nobody has the promise.
  pgPool.connect = ((callback?: (error: unknown) => void) => {
    if (!callback) return announced.then(() => connect())
    announced.then(() => connect(callback), callback)
  }) as typeof pgPool.connect

  const begin = async (): Promise<Runner> => {
    // It connects before it has a pool; the last one may not have been announced.
    announced = Promise.resolve()
    const runner = await run({
      pgPool,
      taskList: tasks,
      concurrency,
      noHandleSignals: true,
      events,
      logger: quietLogger(log, onFetchFailed),
      preset: {
        worker: {
          // One job more than can run: what a worker has fetched but not begun waits for nobody else.
          localQueue: { size: concurrency + 1 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          gracefulShutdownAbortTimeout: 9_000,
        },
      },
    })
    await announced.catch((error) => {
      // Else it would take jobs under a name that nobody knows once the next one is announced.
      quietly(runner.stop())
      throw error
    })
    return runner
  }

  let isStopping = false
  runner = await begin()
  /** A runner that ends by itself, as it may when the database is gone for long, is begun anew. */
  const watch = async (watched: Runner): Promise<void> => {
    const ended = watched.promise.catch((error) => log.error({ err: error }, 'the worker ended'))
    await Promise.race([ended, givenUp.promise])
    if (isStopping) return
    // Not to be waited for any more, as it may never end; but its cron, which nobody uses, would keep the
    // process from ending.
    quietly(watched.stop())
    runner = undefined
    while (!isStopping && !runner) {
      await pause(BEGIN_ANEW_AFTER_MS)
      if (isStopping) return
      runner = await begin().catch((error) => {
        log.error({ err: error }, 'the worker could not begin anew')
        return undefined
      })
    }
    if (isStopping) await quietly(runner?.stop())
    else if (runner) await watch(runner)
  }
  const watching = watch(runner)

  return {
    async stop() {
      isStopping = true
      await quietly(runner?.stop())
      await watching
      await pgPool.end()
    },
  }
}

/** A runner that has stopped by itself refuses to be stopped. */
function quietly(stopping: Promise<void> | undefined): Promise<void> {
  return (stopping ?? Promise.resolve()).catch(() => undefined)
}

/**
 * graphile-worker logs every job at info; that is what ops.messages is for. And it warns of fewer
 * connections than jobs, which is right only where jobs are not taken in batches.
 */
function quietLogger(log: Logger, onFetchFailed: () => void): WorkerLogger {
  return new WorkerLogger(() => (level, message, meta) => {
    if (message.includes('maxPoolSize')) return
    // There is no event for it.
    if (message.startsWith('Error occurred fetching jobs')) onFetchFailed()
    if (level === 'error') log.error({ err: meta?.error }, message)
    else if (level === 'warning') log.warn(message)
    else log.debug(message)
  })
}
