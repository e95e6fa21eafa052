import type { Logger } from 'pino'
import type { KeywordSms } from '../db/api.gen.ts'
import { createBatcher, createRecorder, MAX_IN_ONE_COMMIT } from '../db/batcher/index.ts'
import type { Call } from '../db/call.ts'
import { bareWords, type Keyword, readKeyword } from '../sms/keywords.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { summarise } from '../telemetry/summary.ts'
import type { IgnoredSms, SmsListener, SmsReceipt } from './sms.ts'

/** Anyone can send an SMS, so each reason is logged once a minute, with the count. */
const IGNORED_EVERY_MS = 60_000

const NO_ORGANISATION =
  'no organisation owns this sender ID, and none has sent from it to this phone within 90 days'

/**
 * Records receipts, and the keywords of inbound SMS; other inbound SMS are ignored. `flush` logs the
 * ignored keywords that are not logged yet.
 */
export function createSmsListener(
  call: Call,
  { metrics, log }: { metrics: Pick<Metrics, 'receipt'>; log: Logger },
): SmsListener & { flush(): void } {
  const recordReceipt = createRecorder<SmsReceipt>((receipts) =>
    call('record_sms_receipts', { receipts }),
  )
  const recordKeyword = createBatcher<KeywordSms, string>(
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
        ignored.note(NO_ORGANISATION, { ...message, body, keyword, reason: NO_ORGANISATION })
      }
    },
    onIgnored(message) {
      const keyword = readKeyword(message.body)
      if (keyword) ignored.note(message.reason, { ...message, keyword })
    },
    flush: ignored.flush,
  }
}

/** Masks the middle of a number; the rest suffices to find it in the network's records. */
function masked(number: string): string {
  return `${number.slice(0, 3)}…${number.slice(6).slice(-3)}`
}
