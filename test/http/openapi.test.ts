import t from 'tap'
import { catalogue } from '../../src/errors.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, get, post, request } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const { json: document } = await get(`${base}/openapi.json`, null)
const { liveKey, domain } = await createOrganisation(sql)

t.test('openapi(): describes every endpoint of the API reference', async (t) => {
  t.equal(document.openapi, '3.1.0')
  t.same(
    Object.entries(document.paths).map(([path, operations]) => [
      path,
      Object.keys(operations as object),
    ]),
    [
      ['/v1/emails', ['post', 'get']],
      ['/v1/emails/batch', ['post']],
      ['/v1/emails/{id}', ['get']],
      ['/v1/sms', ['post', 'get']],
      ['/v1/sms/batch', ['post']],
      ['/v1/sms/{id}', ['get']],
      ['/v1/domains', ['post', 'get']],
      ['/v1/domains/{id}', ['get', 'delete']],
      ['/v1/domains/{id}/verify', ['post']],
      ['/v1/suppressions', ['get', 'post']],
      ['/v1/suppressions/{id}', ['delete']],
      ['/v1/usage', ['get']],
    ],
  )
})

t.test('openapi(): the body of an email has exactly the fields of the API reference', async (t) => {
  const { schema } = document.paths['/v1/emails'].post.requestBody.content['application/json']
  t.same(Object.keys(schema.properties).sort(), [
    ...['attachments', 'bcc', 'cc', 'class', 'from', 'headers', 'html', 'replyTo', 'subject'],
    ...['tags', 'templateId', 'text', 'to', 'variables'],
  ])
  t.same(schema.required, ['from', 'to'])
  t.equal(schema.additionalProperties, false)
})

t.test(
  'openapi(): the body of an SMS has exactly the fields of the API reference, with their limits',
  async (t) => {
    const { schema } = document.paths['/v1/sms'].post.requestBody.content['application/json']
    t.same(Object.keys(schema.properties), [
      'to',
      'body',
      'class',
      'senderId',
      'scheduledAt',
      'tags',
    ])
    t.same(schema.required, ['to', 'body', 'class'])
    t.equal(schema.additionalProperties, false)
    t.match(schema.properties, {
      to: { type: 'string', pattern: '^\\+[1-9]\\d{6,14}$' },
      body: { type: 'string', minLength: 1, maxLength: 1600 },
      class: { enum: ['transactional', 'marketing'] },
      scheduledAt: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
      tags: {
        anyOf: [{ type: 'array', maxItems: 10, items: { maxLength: 64 } }, { type: 'null' }],
      },
    })
    const { messages } =
      document.paths['/v1/sms/batch'].post.requestBody.content['application/json'].schema.properties
    t.strictSame([messages.minItems, messages.maxItems, messages.items], [1, 1000, schema])
  },
)

t.test('openapi(): limits of lengths in code points are maxLength', async (t) => {
  const propertiesOf = (path: string) =>
    document.paths[path].post.requestBody.content['application/json'].schema.properties
  const limits = { subject: 998, templateId: 64 }
  for (const [field, maxLength] of Object.entries(limits)) {
    t.match(propertiesOf('/v1/emails')[field].anyOf[0], { minLength: 1, maxLength }, field)
  }
  t.match(propertiesOf('/v1/suppressions').note.anyOf[0], { maxLength: 2000 })
})

t.test(
  'openapi(): every optional field of a request may be null, and no required field',
  async (t) => {
    type Body = { type: string; required: string[]; properties: Record<string, object> }
    let optional = 0
    const check = ({ required, properties }: Body, of: string) => {
      for (const [name, property] of Object.entries(properties)) {
        const isNullable = JSON.stringify(property).includes('{"type":"null"}')
        if (!required.includes(name)) optional += 1
        if (name !== 'emails' && name !== 'messages') {
          t.equal(isNullable, !required.includes(name), `${of} ${name}`)
        }
        if ('items' in property) check(property.items as Body, `${of} ${name}`)
      }
    }
    for (const path of Object.keys(document.paths)) {
      const content = document.paths[path].post?.requestBody.content
      if (content) check(content['application/json'].schema, path)
    }
    t.equal(optional, 2 * 12 + 2 * 3 + 2)
  },
)

t.test('openapi(): describes the query parameters of a list with their limits', async (t) => {
  const { parameters, requestBody } = document.paths['/v1/suppressions'].get
  t.strictSame(
    parameters.map(({ name, in: place, required }: Record<string, unknown>) => [
      name,
      place,
      required,
    ]),
    [
      ['email', 'query', false],
      ['limit', 'query', false],
      ['cursor', 'query', false],
    ],
  )
  t.strictSame(parameters[1].schema, { type: 'integer', minimum: 1, maximum: 200, default: 50 })
  t.equal(requestBody, undefined)
})

t.test('responses of the service have the described properties', async (t) => {
  const suppressions = '/v1/suppressions'
  const sent = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  const message = await get(`${base}/v1/emails/${sent.json.id}`, liveKey)
  const sentSms = await post(`${base}/v1/sms`, liveKey, anSms({ class: 'marketing' }))
  const sms = await get(`${base}/v1/sms/${sentSms.json.id}`, liveKey)
  const added = await post(base + suppressions, liveKey, { email: 'ann@c.example' })
  const again = await post(base + suppressions, liveKey, { email: 'ann@c.example' })
  const list = await get(base + suppressions, liveKey)
  const emails = await get(`${base}/v1/emails`, liveKey)
  const smsList = await get(`${base}/v1/sms`, liveKey)
  const deleted = await request('DELETE', `${base + suppressions}/${added.json.id}`, liveKey)
  const { paths } = document
  for (const [{ status, json }, { responses }] of [
    [sent, paths['/v1/emails'].post],
    [emails, paths['/v1/emails'].get],
    [message, paths['/v1/emails/{id}'].get],
    [sentSms, paths['/v1/sms'].post],
    [smsList, paths['/v1/sms'].get],
    [sms, paths['/v1/sms/{id}'].get],
    [added, paths[suppressions].post],
    [again, paths[suppressions].post],
    [list, paths[suppressions].get],
    [deleted, paths[`${suppressions}/{id}`].delete],
  ] as const) {
    const { schema } = responses[status].content['application/json']
    const described = 'src/http/responses.ts has the same fields in the same order'
    t.same(Object.keys(json), Object.keys(schema.properties), described)
    if (!json.data) continue
    const { properties } = schema.properties.data.items
    t.same(Object.keys(json.data[0]), Object.keys(properties), described)
  }
})

t.test('openapi(): describes every error code under its status', async (t) => {
  t.same(
    document.components.schemas.Error.properties.error.properties.code.enum,
    Object.keys(catalogue),
  )
  type Operation = { responses: Record<string, { description: string }> }
  for (const operations of Object.values<Record<string, Operation>>(document.paths)) {
    for (const { responses } of Object.values(operations)) {
      for (const [status, { description }] of Object.entries(responses)) {
        if (status.startsWith('2')) continue
        for (const code of description.split(', ')) {
          t.equal(catalogue[code as keyof typeof catalogue][0], Number(status), code)
        }
      }
    }
  }
})
