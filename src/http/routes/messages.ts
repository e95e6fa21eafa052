import * as v from 'valibot'
import { type Code, Refusal } from '../../errors.ts'
import { type AcceptFunction, type AcceptOptions, acceptor, type SendRequest } from '../accept.ts'
import type { Scope } from '../admit.ts'
import type { Endpoint, ResponseName } from '../endpoint.ts'
import { reply } from '../reply.ts'

/** The differences between the endpoints of email and of SMS. */
export type Channel = {
  name: 'email' | 'sms'
  /** The words for one message and for many in summaries. */
  nouns: readonly [one: string, many: string]
  path: `/v1/${string}`
  scope: Scope
  /** The field of a batch that holds its items. */
  list: 'emails' | 'messages'
  schema: v.GenericSchema
  accept: AcceptFunction
  responses: { sent: ResponseName; batch: ResponseName; message: ResponseName }
  /** The error codes of an item, besides validation_error. */
  itemRefusals: readonly Code[]
}

const callRefusals: Code[] = [
  'invalid_json',
  'validation_error',
  'idempotency_conflict',
  'org_paused',
]

/** The endpoints that both channels have: send one message, send a batch, retrieve a message. */
export function messagesRouter(channel: Channel, options: AcceptOptions) {
  const { name, path, scope, list, schema, responses } = channel
  const [one, many] = channel.nouns
  const { call } = options
  const accept = acceptor(channel.accept, options)

  const endpoints: Endpoint[] = [
    {
      method: 'POST',
      kind: name,
      path,
      scope,
      summary: `Send ${one}`,
      request: schema,
      response: responses.sent,
      refusals: [...callRefusals, ...channel.itemRefusals],
      handle: (request: SendRequest) => accept(request, false),
    },
    {
      method: 'POST',
      kind: `${name} batch`,
      path: `${path}/batch`,
      scope,
      summary: `Send up to 1 000 ${many}, each accepted or refused on its own`,
      request: v.strictObject({
        [list]: v.pipe(v.array(schema), v.minLength(1), v.maxLength(1000)),
      }),
      response: responses.batch,
      refusals: callRefusals,
      handle: (request: SendRequest) => accept(request, true),
    },
    {
      method: 'GET',
      path: `${path}/:id`,
      scope: 'read',
      summary: `Retrieve ${one} with its timeline`,
      response: responses.message,
      refusals: ['not_found'],
      async handle({ admission, params }) {
        const body = await call('get_message', {
          organisation_id: admission.organisationId,
          channel: channel.name,
          id: params.id ?? '',
        })
        if (body === null) throw new Refusal('not_found')
        return reply(200, body)
      },
    },
  ]
  return { endpoints, idle: accept.idle }
}
