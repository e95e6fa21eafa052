import type { Admission } from '../db/api.gen.ts'
import type { Fields } from '../schemas/fields.ts'

// ASCII only: Node decodes header bytes as Latin-1, which garbles other characters.
const KEY = /^[ -~]{1,255}$/

/** Checks an Idempotency-Key header; the key is null if there is no header. */
export function parseIdempotencyKey(
  header: string | undefined,
): { key: string | null } | { fields: Fields } {
  if (header === undefined) return { key: null }
  if (KEY.test(header)) return { key: header }
  return { fields: { _: ['Idempotency-Key must be 1 to 255 printable ASCII characters'] } }
}

type KeyedRequest = {
  admission: Pick<Admission, 'organisationId' | 'mode'>
  idempotencyKey: string | null
  fingerprint: string
}

/** The idempotency arguments of api functions: `key` is absent if the caller sent no Idempotency-Key. */
export function callOf({ admission, idempotencyKey, fingerprint }: KeyedRequest) {
  return {
    organisation_id: admission.organisationId,
    mode: admission.mode,
    fingerprint,
    ...(idempotencyKey === null ? {} : { key: `caller:${idempotencyKey}` }),
  }
}
