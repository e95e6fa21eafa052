import type { Task } from 'graphile-worker'
import * as v from 'valibot'
import type { Call } from '../src/db/call.ts'
import type { EmailProvider, Receipt } from '../src/providers/email.ts'
import type { Metrics } from '../src/telemetry/metrics.ts'

const payloadSchema = v.object({
  ids: v.pipe(v.array(v.pipe(v.string(), v.uuid())), v.maxLength(100)),
})

/**
 * Asks the provider after emails of which nothing final was heard, as a callback that is lost is not
 * always repeated. One after the other, and the jobs as well: an installation has one question under
 * way at a time, so at some 200 ms each it asks 5 times a second, well within providers' limits. When
 * the provider cannot be reached, what was heard so far is recorded and the job tried again.
 */
export default function pollReceipts(
  call: Call,
  provider: EmailProvider,
  metrics: Pick<Metrics, 'receipt'>,
): Task {
  return async (payload, { abortSignal }) => {
    const { ids } = v.parse(payloadSchema, payload)
    // Not the worker's own abort promise, which would keep each question for as long as it lives.
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
        // At each poll the provider lists all that it knows, also what callbacks brought: only new ones count.
        const stored = await call('finish_poll', { receipts })
        for (const type of stored) metrics.receipt('email', type)
      }
    }
  }
}
