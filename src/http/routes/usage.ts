import type { Call } from '../../db/call.ts'
import type { Endpoint } from '../endpoint.ts'
import { reply } from '../reply.ts'

/** What an organisation has used of its plan (interface 4.13). */
export function usageEndpoint(call: Call): Endpoint {
  return {
    method: 'GET',
    path: '/v1/usage',
    scope: 'read',
    summary: 'Plan, billing period, and what is used and left of it',
    answer: 'usage',
    refusals: [],
    async handle({ admission }) {
      return reply(200, await call('get_usage', { organisation_id: admission.organisationId }))
    },
  }
}
