import type * as v from 'valibot'
import { type Code, Refusal } from '../../errors.ts'
import { batchSchemas } from '../../schemas/batch.ts'
import { emailSchema } from '../../schemas/email.ts'
import { messageQueries, parseListing } from '../../schemas/message-list.ts'
import { smsSchema } from '../../schemas/sms.ts'
import { type AcceptFunction, type AcceptOptions, acceptor, type SendRequest } from '../accept.ts'
import type { Scope } from '../admit.ts'
import type { Endpoint, ResponseName } from '../endpoint.ts'
import { found, reply } from '../reply.ts'

/** The differences between the endpoints of email and of SMS. */
type Channel = {
  /** The words for one message and for many in summaries. */
  nouns: readonly [one: string, many: string]
  path: `/v1/${string}`
  scope: Scope
  schema: v.GenericSchema
  batchSchema: v.GenericSchema
  accept: AcceptFunction
  responses: {
    sent: ResponseName
    batch: ResponseName
    message: ResponseName
    list: ResponseName
  }
  /** The error codes of an item, besides validation_error. */
  itemRefusals: readonly Code[]
}

const channels: Record<'email' | 'sms', Channel> = {
  email: {
    nouns: ['an email', 'emails'],
    path: '/v1/emails',
    scope: 'emails:send',
    schema: emailSchema,
    batchSchema: batchSchemas.emails,
    accept: 'accept_emails',
    responses: { sent: 'sentEmail', batch: 'emailBatch', message: 'email', list: 'emails' },
    itemRefusals: ['domain_not_verified', 'recipient_suppressed', 'plan_allowance_exceeded'],
  },
  sms: {
    nouns: ['an SMS', 'SMS'],
    path: '/v1/sms',
    scope: 'sms:send',
    schema: smsSchema,
    batchSchema: batchSchemas.messages,
    accept: 'accept_sms',
    responses: { sent: 'sentSms', batch: 'smsBatch', message: 'sms', list: 'smsList' },
    itemRefusals: ['insufficient_credits'],
  },
}

const callRefusals: Code[] = [
  'invalid_json',
  'validation_error',
  'idempotency_conflict',
  'org_paused',
]

/**
 * The endpoints of a channel: send one message, send a batch, list messages, retrieve
 * one (src/docs/api.md#emails,
 * src/docs/api.md#sms).
 */
export function messageEndpoints(name: keyof typeof channels, options: AcceptOptions) {
  const { nouns, path, scope, schema, batchSchema, responses, itemRefusals } = channels[name]
  const [one, many] = nouns
  const accept = acceptor(channels[name].accept, scope, options)

  const endpoints: Endpoint[] = [
    {
      method: 'POST',
      kind: name,
      path,
      scope,
      summary: `Send ${one}`,
      request: schema,
      response: responses.sent,
      refusals: [...callRefusals, ...itemRefusals],
      handle: (request: SendRequest) => accept(request, false),
      admitAndHandle: accept.withAdmission,
    },
    {
      method: 'POST',
      kind: `${name} batch`,
      path: `${path}/batch`,
      scope,
      summary: `Send up to 1 000 ${many}, each accepted or refused on its own`,
      request: batchSchema,
      response: responses.batch,
      refusals: callRefusals,
      handle: (request: SendRequest) => accept(request, true),
    },
    {
      method: 'GET',
      path,
      scope: 'read',
      summary: `List ${many}, newest first`,
      query: messageQueries[name],
      response: responses.list,
      refusals: ['validation_error'],
      async handle({ admission, query }) {
        const parsed = parseListing(name, query)
        if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
        const organisation_id = admission.organisationId
        return reply(200, await options.call('list_messages', { organisation_id, ...parsed.value }))
      },
    },
    {
      method: 'GET',
      path: `${path}/:id`,
      scope: 'read',
      summary: `Retrieve ${one} with its timeline`,
      response: responses.message,
      refusals: ['not_found'],
      async handle({ admission, id }) {
        const organisation_id = admission.organisationId
        return found(await options.call('get_message', { organisation_id, channel: name, id }))
      },
    },
  ]
  return { endpoints, idle: accept.idle }
}
