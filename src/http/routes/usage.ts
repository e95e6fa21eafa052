import type { Call } from '../../db/call.ts'
import type { Endpoint } from '../endpoint.ts'
import { reply } from '../reply.ts'

/** GET /v1/usage (src/docs/api.md#usage). */
export function usageEndpoint(call: Call): Endpoint {
  return {
    method: 'GET',
    path: '/v1/usage',
    scope: 'read',
    summary: 'Retrieve the plan, the billing period, and used and remaining allowances',
    response: 'usage',
    refusals: [],
    async handle({ admission }) {
      return reply(200, await call('get_usage', { organisation_id: admission.organisationId }))
    },
  }
}
