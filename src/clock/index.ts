import { PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import type { Call } from '../db/call.ts'
import { pgOptions, queueLimits } from '../db/client.ts'
import { queuePoolLimits } from '../db/queue-pool.ts'
import type { EmailProvider } from '../providers/email.ts'
import { storable } from '../text/storable.ts'

type ClockTask = {
  name: string
  /** Cron, in UTC. */
  schedule: string
  /** One set-based call, repeated where it is bounded; answers how many rows it touched. */
  run(
    call: Call,
    provider: Pick<EmailProvider, 'name' | 'account' | 'readCallback'>,
  ): Promise<number>
}

/** All that the clock asks for; each is one SQL call that may come late or twice without harm. */
export const scheduledTasks: ClockTask[] = [
  {
    name: 'enqueue-due-messages',
    schedule: '* * * * *',
    run: (call) => whileMany(() => call('enqueue_due_messages', {})),
  },
  {
    name: 'enqueue-due-domain-checks',
    schedule: '* * * * *',
    run: (call, { account }) =>
      untilNone(() => call('enqueue_due_domain_checks', { provider: account })),
  },
  {
    name: 'enqueue-due-deliveries',
    schedule: '* * * * *',
    run: (call) => call('enqueue_due_deliveries', {}),
  },
  {
    name: 'judge-endpoints',
    schedule: '* * * * *',
    run: (call) => call('check_failing_endpoints', {}),
  },
  {
    name: 'close-periods',
    schedule: '* * * * *',
    run: (call) => untilNone(() => call('close_periods', {})),
  },
  {
    name: 'sum-up-changes',
    schedule: '* * * * *',
    run: (call) => whileMany(() => call('sum_status_changes', {})),
  },
  {
    name: 'clear-deliveries',
    schedule: '* * * * *',
    run: (call) => untilNone(() => call('clear_deliveries', {})),
  },
  {
    name: 'poll-receipts',
    schedule: '* * * * *',
    // One that makes no callbacks has nothing to tell afterwards either.
    run: async (call, { name, readCallback }) =>
      readCallback ? untilNone(() => call('enqueue_receipt_polls', { provider: name })) : 0,
  },
  { name: 'make-partitions', schedule: '17 * * * *', run: (call) => call('make_partitions', {}) },
  {
    name: 'drop-expired',
    schedule: '* * * * *',
    run: (call) => untilNone(() => call('drop_expired', {})),
  },
  {
    name: 'seal-audit',
    schedule: '* * * * *',
    run: (call) => whileMany(() => call('seal_audit', {})),
  },
  {
    name: 'record-table-sizes',
    schedule: '33 3 * * *',
    run: (call) => call('record_table_sizes', {}),
  },
  { name: 'forget-sums', schedule: '23 3 * * *', run: (call) => call('delete_old_sums', {}) },
  {
    name: 'forget-sms-parts',
    schedule: '7 3 * * *',
    run: (call) => whileMany(() => call('delete_old_sms_parts', {})),
  },
  {
    name: 'forget-complaints',
    schedule: '47 3 * * *',
    run: (call) => call('delete_old_complaints', {}),
  },
  {
    name: 'forget-sandbox',
    schedule: '37 3 * * *',
    run: (call) => call('delete_old_sandbox_messages', {}),
  },
  {
    name: 'forget-callbacks',
    schedule: '*/10 * * * *',
    run: (call) => whileMany(() => call('delete_old_callbacks', {})),
  },
  {
    name: 'forget-clock-runs',
    schedule: '57 3 * * *',
    run: (call) => call('delete_old_task_runs', {}),
  },
  {
    name: 'forget-early-receipts',
    schedule: '7 * * * *',
    run: (call) => whileMany(() => call('delete_old_early_receipts', {})),
  },
]

/** Fewer than this many is what came meanwhile; the calls that whileMany repeats are bounded by far more. */
const MANY = 1000

/**
 * Repeats a bounded call for as long as it finds much work; answers how much it was in all. For work that
 * keeps coming, of which untilNone would find no end under load. What is left is the next tick's.
 */
async function whileMany(work: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await work()
    total += count
    if (count < MANY) return total
  }
}

/** Repeats a bounded call for as long as it finds work; answers how much it was in all. */
async function untilNone(work: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await work()
    total += count
    if (count === 0) return total
  }
}

/** Starts the clock; with several processes each tick still runs once. */
export async function startClock(options: {
  url: string
  role: string
  call: Call
  emailProvider: EmailProvider
  log: Logger
}): Promise<{ stop(): Promise<void> }> {
  const { url, role, call, emailProvider, log } = options
  const boss = new PgBoss({
    ...pgOptions(url, { role, jit: 'off', ...queueLimits }),
    ...queuePoolLimits,
    application_name: 'postgram clock',
    max: 2,
    migrate: false,
    // Only an owner may rebuild indexes, and those of some twenty queues stay small.
    reindex: false,
  })
  boss.on('error', (error) => log.warn({ err: error }, 'clock error'))
  const stop = () => boss.stop({ graceful: true, timeout: 5000, close: true })
  try {
    await boss.start()
    const tasks = scheduledTasks.map(({ name, schedule }) => ({ name, schedule }))
    await call('set_scheduled_tasks', { tasks })
    for (const { name, schedule, run } of scheduledTasks) {
      await boss.createQueue(name)
      // One run for all that came due while no clock ran: a night's task does not wait for the next night.
      await boss.schedule(name, schedule, null, { missed: 'once' })
      await boss.work(name, () =>
        keepingRecord({ call, log }, name, () => run(call, emailProvider)),
      )
    }
    return { stop }
  } catch (error) {
    // Its timers would keep the process from ending.
    await stop().catch(() => undefined)
    throw error
  }
}

/** Runs one task, and leaves a row of how that went (ops.clock). Throws what the task throws. */
export async function keepingRecord(
  { call, log }: { call: Call; log: Logger },
  task: string,
  run: () => Promise<number>,
): Promise<void> {
  const started = performance.now()
  const took = () => Math.round(performance.now() - started)
  try {
    const rows = await run()
    await call('record_task_run', { task, duration_ms: took(), rows })
    log.debug({ task, rows }, 'the clock ran')
  } catch (error) {
    log.warn({ err: error, task }, 'a task of the clock failed')
    const words = storable(error instanceof Error ? error.message : String(error))
    // The database may be what failed; then the error below is all there is.
    await call('record_task_run', { task, duration_ms: took(), error: words }).catch(
      () => undefined,
    )
    throw error
  }
}
