import { enums } from '../db/api.gen.ts'
import { catalogue } from '../errors.ts'

/** A JSON Schema. */
export type Schema = Record<string, unknown>

const string = { type: 'string' }
const boolean = { type: 'boolean' }
const count = { type: 'integer', minimum: 0 }
const timestamp = { type: 'string', format: 'date-time' }
const orNull = (schema: Schema) => ({ anyOf: [schema, { type: 'null' }] })
const arrayOf = (items: Schema, description?: string): Schema => ({
  type: 'array',
  ...(description && { description }),
  items,
})
const object = (properties: Record<string, Schema>, required?: string[]): Schema => ({
  type: 'object',
  ...(required && { required }),
  properties,
})
const idOf = (prefix: string) => ({ type: 'string', pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$` })

/** The error object (src/docs/api.md#error-object). */
export const error = object(
  {
    code: { enum: Object.keys(catalogue) },
    message: string,
    docs: { type: 'string', format: 'uri' },
    fields: {
      type: 'object',
      additionalProperties: arrayOf(string),
      description: 'Problems by dotted path into the body; `_` lists those of the whole request.',
    },
  },
  ['code', 'message', 'docs'],
)

const suppression = object({
  id: string,
  email: string,
  reason: { enum: enums.suppression_reason },
  messageId: orNull(string),
  note: string,
  createdAt: timestamp,
})

/** The successful statuses and their descriptions. */
export const successes = { 200: 'Success.', 201: 'Created.' }

const dnsRecord = object({
  purpose: { enum: ['dkim', 'mail_from_mx', 'mail_from_spf', 'dmarc'] },
  type: { enum: ['CNAME', 'MX', 'TXT'] },
  name: string,
  value: string,
  required: boolean,
  status: { enum: ['pending', 'verified', 'missing', 'mismatch'] },
  found: arrayOf(string),
})

const domain = object({
  id: idOf('dom'),
  name: string,
  status: { enum: enums.domain_status },
  mailFromDomain: string,
  records: arrayOf(dnsRecord, 'The DNS records to publish.'),
  verifiedAt: orNull(timestamp),
  lastCheckedAt: timestamp,
  createdAt: timestamp,
})

const mode = { enum: enums.mode }
const emailId = idOf('em')
const smsId = idOf('sm')
const price = {
  segments: { type: 'integer', minimum: 1, maximum: 10 },
  credits: { ...count, description: 'The number of segments paid with prepaid credits.' },
}
const acceptedEmail = { id: emailId, status: { const: 'queued' } }
const acceptedSms = { id: smsId, status: { enum: ['queued', 'scheduled'] }, ...price }
/** Present only if there is something to warn of. */
const warning = {
  type: 'object',
  description:
    'Only for a marketing SMS without an opt-out footer: the SMS will be rejected for this reason.',
  properties: { code: { const: 'opt_out_footer_missing' }, message: string },
}

/** The response to a single send, made of the data of a batch result. */
const sent = (accepted: Record<string, Schema>, optional: Record<string, Schema> = {}) =>
  object({ ...accepted, ...optional, mode }, [...Object.keys(accepted), 'mode'])

const batch = (accepted: Record<string, Schema>) => {
  const properties = { index: { type: 'integer' }, ok: boolean, data: object(accepted), error }
  const result = object(properties, ['index', 'ok'])
  return object({ results: arrayOf(result, 'The results, in the order of the request.') }, [
    'results',
  ])
}

/** The fields of the message object of a channel without its timeline; those of the channel alone come last. */
const messageFields = (
  channel: 'email' | 'sms',
  statuses: string,
  own: Record<string, Schema> = {},
): Record<string, Schema> => ({
  id: channel === 'email' ? emailId : smsId,
  channel: { const: channel },
  class: { enum: enums.class },
  status: { enum: statuses.split(' ') },
  to: string,
  from: string,
  subject: channel === 'email' ? string : { type: 'null' },
  tags: arrayOf(string),
  error: orNull(object({ code: string, message: orNull(string) })),
  createdAt: timestamp,
  sentAt: orNull(timestamp),
  deliveredAt: orNull(timestamp),
  ...own,
})

const emailFields = messageFields(
  'email',
  'queued sent delivered bounced complained failed rejected',
)
const smsFields = messageFields('sms', 'scheduled queued sent delivered failed expired rejected', {
  ...price,
  scheduledAt: orNull(timestamp),
})
const events = arrayOf(object({ type: string, occurredAt: timestamp, detail: { type: 'object' } }))

/** A page of a list. */
const pageOf = (item: Schema) =>
  object({ data: arrayOf(item, 'Newest first.'), nextCursor: orNull(string) })

const usage = object({
  plan: object({ id: string, name: string, priceRand: count }),
  period: object({ start: timestamp, end: timestamp }),
  emails: {
    type: 'object',
    description: 'Counts recipients.',
    properties: { used: count, included: count, remaining: count },
  },
  sms: {
    type: 'object',
    description:
      'Counts segments; credits are prepaid segments on top of those that the plan includes.',
    properties: { used: count, included: count, remaining: count, credits: count },
  },
  domains: object({ used: count, included: count }),
})

/** JSON Schemas of successful responses by the names that endpoints use. */
export const responseSchemas = {
  sentEmail: sent(acceptedEmail),
  emailBatch: batch(acceptedEmail),
  email: object({ ...emailFields, events }),
  emails: pageOf(object(emailFields)),
  sentSms: sent(acceptedSms, { warning }),
  smsBatch: batch({ ...acceptedSms, warning }),
  sms: object({ ...smsFields, events }),
  smsList: pageOf(object(smsFields)),
  domain,
  domains: object({ data: arrayOf(domain) }),
  usage,
  suppression,
  suppressions: pageOf(suppression),
  deleted: object({ id: string, deleted: { const: true } }),
} satisfies Record<string, Schema>
