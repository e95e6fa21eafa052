import * as v from 'valibot'
import { emailSchema } from './email.ts'
import { checkedBy, type Parsed, parseBody } from './fields.ts'
import { tooMany } from './limits.ts'
import { smsSchema } from './sms.ts'

const MAX_ITEMS = 1000

/** The bodies of batches, by the field with the items. The items are not checked: each has its own result. */
export const batchSchemas = {
  emails: batchOf('emails', emailSchema),
  messages: batchOf('messages', smsSchema),
}

function batchOf(list: string, item: v.GenericSchema) {
  const shape = v.pipe(v.array(item), v.minLength(1), v.maxLength(MAX_ITEMS))
  const items = checkedBy(shape, (value, report): unknown[] | undefined => {
    if (!Array.isArray(value)) {
      report('must be an array')
      return
    }
    if (value.length < 1) report('must have at least 1 item')
    if (value.length > MAX_ITEMS) report(tooMany(MAX_ITEMS, 'items', value.length))
    return value
  })
  return v.strictObject({ [list]: items })
}

/** Returns the 1 to 1 000 items of a batch body `{[list]: […]}`, unchecked. */
export function parseBatch(input: unknown, list: keyof typeof batchSchemas): Parsed<unknown[]> {
  const parsed = parseBody(batchSchemas[list], input)
  return 'fields' in parsed ? parsed : { value: parsed.value[list] ?? [] }
}
