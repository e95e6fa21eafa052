import { isRehearsal } from '../providers/sandbox.ts'
import { emailSchema, parseEmail } from '../schemas/email.ts'
import type { AcceptOptions } from './accept.ts'
import { messagesRouter } from './messages.ts'

/** POST /v1/emails, POST /v1/emails/batch and GET /v1/emails/{id} (interface 4.1 to 4.3). */
export function emailsRouter(options: AcceptOptions & { hasRehearsals: boolean }) {
  return messagesRouter(
    {
      name: 'email',
      nouns: ['an email', 'emails'],
      path: '/v1/emails',
      scope: 'emails:send',
      list: 'emails',
      schema: emailSchema,
      parse(input) {
        const parsed = parseEmail(input)
        if ('fields' in parsed) return parsed
        const { email } = parsed
        const isMarked = options.hasRehearsals && isRehearsal(email.recipients)
        return { message: isMarked ? { ...email, is_rehearsal: true } : email }
      },
      accept: 'accept_emails',
      answers: { sent: 'sentEmail', batch: 'emailBatch', message: 'email' },
      itemRefusals: ['domain_not_verified', 'recipient_suppressed', 'plan_allowance_exceeded'],
    },
    options,
  )
}
