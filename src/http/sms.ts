import { parseSms, smsSchema } from '../schemas/sms.ts'
import { isSandboxNumber } from '../sms/sandbox-numbers.ts'
import type { AcceptOptions } from './accept.ts'
import { messagesRouter } from './messages.ts'

/** POST /v1/sms, POST /v1/sms/batch and GET /v1/sms/{id} (interface 4.11). */
export function smsRouter(options: AcceptOptions & { hasSmsRehearsals: boolean }) {
  return messagesRouter(
    {
      name: 'sms',
      nouns: ['an SMS', 'SMS'],
      path: '/v1/sms',
      scope: 'sms:send',
      list: 'messages',
      schema: smsSchema,
      parse(input) {
        const parsed = parseSms(input)
        if ('fields' in parsed) return parsed
        const { sms } = parsed
        const isRehearsal = options.hasSmsRehearsals && isSandboxNumber(sms.recipient)
        return { message: isRehearsal ? { ...sms, is_rehearsal: true } : sms }
      },
      accept: 'accept_sms',
      answers: { sent: 'sentSms', batch: 'smsBatch', message: 'sms' },
      itemRefusals: ['insufficient_credits'],
    },
    options,
  )
}
