import * as v from 'valibot'
import { enums, type MessageFilter } from '../db/api.gen.ts'
import { checkedBy, line, type Parsed, parseBody } from './fields.ts'
import { messageClass, tag } from './message.ts'
import { page } from './page.ts'
import { phone } from './sms.ts'
import { asStored, bareAddress } from './suppression.ts'
import { parseMoment } from './timestamp.ts'

const MAX_SENDER_LENGTH = 254

/** A parameter that is checked by a schema; a repeated one is an array, which is refused. */
function once<const S extends v.GenericSchema<unknown, string>>(schema: S) {
  const optional = checkedBy(schema, (value, report): v.InferOutput<S> | undefined => {
    if (Array.isArray(value)) {
      report('must be given once')
      return
    }
    const { success, output, issues = [] } = v.safeParse(schema, value)
    for (const { message } of issues) report(message)
    if (success) return output
  })
  return v.exactOptional(optional)
}

function oneOf<const Values extends readonly string[]>(values: Values) {
  return once(v.picklist(values, `must be one of ${values.join(', ')}`))
}

/** A timestamp, or a date, which means its start in UTC. The output is a timestamp in UTC. */
const moment = checkedBy(v.string(), (value, report): string | undefined => {
  const parsed = parseMoment(String(value))
  if ('utc' in parsed) return parsed.utc
  report(parsed.problem)
})

const filters = {
  class: once(messageClass),
  mode: oneOf(enums.mode),
  tag: once(tag),
  from: once(line(MAX_SENDER_LENGTH)),
  since: once(moment),
  until: once(moment),
  ...page,
}

/** The queries of GET /v1/emails and GET /v1/sms. */
export const messageQueries = {
  email: v.strictObject({
    status: oneOf(['queued', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'rejected']),
    to: once(bareAddress),
    ...filters,
  }),
  sms: v.strictObject({
    status: oneOf(['scheduled', 'queued', 'sent', 'delivered', 'failed', 'expired', 'rejected']),
    to: once(phone),
    ...filters,
  }),
}

/** The arguments of api.list_messages without the organisation. */
type Listing = { filter: MessageFilter; page_size: number; cursor?: string }

/** Parses the query of a list of messages of a channel. */
export function parseListing(
  channel: keyof typeof messageQueries,
  query: unknown,
): Parsed<Listing> {
  const parsed = parseBody(messageQueries[channel], query)
  if ('fields' in parsed) return parsed
  const { limit, cursor, from, ...filter } = parsed.value
  return {
    value: {
      filter: { channel, ...filter, ...(from !== undefined && { from: asStored(from) }) },
      page_size: limit,
      ...(cursor !== undefined && { cursor }),
    },
  }
}
