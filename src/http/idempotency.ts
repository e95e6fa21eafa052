import type { PostRequest } from './endpoint.ts'

/**
 * What SQL knows a call by (interface 4.12): whose it is, the key under which its answer is kept, if
 * the caller gave one, and what that key stands for.
 */
export function callOf({ admission, idempotencyKey, fingerprint }: PostRequest) {
  return {
    organisation_id: admission.organisationId,
    mode: admission.mode,
    fingerprint,
    ...(idempotencyKey === null ? {} : { key: `caller:${idempotencyKey}` }),
  }
}
