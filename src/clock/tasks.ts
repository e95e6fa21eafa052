import type { Api } from '../db/api.gen.ts'
import type { Call } from '../db/call.ts'
import type { EmailProvider } from '../providers/email.ts'

export type TaskContext = {
  call: Call
  provider: Pick<EmailProvider, 'name' | 'account' | 'readCallback'>
  /** Seals signing secrets of webhook endpoints, at most 100 in a call. Returns how many. */
  sealSecrets(): Promise<number>
}

/** Returns how many rows it changed. */
type Run = (context: TaskContext) => Promise<number>

/** The functions of schema api that take no arguments and return a number of rows. */
type Counting = {
  [Name in keyof Api]: Api[Name] extends { args: Record<string, never>; result: number }
    ? Name
    : never
}[keyof Api]

/** A call that returns at least this many rows may have reached its own limit, which is never lower. */
const FULL = 1000

/** A purge of many messages takes hours. Between its runs the database is free for others. */
const PURGE_MS = 30_000

const EVERY_MINUTE = '* * * * *'

/** Name, cron expression in UTC, and run of each task. Each may run late or twice without harm. */
const tasks: [name: string, schedule: string, run: Run][] = [
  ['enqueue-due-messages', EVERY_MINUTE, whileFull(calling('enqueue_due_messages'))],
  ['enqueue-due-domain-checks', EVERY_MINUTE, untilNone(enqueueDueDomainChecks)],
  ['enqueue-due-deliveries', EVERY_MINUTE, calling('enqueue_due_deliveries')],
  ['enqueue-receipt-polls', EVERY_MINUTE, untilNone(enqueueReceiptPolls)],
  ['check-failing-endpoints', EVERY_MINUTE, calling('check_failing_endpoints')],
  ['seal-webhook-secrets', EVERY_MINUTE, untilNone(({ sealSecrets }) => sealSecrets())],
  ['close-periods', EVERY_MINUTE, untilNone(calling('close_periods'))],
  ['sum-status-changes', EVERY_MINUTE, whileFull(calling('sum_status_changes'))],
  ['index-messages', EVERY_MINUTE, whileFull(calling('index_messages'))],
  ['clear-deliveries', EVERY_MINUTE, untilNone(calling('clear_deliveries'))],
  ['drop-expired', EVERY_MINUTE, untilNone(calling('drop_expired'))],
  ['seal-audit', EVERY_MINUTE, whileFull(calling('seal_audit'))],
  ['erase-people', EVERY_MINUTE, untilNone(calling('erase_people'))],
  ['take-forwarded-receipts', EVERY_MINUTE, untilNone(calling('take_forwarded_receipts'))],
  ['purge-moved', EVERY_MINUTE, within(PURGE_MS, calling('purge_moved'))],
  ['verify-audit', '27 * * * *', calling('verify_audit')],
  ['make-partitions', '17 * * * *', calling('make_partitions')],
  ['record-table-sizes', '33 3 * * *', calling('record_table_sizes')],
  ['delete-old-callbacks', '*/10 * * * *', whileFull(calling('delete_old_callbacks'))],
  ['delete-old-early-receipts', '7 * * * *', whileFull(calling('delete_old_early_receipts'))],
  ['delete-old-sms-parts', '7 3 * * *', whileFull(calling('delete_old_sms_parts'))],
  ['delete-old-sums', '23 3 * * *', calling('delete_old_sums')],
  ['delete-old-sandbox-messages', '37 3 * * *', calling('delete_old_sandbox_messages')],
  ['delete-old-complaints', '47 3 * * *', calling('delete_old_complaints')],
  ['delete-old-task-runs', '57 3 * * *', calling('delete_old_task_runs')],
]

export const scheduledTasks = tasks.map(([name, schedule, run]) => ({ name, schedule, run }))

function calling(name: Counting): Run {
  return ({ call }) => call(name, {})
}

function enqueueDueDomainChecks({ call, provider }: TaskContext): Promise<number> {
  return call('enqueue_due_domain_checks', { provider: provider.account })
}

/** A provider without callbacks has no receipts to ask for either. */
async function enqueueReceiptPolls({ call, provider }: TaskContext): Promise<number> {
  return provider.readCallback ? call('enqueue_receipt_polls', { provider: provider.name }) : 0
}

/**
 * Repeats a run until it finds less than a full batch. For work that keeps arriving: under load, untilNone would
 * never end. The next run of the task takes the rest.
 */
function whileFull(run: Run): Run {
  return repeat(run, FULL)
}

function untilNone(run: Run): Run {
  return repeat(run, 1)
}

/** As untilNone(), but begins no further call after this time. */
function within(ms: number, run: Run): Run {
  return repeat(run, 1, ms)
}

/** Repeats a run until it returns less than `least` rows. Returns the total. */
function repeat(run: Run, least: number, ms = Number.POSITIVE_INFINITY): Run {
  return async (context) => {
    const startedAt = performance.now()
    let total = 0
    for (;;) {
      const count = await run(context)
      total += count
      if (count < least || performance.now() - startedAt > ms) return total
    }
  }
}
