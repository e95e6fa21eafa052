import type { Fields } from './fields.ts'

// Interface 4.12. Node reads header bytes as Latin-1, so anything beyond ASCII is not what was meant.
const KEY = /^[ -~]{1,255}$/

/** The value of an Idempotency-Key header, null when there is none. */
export function parseIdempotencyKey(
  header: string | undefined,
): { key: string | null } | { fields: Fields } {
  if (header === undefined) return { key: null }
  if (KEY.test(header)) return { key: header }
  return { fields: { _: ['Idempotency-Key must be 1 to 255 printable ASCII characters'] } }
}
