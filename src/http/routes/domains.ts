import type { Call } from '../../db/call.ts'
import type { Registry } from '../../domains/registry.ts'
import type { Code } from '../../errors.ts'
import { domainSchema } from '../../schemas/domain.ts'
import { nothingSchema } from '../body/post-body.ts'
import type { Endpoint } from '../endpoint.ts'
import { callOf } from '../idempotency.ts'
import { found, replied, reply } from '../reply.ts'

const providerRefusals: Code[] = ['email_provider_unavailable', 'idempotency_conflict']

/** The endpoints of sending domains (src/docs/api.md#domains). */
export function domainEndpoints(call: Call, registry: Registry): Endpoint[] {
  return [
    {
      method: 'POST',
      asksProvider: true,
      kind: 'domain',
      path: '/v1/domains',
      scope: 'domains:write',
      summary: 'Add a sending domain and return the DNS records to publish',
      request: domainSchema,
      response: 'domain',
      statuses: [200, 201],
      refusals: [
        'invalid_json',
        'validation_error',
        'already_exists',
        'plan_limit_reached',
        ...providerRefusals,
      ],
      async handle(request) {
        return replied(await registry.add(callOf(request), request.body.name))
      },
    },
    {
      method: 'GET',
      path: '/v1/domains',
      scope: 'read',
      summary: 'List the sending domains, newest first',
      response: 'domains',
      refusals: [],
      async handle({ admission }) {
        const list = await call('list_domains', { organisation_id: admission.organisationId })
        return reply(200, `{"data":${list}}`)
      },
    },
    {
      method: 'GET',
      path: '/v1/domains/:id',
      scope: 'read',
      summary: 'Retrieve a sending domain with its records',
      response: 'domain',
      refusals: ['not_found'],
      async handle({ admission, id }) {
        return found(await call('get_domain', { organisation_id: admission.organisationId, id }))
      },
    },
    {
      method: 'POST',
      asksProvider: true,
      kind: 'nothing',
      path: '/v1/domains/:id/verify',
      scope: 'domains:write',
      summary: 'Check a sending domain with the provider and public DNS now',
      request: nothingSchema,
      response: 'domain',
      refusals: ['not_found', 'invalid_json', 'validation_error', ...providerRefusals],
      async handle(request) {
        return replied(await registry.verify(callOf(request), request.id))
      },
    },
    {
      method: 'DELETE',
      asksProvider: true,
      path: '/v1/domains/:id',
      scope: 'domains:write',
      summary: 'Delete a sending domain; later sends from it are refused',
      response: 'deleted',
      refusals: ['not_found', 'email_provider_unavailable'],
      async handle({ admission, id }) {
        return replied(await registry.remove(admission.organisationId, id))
      },
    },
  ]
}
