import type { Call } from '../db/call.ts'
import type { EmailProvider } from '../providers/email.ts'

export type TaskContext = {
  call: Call
  provider: Pick<EmailProvider, 'name' | 'account' | 'readCallback'>
  /** Seals signing secrets of webhook endpoints, at most 1 000 in a call. Returns how many. */
  sealSecrets(): Promise<number>
}

type ScheduledTask = {
  name: string
  /** Cron expression, in UTC. */
  schedule: string
  /** Returns how many rows the run changed. */
  run(context: TaskContext): Promise<number>
}

const EVERY_MINUTE = '* * * * *'

/** All scheduled tasks. Each may run late or twice without harm. */
export const scheduledTasks: ScheduledTask[] = [
  {
    name: 'enqueue-due-messages',
    schedule: EVERY_MINUTE,
    run: ({ call }) => whileFull(() => call('enqueue_due_messages', {})),
  },
  {
    name: 'enqueue-due-domain-checks',
    schedule: EVERY_MINUTE,
    run: ({ call, provider }) =>
      untilNone(() => call('enqueue_due_domain_checks', { provider: provider.account })),
  },
  {
    name: 'enqueue-due-deliveries',
    schedule: EVERY_MINUTE,
    run: ({ call }) => call('enqueue_due_deliveries', {}),
  },
  {
    name: 'enqueue-receipt-polls',
    schedule: EVERY_MINUTE,
    // A provider without callbacks has no receipts to ask for either.
    run: async ({ call, provider }) =>
      provider.readCallback
        ? untilNone(() => call('enqueue_receipt_polls', { provider: provider.name }))
        : 0,
  },
  {
    name: 'check-failing-endpoints',
    schedule: EVERY_MINUTE,
    run: ({ call }) => call('check_failing_endpoints', {}),
  },
  {
    name: 'seal-webhook-secrets',
    schedule: EVERY_MINUTE,
    run: ({ sealSecrets }) => whileFull(sealSecrets),
  },
  {
    name: 'close-periods',
    schedule: EVERY_MINUTE,
    run: ({ call }) => untilNone(() => call('close_periods', {})),
  },
  {
    name: 'sum-status-changes',
    schedule: EVERY_MINUTE,
    run: ({ call }) => whileFull(() => call('sum_status_changes', {})),
  },
  {
    name: 'clear-deliveries',
    schedule: EVERY_MINUTE,
    run: ({ call }) => untilNone(() => call('clear_deliveries', {})),
  },
  {
    name: 'drop-expired',
    schedule: EVERY_MINUTE,
    run: ({ call }) => untilNone(() => call('drop_expired', {})),
  },
  {
    name: 'seal-audit',
    schedule: EVERY_MINUTE,
    run: ({ call }) => whileFull(() => call('seal_audit', {})),
  },
  {
    name: 'make-partitions',
    schedule: '17 * * * *',
    run: ({ call }) => call('make_partitions', {}),
  },
  {
    name: 'record-table-sizes',
    schedule: '33 3 * * *',
    run: ({ call }) => call('record_table_sizes', {}),
  },
  {
    name: 'delete-old-callbacks',
    schedule: '*/10 * * * *',
    run: ({ call }) => whileFull(() => call('delete_old_callbacks', {})),
  },
  {
    name: 'delete-old-early-receipts',
    schedule: '7 * * * *',
    run: ({ call }) => whileFull(() => call('delete_old_early_receipts', {})),
  },
  {
    name: 'delete-old-sms-parts',
    schedule: '7 3 * * *',
    run: ({ call }) => whileFull(() => call('delete_old_sms_parts', {})),
  },
  {
    name: 'delete-old-sums',
    schedule: '23 3 * * *',
    run: ({ call }) => call('delete_old_sums', {}),
  },
  {
    name: 'delete-old-sandbox-messages',
    schedule: '37 3 * * *',
    run: ({ call }) => call('delete_old_sandbox_messages', {}),
  },
  {
    name: 'delete-old-complaints',
    schedule: '47 3 * * *',
    run: ({ call }) => call('delete_old_complaints', {}),
  },
  {
    name: 'delete-old-task-runs',
    schedule: '57 3 * * *',
    run: ({ call }) => call('delete_old_task_runs', {}),
  },
]

/** A call that returns at least this many rows may have reached its own limit, which is never lower. */
const FULL = 1000

/**
 * Repeats a call until one finds less than a full batch. For work that keeps arriving: under load,
 * untilNone would never end. The next run takes the rest. Returns the total.
 */
async function whileFull(work: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await work()
    total += count
    if (count < FULL) return total
  }
}

/** Repeats a call until one finds nothing. Returns the total. */
async function untilNone(work: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await work()
    total += count
    if (count === 0) return total
  }
}
