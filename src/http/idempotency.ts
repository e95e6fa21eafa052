import type { PostRequest } from './endpoint.ts'

/** The idempotency arguments of api functions: `key` is absent if the caller sent no Idempotency-Key. */
export function callOf({ admission, idempotencyKey, fingerprint }: PostRequest) {
  return {
    organisation_id: admission.organisationId,
    mode: admission.mode,
    fingerprint,
    ...(idempotencyKey === null ? {} : { key: `caller:${idempotencyKey}` }),
  }
}
