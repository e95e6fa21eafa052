import type { KeywordSms, SandboxItem } from '../../db/api.gen.ts'
import { createRecorder } from '../../db/batcher/index.ts'
import type { Call } from '../../db/call.ts'
import type { OutgoingSms, SmsProvider, SmsReceipt } from '../sms.ts'
import { PATIENTLY, REPORTS_AFTER_MS, refusal, slow } from './network.ts'

/** Later than the receipts: a recipient replies after the delivery. */
const REPLIES_AFTER_MS = 2 * REPORTS_AFTER_MS

const NAME = 'sandbox'

/** Ofcom reserves these thousand mobile numbers for drama, so nobody has them. */
const SANDBOX_NUMBER = /^\+447700900\d{3}$/

type Report = Pick<SmsReceipt, 'type' | 'code' | 'text'>

const reportByDigit: Record<string, Report> = {
  1: { type: 'failed', code: 'UNDELIV', text: 'The number could not be reached.' },
  2: { type: 'expired', code: 'EXPIRED', text: 'The phone was off for too long.' },
}

const replyByDigit: Record<string, Pick<KeywordSms, 'keyword' | 'word'>> = {
  6: { keyword: 'stop', word: 'STOP' },
  7: { keyword: 'start', word: 'START' },
}

/**
 * Creates an SMS provider that sends nothing and simulates a network. The last digit of a sandbox number
 * selects the outcome: 1 is undelivered, 2 expires, 3 is refused permanently, 4 temporarily, 5 is deferred
 * once, 6 replies STOP and 7 START after the delivery; every other number is delivered.
 */
export function createSmsSandbox(call: Call): SmsProvider {
  const take = createRecorder<SandboxItem>((messages) =>
    call('sandbox_take', { messages }, PATIENTLY),
  )

  return {
    name: NAME,
    async send(sms) {
      const digit = isSandboxNumber(sms.recipient) ? sms.recipient.slice(-1) : ''
      if (digit === '3') {
        return refusal('failed', 'message', 'ESME_RINVDSTADR', 'The sandbox rejects this.')
      }
      if (digit === '4') {
        return refusal('deferred', 'provider', 'ESME_RSYSERR', 'The sandbox is not available.')
      }
      if (digit === '5' && sms.attempt === 1) return slow('provider', 'ESME_RTHROTTLED')
      const report = reportByDigit[digit] ?? { type: 'delivered', code: 'DELIVRD' }
      const reply = replyByDigit[digit]
      const parts = openParts(sms).map((part) => ({ part, network_id: `${sms.id}.${part}` }))
      const takeOne = (copy: number, kind: 'sms' | 'reply', report: object, due_in_ms: number) =>
        take({ id: sms.id, copy, kind, reports: [report], due_in_ms })
      await Promise.all([
        ...parts.map(({ part, network_id }) =>
          takeOne(part, 'sms', receiptOf(sms, network_id, report), REPORTS_AFTER_MS),
        ),
        reply && takeOne(0, 'reply', replyTo(sms, reply), REPLIES_AFTER_MS),
      ])
      return { outcome: 'sent', parts }
    },
    check: async () => null,
    close: async () => undefined,
  }
}

/** Whether an SMS to this number (E.164) is a sandbox message, whatever the provider. */
export function isSandboxNumber(phone: string): boolean {
  return SANDBOX_NUMBER.test(phone)
}

/** Returns the numbers of the parts that are not taken yet. */
function openParts({ segments, takenParts }: OutgoingSms): number[] {
  return Array.from({ length: segments }, (_, place) => place + 1).filter(
    (part) => !takenParts.includes(String(part)),
  )
}

function receiptOf(
  { recipient }: OutgoingSms,
  networkId: string,
  report: Report,
): Omit<SmsReceipt, 'occurred_at'> {
  return { provider: NAME, network_ids: [networkId], phone: recipient, ...report }
}

function replyTo(
  { recipient, sender }: OutgoingSms,
  reply: Pick<KeywordSms, 'keyword' | 'word'>,
): Omit<KeywordSms, 'received_at'> {
  return { provider: NAME, from: recipient, to: sender, ...reply }
}
