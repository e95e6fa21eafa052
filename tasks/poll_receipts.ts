import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Call } from '../src/db/call.ts'
import type { EmailProvider, Receipt } from '../src/providers/email.ts'
import type { Metrics } from '../src/telemetry/metrics.ts'

const payloadSchema = v.object({
  ids: v.pipe(v.array(v.pipe(v.string(), v.uuid())), v.maxLength(100)),
})

/**
 * Asks the provider about emails without a final receipt, because providers do not always repeat a lost
 * callback. Queries and jobs run one after the other: at some 200 ms each, an installation makes 5 queries
 * a second, well within providers' limits. When the provider is unreachable, the task records the receipts
 * so far and the job is retried.
 */
export default function pollReceipts(
  call: Call,
  provider: EmailProvider,
  metrics: Pick<Metrics, 'receipt'>,
): Task {
  return async (payload, { abortSignal }) => {
    const { ids } = v.parse(payloadSchema, payload)
    // The worker's own abort promise would hold each query in memory for as long as the worker runs.
    const { promise: stopped, reject } = Promise.withResolvers<never>()
    stopped.catch(() => undefined)
    const stop = () => reject(new Error('the worker stopped'))
    abortSignal.addEventListener('abort', stop)
    if (abortSignal.aborted) stop()
    const receipts: Receipt[] = []
    try {
      for (const email of await call('start_poll', { ids })) {
        receipts.push(...(await Promise.race([stopped, provider.receiptsOf(email)])))
      }
    } finally {
      abortSignal.removeEventListener('abort', stop)
      if (receipts.length > 0) {
        // Each poll returns all receipts, also those that callbacks brought: only new ones are counted.
        const stored = await call('finish_poll', { receipts: receipts })
        for (const type of stored) metrics.receipt('email', type)
      }
    }
  }
}
