import * as v from 'valibot'
import type { Call } from '../db/call.ts'
import { type Code, errorBody, Refusal } from '../errors.ts'
import { isRehearsal } from '../providers/sandbox.ts'
import { parseBatch } from '../schemas/batch.ts'
import { type Email, emailSchema, parseEmail } from '../schemas/email.ts'
import { mapInTurns } from '../turns.ts'
import { acceptor } from './accept.ts'
import type { Endpoint } from './endpoint.ts'
import { reply } from './reply.ts'

const callRefusals: Code[] = [
  'invalid_json',
  'validation_error',
  'idempotency_conflict',
  'org_paused',
]
const itemRefusals: Code[] = [
  'domain_not_verified',
  'recipient_suppressed',
  'plan_allowance_exceeded',
]

/** POST /v1/emails, POST /v1/emails/batch and GET /v1/emails/{id} (interface 4.1 to 4.3). */
export function emailsRouter(options: { call: Call; publicUrl: string; hasRehearsals: boolean }) {
  const { call, publicUrl, hasRehearsals } = options
  const accept = acceptor(call, 'accept_emails', publicUrl)
  const itemOf = (email: Email) =>
    hasRehearsals && isRehearsal(email.recipients) ? { ...email, is_rehearsal: true } : email

  const endpoints: Endpoint[] = [
    {
      method: 'POST',
      path: '/v1/emails',
      scope: 'emails:send',
      summary: 'Send an email',
      request: emailSchema,
      answer: 'sent',
      refusals: [...callRefusals, ...itemRefusals],
      handle(request) {
        const parsed = parseEmail(request.body)
        if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
        return accept(request, [itemOf(parsed.email)], false)
      },
    },
    {
      method: 'POST',
      path: '/v1/emails/batch',
      scope: 'emails:send',
      summary: 'Send up to 1 000 emails, each accepted or refused on its own',
      request: v.strictObject({
        emails: v.pipe(v.array(emailSchema), v.minLength(1), v.maxLength(1000)),
      }),
      answer: 'batch',
      refusals: callRefusals,
      async handle(request) {
        const parsed = parseBatch(request.body, 'emails')
        if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
        const items = await mapInTurns(parsed.items, (item) => {
          const result = parseEmail(item)
          return 'email' in result
            ? itemOf(result.email)
            : { error: errorBody(publicUrl, 'validation_error', result.fields) }
        })
        return accept(request, items, true)
      },
    },
    {
      method: 'GET',
      path: '/v1/emails/:id',
      scope: 'read',
      summary: 'Retrieve an email with its timeline',
      answer: 'message',
      refusals: ['not_found'],
      async handle({ admission, params }) {
        const body = await call('get_message', {
          organisation_id: admission.organisationId,
          channel: 'email',
          id: params.id ?? '',
        })
        if (body === null) throw new Refusal('not_found')
        return reply(200, body)
      },
    },
  ]
  return { endpoints, idle: accept.idle }
}
