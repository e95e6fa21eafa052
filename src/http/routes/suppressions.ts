import type { Reply } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import { parseBody } from '../../schemas/fields.ts'
import { asStored, suppressionSchema, suppressionsQuery } from '../../schemas/suppression.ts'
import type { Endpoint } from '../endpoint.ts'
import { callOf } from '../idempotency.ts'
import { replied, reply } from '../reply.ts'

/** GET and POST /v1/suppressions, DELETE /v1/suppressions/{id} (src/docs/api.md#suppressions). */
export function suppressionEndpoints(call: Call): Endpoint[] {
  return [
    {
      method: 'GET',
      path: '/v1/suppressions',
      scope: 'read',
      summary: 'List suppressed addresses, newest first',
      query: suppressionsQuery,
      response: 'suppressions',
      refusals: ['validation_error'],
      async handle({ admission, query }) {
        const parsed = parseBody(suppressionsQuery, query)
        if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
        const { limit, email, ...rest } = parsed.value
        const page = await call('list_suppressions', {
          organisation_id: admission.organisationId,
          page_size: limit,
          ...(email !== undefined && { email: asStored(email) }),
          ...rest,
        })
        return reply(200, page)
      },
    },
    {
      method: 'POST',
      kind: 'suppression',
      path: '/v1/suppressions',
      scope: 'emails:send',
      summary: 'Suppress an address',
      request: suppressionSchema,
      response: 'suppression',
      statuses: [201, 200],
      refusals: ['invalid_json', 'validation_error', 'idempotency_conflict'],
      async handle(request) {
        const [row] = await call('add_suppression', { ...callOf(request), ...request.body })
        return replied(row as Reply)
      },
    },
    {
      method: 'DELETE',
      path: '/v1/suppressions/:id',
      scope: 'emails:send',
      summary: 'Delete a suppression',
      response: 'deleted',
      refusals: ['not_found'],
      async handle({ admission, id }) {
        await call('delete_suppression', { organisation_id: admission.organisationId, id })
        return { status: 200, body: JSON.stringify({ id, deleted: true }) }
      },
    },
  ]
}
