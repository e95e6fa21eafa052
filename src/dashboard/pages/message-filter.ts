import * as v from 'valibot'
import { enums, type MessageFilter } from '../../db/api.gen.ts'
import type { Fields } from '../../errors.ts'
import { parseBareAddress } from '../../schemas/address.ts'
import { checkedBy, line, parseBody } from '../../schemas/fields.ts'
import { asStored } from '../../schemas/suppression.ts'
import { parseMoment } from '../../schemas/timestamp.ts'
import { storable } from '../../text/storable.ts'

/** The query parameters of the list of messages. */
const PARAMETERS = [
  'status',
  'channel',
  'class',
  'mode',
  'tag',
  'to',
  'from',
  'since',
  'until',
  'q',
] as const

const NUMBER = /^\+?[1-9][\d ()-]{5,20}$/
const MESSAGE_ID = /^(?:em|sm)_[0-7][0-9a-hjkmnp-tv-z]{25}$/

/** The words of the search box: name:word, name:"several words", a word, or "several words". */
const TERMS = /(?:([a-z]+):)?(?:"([^"]*)"|(\S+))/gi

/** What the terms of the search box are called, and the filter of each. */
const TERM_FILTERS = new Map<string, keyof MessageFilter>([
  ['to', 'to'],
  ['from', 'from'],
  ['tag', 'tag'],
  ['status', 'status'],
  ['subject', 'subject'],
  ['before', 'until'],
  ['since', 'since'],
])

/** A timestamp, or a date, which is its start in UTC. The output is a timestamp in UTC. */
const moment = checkedBy(v.string(), (value, report): string | undefined => {
  const parsed = parseMoment(String(value))
  if ('utc' in parsed) return parsed.utc
  report('must be a date, as 2026-11-23')
})

/** An address or a number, as they are stored. */
const recipient = checkedBy(v.string(), (value, report): string | undefined => {
  const text = String(value)
  const found = recipientIn(text)
  if (found) return found
  report('must be a whole address or number, as ann@example.com or +27821234567')
})

const oneOf = <const Values extends readonly string[]>(values: Values) =>
  v.exactOptional(v.picklist(values, `must be one of ${values.join(', ')}`))

const filterSchema = v.strictObject({
  status: oneOf(enums.message_status),
  channel: oneOf(enums.channel),
  class: oneOf(enums.class),
  mode: oneOf(enums.mode),
  tag: v.exactOptional(line(100)),
  to: v.exactOptional(recipient),
  from: v.exactOptional(line(254)),
  since: v.exactOptional(moment),
  until: v.exactOptional(moment),
  subject: v.exactOptional(line(998)),
})

/** A search for messages, as the query of a page has it. */
export type Search = {
  filter: MessageFilter
  /** What was given, by parameter. */
  given: Readonly<Record<string, string>>
  /** What is wrong with it, by parameter; then `filter` is empty. */
  problems: Fields | null
  /** The ID of a message, if the search box has one and nothing else. */
  messageId: string | null
}

/** Reads the filters and the search box. What the box says replaces the filter of the same name. */
export function parseSearch(query: Readonly<Record<string, string>>): Search {
  const given = Object.fromEntries(
    PARAMETERS.map((name) => [name, storable(query[name] ?? '').trim()]).filter(([, text]) => text),
  ) as Record<string, string>
  const { q = '', ...filters } = given
  if (MESSAGE_ID.test(q)) return { filter: {}, given, problems: null, messageId: q }
  const { terms, problems } = parseBox(q)
  const parsed = parseBody(filterSchema, { ...filters, ...terms })
  const found = { ...('fields' in parsed ? parsed.fields : {}) }
  // A problem of a term is shown beside the box.
  for (const [name, sentences] of Object.entries(found)) {
    if (!(name in terms)) continue
    problems.push(...sentences.map((sentence) => `${name} ${sentence}`))
    delete found[name]
  }
  if ('fields' in parsed || problems.length > 0) {
    const all = problems.length > 0 ? { ...found, q: problems } : found
    return { filter: {}, given, problems: all, messageId: null }
  }
  const { from, ...filter } = parsed.value
  return {
    filter: { ...filter, ...(from !== undefined && { from: asStored(from) }) },
    given,
    problems: null,
    messageId: null,
  }
}

/** The parameters of a search as a query string: ?status=failed, or nothing. */
export function queryOf(
  given: Readonly<Record<string, string>>,
  more: Record<string, string> = {},
): string {
  const query = new URLSearchParams({ ...given, ...more }).toString()
  return query && `?${query}`
}

function parseBox(q: string) {
  const terms: Record<string, string> = {}
  const problems: string[] = []
  const words: string[] = []
  const add = (name: string, value: string) => {
    if (name in terms) problems.push(`${name} can be given once`)
    terms[name] = value
  }
  for (const [whole, name = '', quoted, word = ''] of q.matchAll(TERMS)) {
    const filter = TERM_FILTERS.get(name.toLowerCase())
    if (filter && quoted !== '') add(filter, quoted ?? word)
    else words.push(name || quoted === undefined ? whole : quoted)
  }
  const text = words.join(' ')
  // A number without a plus may as well be that of an order.
  if (text) add(/[@+]/.test(text) && recipientIn(text) ? 'to' : 'subject', text)
  return { terms, problems }
}

/** Returns the address or number that a text is, as it is stored; null for other texts. */
function recipientIn(text: string): string | null {
  const parsed = parseBareAddress(text)
  if (!('problem' in parsed)) return parsed.address.toLowerCase()
  return NUMBER.test(text) ? `+${text.replaceAll(/\D/g, '')}` : null
}
