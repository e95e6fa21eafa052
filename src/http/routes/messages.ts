import * as v from 'valibot'
import { type Code, Refusal } from '../../errors.ts'
import { type AcceptFunction, type AcceptOptions, acceptor, type SendRequest } from '../accept.ts'
import type { Scope } from '../admit.ts'
import type { AnswerName, Endpoint } from '../endpoint.ts'
import { reply } from '../reply.ts'

/** How the messages of a channel are sent and shown. */
export type Channel = {
  name: 'email' | 'sms'
  /** Of one message and of many, as summaries call them. */
  nouns: readonly [one: string, many: string]
  path: `/v1/${string}`
  scope: Scope
  /** The field of a batch that holds its items. */
  list: 'emails' | 'messages'
  schema: v.GenericSchema
  accept: AcceptFunction
  answers: { sent: AnswerName; batch: AnswerName; message: AnswerName }
  /** What an item is refused for, beyond its fields. */
  itemRefusals: readonly Code[]
}

const callRefusals: Code[] = [
  'invalid_json',
  'validation_error',
  'idempotency_conflict',
  'org_paused',
]

/** Send one, send a batch, retrieve: the endpoints that both channels have (interface 4.1 to 4.3, 4.11). */
export function messagesRouter(channel: Channel, options: AcceptOptions) {
  const { name, path, scope, list, schema, answers } = channel
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
      answer: answers.sent,
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
      answer: answers.batch,
      refusals: callRefusals,
      handle: (request: SendRequest) => accept(request, true),
    },
    {
      method: 'GET',
      path: `${path}/:id`,
      scope: 'read',
      summary: `Retrieve ${one} with its timeline`,
      answer: answers.message,
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
