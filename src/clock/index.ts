import { PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import type { Call } from '../db/call.ts'
import { pgOptions, queueLimits, SERVICE_ROLE } from '../db/client.ts'
import { messageOf } from '../db/connection-errors.ts'
import { queuePoolLimits } from '../db/queue-pool.ts'
import type { EmailProvider } from '../providers/email.ts'
import { storable } from '../text/storable.ts'
import { scheduledTasks } from './tasks.ts'

type ClockOptions = {
  url: string
  call: Call
  emailProvider: EmailProvider
  sealSecrets(): Promise<number>
  log: Logger
}

/** Starts the scheduled tasks. With several clock processes each run still happens once. */
export async function startClock(options: ClockOptions): Promise<{ stop(): Promise<void> }> {
  const { url, call, emailProvider, sealSecrets, log } = options
  const boss = new PgBoss({
    ...pgOptions(url, { role: SERVICE_ROLE, jit: 'off', ...queueLimits }),
    ...queuePoolLimits,
    application_name: 'postgram clock',
    max: 2,
    migrate: false,
    // Only an owner may rebuild indexes, and the indexes of some twenty queues stay small.
    reindex: false,
    // ops.processes lists the running processes.
    registerInstance: false,
  })
  boss.on('error', (error) => log.warn({ err: error }, 'clock failed'))
  const stop = () => boss.stop({ graceful: true, timeout: 5000, close: true })
  try {
    await boss.start()
    const tasks = scheduledTasks.map(({ name, schedule }) => ({ name, schedule }))
    await call('set_scheduled_tasks', { tasks })
    const context = { call, provider: emailProvider, sealSecrets }
    for (const { name, schedule, run } of scheduledTasks) {
      await boss.createQueue(name)
      // Missed runs are caught up with one run at the start, also those of a nightly task.
      await boss.schedule(name, schedule, null, { missed: 'once' })
      await boss.work(name, () => recordRun({ call, log }, name, () => run(context)))
    }
    return { stop }
  } catch (error) {
    // The timers of pg-boss would keep the process from exiting.
    await stop().catch(() => undefined)
    throw error
  }
}

/** Runs a task and records the run for ops.clock. Throws what the task throws. */
export async function recordRun(
  { call, log }: { call: Call; log: Logger },
  task: string,
  run: () => Promise<number>,
): Promise<void> {
  const started = performance.now()
  const durationMs = () => Math.round(performance.now() - started)
  try {
    const rows = await run()
    await call('record_task_run', { task, duration_ms: durationMs(), rows })
    log.debug({ task, rows }, 'scheduled task ran')
  } catch (error) {
    log.warn({ err: error, task }, 'scheduled task failed')
    const message = storable(messageOf(error))
    // When the database itself failed, the log line above is the only record.
    await call('record_task_run', { task, duration_ms: durationMs(), error: message }).catch(
      () => undefined,
    )
    throw error
  }
}
