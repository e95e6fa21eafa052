import { EventEmitter } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Runner,
  run,
  type Task,
  type TaskList,
  type WorkerEvents,
  Logger as WorkerLogger,
} from 'graphile-worker'
import type { Logger } from 'pino'
import { isConnectionError } from '../db/connection-errors.ts'
import { createQueuePool, type QueuePoolOptions } from '../db/queue-pool.ts'
import { NOT_STARTED, type Places } from '../providers/places.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createGate } from './gate.ts'

type WorkerPoolOptions = {
  url: string
  tasks: TaskList
  /** Jobs in progress at a time. */
  concurrency: number
  /** The attempts in progress, where a job has several messages. No job is taken while they are full. */
  places?: Places
  /** Connections to take and to complete jobs [7]. */
  maxConnections?: number
  log: Logger
  metrics: Metrics
  /** Receives the function that drops connections after the database was silent. */
  onSilenceEnd?: QueuePoolOptions['onSilenceEnd']
  /** Puts the pool and its tasks on the list of running processes. No job is taken before it resolves. */
  register(poolId: string, tasks: string[]): Promise<void>
}

/**
 * Other connections use generic plans. Here the best plan depends on whether this pool's jobs are all
 * that wait, or few among a million of another pool's.
 */
const PLANNING = { plan_cache_mode: 'force_custom_plan', jit: 'off' }

export type WorkerPool = { stop(): Promise<void> }

const RESTART_AFTER_MS = 1000

/**
 * How many messages a job may have (core.send_jobs). The messages of jobs that were taken are lost to other processes
 * and pass those of higher priority that come later. So jobs count as full ones until they are known: about twice
 * as many messages are taken as have a place, as if each had a job of its own.
 */
const MESSAGES_OF_A_JOB = 8

/** Starts taking jobs of these tasks. `stop` finishes the jobs in progress and returns the rest. */
export async function startWorkerPool(options: WorkerPoolOptions): Promise<WorkerPool> {
  const { url, concurrency, places, log, metrics } = options
  // Of the present runner. Without places all workers pass.
  const createRunnerGate = () =>
    createGate((asking) => places?.hasRoom(asking * MESSAGES_OF_A_JOB) ?? true)
  let gate = createRunnerGate()
  places?.onFree(() => gate.admit())
  const { tasks, allEnded } = watchTasks(options.tasks, () => gate.onAsked())
  // If an unregistered pool dies, its jobs stay locked for four hours.
  let registered: Promise<void> = Promise.resolve()
  // Resolves when the latest pool of graphile-worker shuts down. The runner's own promise may never
  // resolve: two batches of completed jobs that fail at the same time make its pending count negative.
  let shutDown = Promise.withResolvers<void>()
  let runner: Runner | undefined
  let hasFetched = false
  const events: WorkerEvents = new EventEmitter()
  events.on('pool:create', ({ workerPool }) => {
    registered = options.register(workerPool.id, Object.keys(options.tasks))
    registered.catch(() => undefined)
    shutDown = Promise.withResolvers()
    hasFetched = false
  })
  events.on('pool:gracefulShutdown', () => {
    shutDown.resolve()
    gate.open()
  })
  events.on('worker:getJob:empty', () => gate.onAsked())
  events.on('worker:getJob:error', () => gate.onAsked())
  metrics.expectJobs(Object.keys(tasks))
  events.on('job:success', ({ job }) => metrics.job(job.task_identifier, 'succeeded'))
  events.on('job:error', ({ job }) => metrics.job(job.task_identifier, 'failed'))
  events.on('job:failed', ({ job }) => metrics.job(job.task_identifier, 'failed_permanently'))
  events.on('localQueue:getJobs:complete', () => {
    hasFetched = true
  })
  // graphile-worker reads the ids of its tasks together with its first jobs, and keeps a failure: every later fetch
  // fails too. A fetch that loses its connection may have locked jobs of which the runner does not know; they would stay
  // locked for four hours. The registration of the next runner releases them.
  const onFetchFailed = (error: unknown) => {
    if (!hasFetched || isConnectionError(error)) ignoreErrors(runner?.stop())
  }
  const pgPool = createQueuePool(url, {
    settings: PLANNING,
    max: options.maxConnections ?? 7,
    onLost: (error) => log.warn({ err: error }, 'worker connection lost'),
    ...(options.onSilenceEnd && { onSilenceEnd: options.onSilenceEnd }),
  })
  const connect = pgPool.connect.bind(pgPool) as (...args: unknown[]) => unknown
  // Connections wait for the registration. The worker's listener uses the callback form, and must get
  // the error through it, because nobody awaits the promise.
  pgPool.connect = ((callback?: (error: unknown) => void) => {
    if (!callback) return registered.then(() => connect())
    registered.then(() => connect(callback), callback)
  }) as typeof pgPool.connect

  const startRunner = async (): Promise<Runner> => {
    // The runner connects before its pool exists. The pool before it may have failed to register.
    registered = Promise.resolve()
    gate.open()
    gate = createRunnerGate()
    const runner = await run({
      pgPool,
      taskList: tasks,
      concurrency,
      // Called before each request for a job; graphile-worker waits for the promise.
      forbiddenFlags: () => gate.pass(),
      noHandleSignals: true,
      events,
      logger: quietLogger(log, onFetchFailed),
      preset: {
        worker: {
          // One job more than can run: a job that was fetched but not started is lost to other processes.
          localQueue: {
            size: Math.ceil(places ? concurrency / MESSAGES_OF_A_JOB : concurrency) + 1,
          },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          gracefulShutdownAbortTimeout: 9_000,
        },
      },
    })
    await registered.catch((error) => {
      // Otherwise this runner would take jobs as an unregistered pool once the next one is registered.
      ignoreErrors(runner.stop())
      throw error
    })
    return runner
  }

  let isStopping = false
  runner = await startRunner()
  /** Restarts a runner that ends by itself, as it may after a long outage of the database. */
  const watch = async (watched: Runner): Promise<void> => {
    const ended = watched.promise.catch((error) => log.error({ err: error }, 'worker pool failed'))
    await Promise.race([ended, shutDown.promise])
    if (isStopping) return
    // Not awaited, because it may never end. Without the stop its cron, which is not used, would keep
    // the process from exiting.
    ignoreErrors(watched.stop())
    runner = undefined
    // The registration of the next pool releases the jobs of this one: another process would take those in progress.
    await allEnded()
    while (!isStopping && !runner) {
      await pause(RESTART_AFTER_MS)
      if (isStopping) return
      runner = await startRunner().catch((error) => {
        log.error({ err: error }, 'worker pool restart failed')
        return undefined
      })
    }
    if (isStopping) await ignoreErrors(runner?.stop())
    else if (runner) await watch(runner)
  }
  const watching = watch(runner)

  return {
    async stop() {
      isStopping = true
      await ignoreErrors(runner?.stop())
      await watching
      // A runner whose stop fails leaves its jobs in progress.
      await allEnded()
      await pgPool.end()
    },
  }
}

/** Returns the same tasks, which call `onStarted`, and a function that waits until none of them is in progress. */
function watchTasks(tasks: TaskList, onStarted: () => void) {
  const inProgress = new Set<unknown>()
  const watched = Object.entries(tasks).map(([name, task]): [string, Task] => [
    name,
    async (payload, helpers) => {
      const run = Promise.resolve(task?.(payload, helpers))
      inProgress.add(run)
      onStarted()
      try {
        await run
      } finally {
        inProgress.delete(run)
      }
    },
  ])
  return {
    tasks: Object.fromEntries(watched),
    async allEnded() {
      while (inProgress.size > 0) await Promise.allSettled(inProgress)
    },
  }
}

/** A runner that has ended by itself rejects a stop. */
function ignoreErrors(stopping: Promise<void> | undefined): Promise<void> {
  return (stopping ?? Promise.resolve()).catch(() => undefined)
}

/**
 * graphile-worker logs every job at level info, which ops.messages makes superfluous. It also warns when
 * there are fewer connections than jobs; that does not apply where jobs are taken in batches.
 */
function quietLogger(log: Logger, onFetchFailed: (error: unknown) => void): WorkerLogger {
  return new WorkerLogger(() => (level, message, meta) => {
    if (message.includes('maxPoolSize') || message.includes('job batch size')) return
    // graphile-worker has no event for this failure.
    if (message.startsWith('Error occurred fetching jobs')) onFetchFailed(meta?.error)
    // Of a job in progress when the pool stopped: it is retried, which is no failure.
    if (message.includes(NOT_STARTED)) log.info('job returned before its attempts')
    else if (level === 'error') log.error({ err: meta?.error }, message)
    else if (level === 'warning') log.warn(message)
    else log.debug(message)
  })
}
