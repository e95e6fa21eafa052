import { smsSchema } from '../../schemas/sms.ts'
import type { AcceptOptions } from '../accept.ts'
import { messagesRouter } from './messages.ts'

/** POST /v1/sms, POST /v1/sms/batch and GET /v1/sms/{id} (src/docs/api.md#sms). */
export function smsRouter(options: AcceptOptions) {
  return messagesRouter(
    {
      name: 'sms',
      nouns: ['an SMS', 'SMS'],
      path: '/v1/sms',
      scope: 'sms:send',
      list: 'messages',
      schema: smsSchema,
      accept: 'accept_sms',
      responses: { sent: 'sentSms', batch: 'smsBatch', message: 'sms' },
      itemRefusals: ['insufficient_credits'],
    },
    options,
  )
}
