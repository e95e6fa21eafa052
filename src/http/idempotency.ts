import type { Admission } from '../db/api.gen.ts'
import type { Parsed } from '../schemas/fields.ts'

// ASCII only: Node decodes header bytes as Latin-1, which garbles other characters.
const KEY = /^[ -~]{1,255}$/

/** Checks an Idempotency-Key header; the value is null if there is no header. */
export function parseIdempotencyKey(header: string | undefined): Parsed<string | null> {
  if (header === undefined) return { value: null }
  if (KEY.test(header)) return { value: header }
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
    ...(idempotencyKey !== null && { key: `caller:${idempotencyKey}` }),
  }
}
