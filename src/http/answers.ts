import { catalogue } from '../errors.ts'

/** A JSON Schema. */
export type Schema = Record<string, unknown>

const timestamp = { type: 'string', format: 'date-time' }
const orNull = (schema: Schema) => ({ anyOf: [schema, { type: 'null' }] })

/** The error of interface section 7. */
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
      description: 'Problems by dotted path into the body; _ for the request as a whole.',
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

/** What the statuses of answers say. */
export const successes = { 200: 'Done.', 201: 'Made.' }

const domain: Schema = {
  type: 'object',
  properties: {
    id: { type: 'string', pattern: '^dom_[0-9a-hjkmnp-tv-z]{26}$' },
    name: { type: 'string' },
    status: { enum: ['pending', 'verified', 'failed'] },
    mailFromDomain: { type: 'string' },
    records: {
      type: 'array',
      description: 'To publish in DNS.',
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

/** JSON Schemas of what endpoints answer, by the names by which they refer to them. */
export const answers = {
  sent: {
    type: 'object',
    required: ['id', 'status', 'mode'],
    properties: {
      id: { type: 'string', pattern: '^em_[0-9a-hjkmnp-tv-z]{26}$' },
      status: { const: 'queued' },
      mode: { enum: ['live', 'test'] },
    },
  },
  batch: {
    type: 'object',
    required: ['results'],
    properties: {
      results: {
        type: 'array',
        description: 'In the order of the request.',
        items: {
          type: 'object',
          required: ['index', 'ok'],
          properties: {
            index: { type: 'integer' },
            ok: { type: 'boolean' },
            data: {
              type: 'object',
              properties: { id: { type: 'string' }, status: { const: 'queued' } },
            },
            error,
          },
        },
      },
    },
  },
  domain,
  domains: { type: 'object', properties: { data: { type: 'array', items: domain } } },
  message: {
    type: 'object',
    properties: {
      id: { type: 'string' },
      channel: { enum: ['email', 'sms'] },
      class: { enum: ['transactional', 'marketing'] },
      status: {
        enum: 'queued sent delivered bounced complained failed expired rejected'.split(' '),
      },
      to: { type: 'string' },
      from: { type: 'string' },
      subject: orNull({ type: 'string' }),
      tags: { type: 'array', items: { type: 'string' } },
      error: orNull({
        type: 'object',
        properties: { code: { type: 'string' }, message: orNull({ type: 'string' }) },
      }),
      createdAt: timestamp,
      sentAt: orNull(timestamp),
      deliveredAt: orNull(timestamp),
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
  },
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
