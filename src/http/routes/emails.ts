import { emailSchema } from '../../schemas/email.ts'
import type { AcceptOptions } from '../accept.ts'
import { messagesRouter } from './messages.ts'

/** POST /v1/emails, POST /v1/emails/batch and GET /v1/emails/{id} (src/docs/api.md#emails). */
export function emailsRouter(options: AcceptOptions) {
  return messagesRouter(
    {
      name: 'email',
      nouns: ['an email', 'emails'],
      path: '/v1/emails',
      scope: 'emails:send',
      list: 'emails',
      schema: emailSchema,
      accept: 'accept_emails',
      responses: { sent: 'sentEmail', batch: 'emailBatch', message: 'email' },
      itemRefusals: ['domain_not_verified', 'recipient_suppressed', 'plan_allowance_exceeded'],
    },
    options,
  )
}
