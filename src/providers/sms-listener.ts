import type { Logger } from 'pino'
import { createBatcher } from '../db/batcher/index.ts'
import type { Call } from '../db/call.ts'
import { bareWords, type Keyword, readKeyword } from '../sms/keywords.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { summarise } from '../telemetry/summary.ts'
import type { IgnoredSms, InboundSms, SmsListener, SmsReceipt } from './sms.ts'

/** As many as one commit should carry; more only make the first of them wait. */
const MAX_IN_ONE_COMMIT = 500

/** Anybody can send messages, so each reason is logged once a minute, with the count. */
const IGNORED_EVERY_MS = 60_000

const NOBODY = 'no organisation has this number, and none wrote to the phone from it within 90 days'

/** A message from a phone as api.record_keywords takes it. */
export type InboundKeyword = Omit<InboundSms, 'body'> & { keyword: Keyword; word: string }

/**
 * Records what comes from a network: receipts, and of what phones write the keywords. `flush` logs ignored
 * keywords that are not logged yet.
 */
export function createSmsListener(
  call: Call,
  { metrics, log }: { metrics: Pick<Metrics, 'receipt'>; log: Logger },
): SmsListener & { flush(): void } {
  const recordReceipt = createBatcher<SmsReceipt, null>(
    async (receipts) => {
      await call('record_sms_receipts', { receipts })
      return receipts.map(() => null)
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const recordKeyword = createBatcher<InboundKeyword, string>(
    (messages) => call('record_keywords', { messages }),
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const ignored = summarise<IgnoredSms & { keyword: Keyword }>(
    ({ provider, keyword, from, to, reason }, messages) =>
      log.warn(
        { provider, keyword, from: masked(from), to, reason, messages },
        'keyword SMS ignored',
      ),
    IGNORED_EVERY_MS,
  )
  return {
    async onReceipt(receipt) {
      await recordReceipt(receipt)
      metrics.receipt('sms', receipt.type)
    },
    async onInbound({ body, ...message }) {
      const keyword = readKeyword(body)
      if (!keyword) return
      const outcome = await recordKeyword({ ...message, keyword, word: bareWords(body) })
      if (outcome === 'unknown') {
        ignored.note(NOBODY, { ...message, body, keyword, reason: NOBODY })
      }
    },
    onIgnored(message) {
      const keyword = readKeyword(message.body)
      if (keyword) ignored.note(message.reason, { ...message, keyword })
    },
    flush: ignored.flush,
  }
}

/** Enough of a number to find it in the records of the network, and not the whole. */
function masked(number: string): string {
  return `${number.slice(0, 3)}…${number.slice(6).slice(-3)}`
}
