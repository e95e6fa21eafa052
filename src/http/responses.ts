import { catalogue } from '../errors.ts'

/** A JSON Schema. */
export type Schema = Record<string, unknown>

const timestamp = { type: 'string', format: 'date-time' }
const orNull = (schema: Schema) => ({ anyOf: [schema, { type: 'null' }] })

/** The error object (src/docs/api.md#error-object). */
export const error: Schema = {
  type: 'object',
  required: ['code', 'message', 'docs'],
  properties: {
    code: { enum: Object.keys(catalogue) },
    message: { type: 'string' },
    docs: { type: 'string', format: 'uri' },
    fields: {
      type: 'object',
      additionalProperties: { type: 'array', items: { type: 'string' } },
      description: 'Problems by dotted path into the body; `_` lists those of the whole request.',
    },
  },
}

const suppression = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    email: { type: 'string' },
    reason: { enum: ['hard_bounce', 'complaint', 'unsubscribe', 'manual'] },
    messageId: orNull({ type: 'string' }),
    note: { type: 'string' },
    createdAt: timestamp,
  },
}

/** The successful statuses and their descriptions. */
export const successes = { 200: 'Success.', 201: 'Created.' }

const domain: Schema = {
  type: 'object',
  properties: {
    id: { type: 'string', pattern: '^dom_[0-9a-hjkmnp-tv-z]{26}$' },
    name: { type: 'string' },
    status: { enum: ['pending', 'verified', 'failed'] },
    mailFromDomain: { type: 'string' },
    records: {
      type: 'array',
      description: 'The DNS records to publish.',
      items: {
        type: 'object',
        properties: {
          purpose: { enum: ['dkim', 'mail_from_mx', 'mail_from_spf', 'dmarc'] },
          type: { enum: ['CNAME', 'MX', 'TXT'] },
          name: { type: 'string' },
          value: { type: 'string' },
          required: { type: 'boolean' },
          status: { enum: ['pending', 'verified', 'missing', 'mismatch'] },
          found: { type: 'array', items: { type: 'string' } },
        },
      },
    },
    verifiedAt: orNull(timestamp),
    lastCheckedAt: timestamp,
    createdAt: timestamp,
  },
}

const mode = { enum: ['live', 'test'] }
const emailId = { type: 'string', pattern: '^em_[0-9a-hjkmnp-tv-z]{26}$' }
const smsId = { type: 'string', pattern: '^sm_[0-9a-hjkmnp-tv-z]{26}$' }
const price = {
  segments: { type: 'integer', minimum: 1, maximum: 10 },
  credits: {
    type: 'integer',
    minimum: 0,
    description: 'The number of segments paid with prepaid credits.',
  },
}
const acceptedEmail = { id: emailId, status: { const: 'queued' } }
const acceptedSms = { id: smsId, status: { enum: ['queued', 'scheduled'] }, ...price }
/** Present only if there is something to warn of. */
const warning = {
  type: 'object',
  description:
    'Only for a marketing SMS without an opt-out footer: the SMS will be rejected for this reason.',
  properties: { code: { const: 'opt_out_footer_missing' }, message: { type: 'string' } },
}

/** The response to a single send, made of the data of a batch result. */
const sent = (accepted: Schema, optional: Schema = {}): Schema => ({
  type: 'object',
  required: [...Object.keys(accepted), 'mode'],
  properties: { ...accepted, ...optional, mode },
})

const batch = (accepted: Schema): Schema => ({
  type: 'object',
  required: ['results'],
  properties: {
    results: {
      type: 'array',
      description: 'The results, in the order of the request.',
      items: {
        type: 'object',
        required: ['index', 'ok'],
        properties: {
          index: { type: 'integer' },
          ok: { type: 'boolean' },
          data: { type: 'object', properties: accepted },
          error,
        },
      },
    },
  },
})

/** The message object of a channel; the fields of the channel come before the timeline. */
const message = (id: Schema, channel: string, statuses: string, own: Schema = {}): Schema => ({
  type: 'object',
  properties: {
    id,
    channel: { const: channel },
    class: { enum: ['transactional', 'marketing'] },
    status: { enum: statuses.split(' ') },
    to: { type: 'string' },
    from: { type: 'string' },
    subject: channel === 'email' ? { type: 'string' } : { type: 'null' },
    tags: { type: 'array', items: { type: 'string' } },
    error: orNull({
      type: 'object',
      properties: { code: { type: 'string' }, message: orNull({ type: 'string' }) },
    }),
    createdAt: timestamp,
    sentAt: orNull(timestamp),
    deliveredAt: orNull(timestamp),
    ...own,
    events: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          type: { type: 'string' },
          occurredAt: timestamp,
          detail: { type: 'object' },
        },
      },
    },
  },
})

const count = { type: 'integer', minimum: 0 }
const usage: Schema = {
  type: 'object',
  properties: {
    plan: {
      type: 'object',
      properties: { id: { type: 'string' }, name: { type: 'string' }, priceRand: count },
    },
    period: { type: 'object', properties: { start: timestamp, end: timestamp } },
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
    domains: { type: 'object', properties: { used: count, included: count } },
  },
}

/** JSON Schemas of successful responses by the names that endpoints use. */
export const responseSchemas = {
  sentEmail: sent(acceptedEmail),
  emailBatch: batch(acceptedEmail),
  email: message(emailId, 'email', 'queued sent delivered bounced complained failed rejected'),
  sentSms: sent(acceptedSms, { warning }),
  smsBatch: batch({ ...acceptedSms, warning }),
  sms: message(smsId, 'sms', 'scheduled queued sent delivered failed expired rejected', {
    ...price,
    scheduledAt: orNull(timestamp),
  }),
  domain,
  domains: { type: 'object', properties: { data: { type: 'array', items: domain } } },
  usage,
  suppression,
  suppressions: {
    type: 'object',
    properties: {
      data: { type: 'array', description: 'Newest first.', items: suppression },
      nextCursor: orNull({ type: 'string' }),
    },
  },
  deleted: {
    type: 'object',
    properties: { id: { type: 'string' }, deleted: { const: true } },
  },
} satisfies Record<string, Schema>
