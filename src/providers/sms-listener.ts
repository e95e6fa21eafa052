import { createBatcher } from '../db/batcher.ts'
import type { Call } from '../db/call.ts'
import type { Metrics } from '../metrics.ts'
import { bareWords, type Keyword, readKeyword } from '../sms/keywords.ts'
import type { InboundSms, SmsListener, SmsReceipt } from './sms.ts'

/** As many as one commit should carry; more only make the first of them wait. */
const MAX_IN_ONE_COMMIT = 500

/** A message from a phone as api.record_inbound takes it. */
export type InboundKeyword = Omit<InboundSms, 'body'> & { keyword: Keyword; word: string }

/** Records what comes from a network: receipts, and of what phones write the keywords. */
export function createSmsListener(call: Call, metrics: Pick<Metrics, 'receipt'>): SmsListener {
  const recordReceipt = createBatcher<SmsReceipt, null>(
    async (receipts) => {
      await call('record_sms_receipts', { receipts: JSON.stringify(receipts) })
      return receipts.map(() => null)
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  const recordInbound = createBatcher<InboundKeyword, null>(
    async (messages) => {
      await call('record_inbound', { messages: JSON.stringify(messages) })
      return messages.map(() => null)
    },
    { maxWeight: MAX_IN_ONE_COMMIT },
  )
  return {
    async onReceipt(receipt) {
      await recordReceipt(receipt)
      metrics.receipt('sms', receipt.type)
    },
    async onInbound({ body, ...message }) {
      const keyword = readKeyword(body)
      if (keyword) await recordInbound({ ...message, keyword, word: bareWords(body) })
    },
  }
}
