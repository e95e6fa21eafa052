import * as v from 'valibot'
import { checkedBy, type Fields, parseBody } from './fields.ts'
import { tooMany } from './limits.ts'

const MAX_ITEMS = 1000

const items = checkedBy(
  v.pipe(v.array(v.unknown()), v.minLength(1), v.maxLength(MAX_ITEMS)),
  (value, report): unknown[] | undefined => {
    if (!Array.isArray(value)) {
      report('must be an array')
      return
    }
    if (value.length < 1) report('must have at least 1 item')
    if (value.length > MAX_ITEMS) report(tooMany(MAX_ITEMS, 'items', value.length))
    return value
  },
)

function batchOf(list: string) {
  return v.strictObject({ [list]: items })
}

const schemas = { emails: batchOf('emails'), messages: batchOf('messages') }

/** Returns the 1 to 1 000 items of a batch body `{[list]: […]}` without checking them: each has its own result. */
export function parseBatch(
  input: unknown,
  list: keyof typeof schemas,
): { items: unknown[] } | { fields: Fields } {
  const parsed = parseBody(schemas[list], input)
  return 'fields' in parsed ? parsed : { items: parsed.output[list] ?? [] }
}
