import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, errorOf, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const { id, liveKey, domain } = organisation
await liftRate(sql, organisation)
const [row] = await sql`
  select ops.create_template(${id}, 'Plain', 'Hello', null, 'Nothing to fill in.') as template`
const template = row?.template as string

/** An email with these fields on top; undefined leaves a field out. */
const email = (fields: Record<string, unknown>) => anEmail(domain, fields)
const fromTemplate = (fields: Record<string, unknown>) =>
  email({ subject: undefined, text: undefined, templateId: template, ...fields })
const people = (count: number) => Array.from({ length: count }, (_, n) => `r${n}@c.example`)

const MB = 1024 * 1024

/** Ordinary and largest values of each field. */
const good: Record<string, object> = {
  'from, bare': email({}),
  'from, named': email({ from: `"Acme, Inc." <hello@${domain}>` }),
  'to, a list': email({ to: ['a@c.example', 'Bob <b@c.example>'] }),
  '50 of each kind of recipient': email({ to: people(50), cc: people(50), bcc: people(50) }),
  'no copies': email({ cc: [], bcc: [] }),
  'one copy each': email({ cc: 'a@c.example', bcc: 'Bob <b@c.example>' }),
  replyTo: email({ replyTo: 'Help <help@c.example>' }),
  'a subject of 998 characters': email({ subject: '💌'.repeat(998) }),
  'html only': email({ text: undefined, html: '<p>Hello</p>' }),
  'html and text': email({ html: '<p>Hello</p>' }),
  'html of 2 MB': email({ html: 'x'.repeat(2 * MB) }),
  'text of 1 MB': email({ text: 'x'.repeat(MB) }),
  'a template': fromTemplate({}),
  'a template with a subject': fromTemplate({ subject: 'Own' }),
  'variables that the template does not use': fromTemplate({
    variables: { a: 'x', b: 1, c: true },
  }),
  headers: email({ headers: { 'X-Order': '17', 'List-Id': '<orders.c.example>' } }),
  'ten tags of 64 characters': email({ tags: Array(10).fill('💌'.repeat(64)) }),
  'no tags': email({ tags: [] }),
  'null in each optional field': email({
    ...{ cc: null, bcc: null, replyTo: null, html: null, templateId: null, variables: null },
    ...{ headers: null, tags: null, class: null, attachments: null },
  }),
  transactional: email({ class: 'transactional' }),
  marketing: email({ class: 'marketing', to: people(50) }),
}

const NOT_AN_ADDRESS = 'must be an email address, as name@example.com or Name <name@example.com>'

/** Invalid values of each field with their problems; sizes and lengths are one over the limit. */
const bad: Record<string, [object, Record<string, string[]>]> = {
  nothing: [
    {},
    {
      from: ['is required'],
      to: ['is required'],
      subject: ['is required'],
      _: ['one of html, text or templateId is required'],
    },
  ],
  'unknown fields': [
    email({ Subject: 'x', reply_to: 'a@c.example', body: null }),
    { Subject: ['unknown field'], reply_to: ['unknown field'], body: ['unknown field'] },
  ],
  'a from that is a list': [email({ from: ['a@c.example'] }), { from: ['must be a string'] }],
  'a from that is no address': [email({ from: 'acme' }), { from: [NOT_AN_ADDRESS] }],
  'a from with a header inside': [
    email({ from: `Acme\r\nBcc: x@c.example <a@${domain}>` }),
    { from: ['must not contain control characters'] },
  ],
  'recipients that are no addresses': [
    email({ to: ['a@c.example', 'bob', 5], cc: 'cat', bcc: [null] }),
    {
      'to.1': [NOT_AN_ADDRESS],
      'to.2': ['must be a string'],
      cc: [NOT_AN_ADDRESS],
      'bcc.0': ['must be a string'],
    },
  ],
  'no recipient': [email({ to: [] }), { to: ['must have at least 1 address'] }],
  '51 of each kind of recipient': [
    email({ to: people(51), cc: people(51), bcc: people(51) }),
    {
      to: ['must have at most 50 addresses but has 51'],
      cc: ['must have at most 50 addresses but has 51'],
      bcc: ['must have at most 50 addresses but has 51'],
    },
  ],
  'a replyTo that is a list': [email({ replyTo: [] }), { replyTo: ['must be a string'] }],
  'no subject': [email({ subject: undefined }), { subject: ['is required'] }],
  'a null subject': [email({ subject: null }), { subject: ['is required'] }],
  'a subject of 999 characters': [
    email({ subject: 'x'.repeat(999) }),
    { subject: ['must be at most 998 characters but has 999'] },
  ],
  'a subject on two lines': [
    email({ subject: 'Hello\r\nBcc: x@c.example' }),
    { subject: ['must not contain control characters'] },
  ],
  'no body': [email({ text: undefined }), { _: ['one of html, text or templateId is required'] }],
  'html of 2 MB and a byte': [
    email({ html: 'x'.repeat(2 * MB + 1) }),
    { html: ['must be at most 2097152 bytes but has 2097153'] },
  ],
  'text of 1 MB and a byte': [
    email({ text: 'x'.repeat(MB + 1) }),
    { text: ['must be at most 1048576 bytes but has 1048577'] },
  ],
  'NUL and half a character': [
    email({ text: '\0', html: '\ud800' }),
    {
      text: ['must not contain NUL characters'],
      html: ['must not contain lone surrogates'],
    },
  ],
  'a template and a text': [
    email({ templateId: template }),
    { templateId: ['cannot be combined with html or text'] },
  ],
  'variables without a template': [
    email({ variables: { a: 1 } }),
    { variables: ['requires templateId'] },
  ],
  'variables of other types': [
    fromTemplate({ variables: { a: null, b: [], c: {}, d: 1 } }),
    {
      'variables.a': ['must be a string, a number or a boolean'],
      'variables.b': ['must be a string, a number or a boolean'],
      'variables.c': ['must be a string, a number or a boolean'],
    },
  ],
  'headers that are set by the service': [
    email({ headers: { From: 'x', to: 'x', SUBJECT: 'x', 'DKIM-Signature': 'x', 'X-Fine': 'x' } }),
    {
      'headers.From': ['is set by the service and cannot be overridden'],
      'headers.to': ['is set by the service and cannot be overridden'],
      'headers.SUBJECT': ['is set by the service and cannot be overridden'],
      'headers.DKIM-Signature': ['is set by the service and cannot be overridden'],
    },
  ],
  'a header with another inside': [
    email({ headers: { 'X-A': 'x\r\nBcc: x@c.example' } }),
    { 'headers.X-A': ['must not contain control characters'] },
  ],
  'eleven tags': [
    email({ tags: Array(11).fill('t') }),
    { tags: ['must have at most 10 tags but has 11'] },
  ],
  'a tag of 65 characters': [
    email({ tags: ['fine', 't'.repeat(65)] }),
    { 'tags.1': ['must be at most 64 characters but has 65'] },
  ],
  'another class': [email({ class: 'bulk' }), { class: ['must be transactional or marketing'] }],
  'marketing with copies': [
    email({ class: 'marketing', cc: 'a@c.example', bcc: ['b@c.example'] }),
    {
      cc: ['is not allowed in marketing email'],
      bcc: ['is not allowed in marketing email'],
    },
  ],
  attachments: [
    email({ attachments: [{ filename: 'a.pdf' }] }),
    { attachments: ['attachments are not yet available'] },
  ],
  'much at once': [
    { from: 'acme', to: ['a@c.example', 'bob'], text: 5, tags: 'x', more: 1 },
    {
      from: [NOT_AN_ADDRESS],
      'to.1': [NOT_AN_ADDRESS],
      text: ['must be a string'],
      tags: ['must be an array'],
      subject: ['is required'],
      more: ['unknown field'],
    },
  ],
}

t.test('POST /v1/emails: ordinary and largest values of each field are accepted', async (t) => {
  for (const [name, body] of Object.entries(good)) {
    const response = await post(`${base}/v1/emails`, liveKey, body)
    t.strictSame([response.status, response.json.error?.fields], [200, undefined], name)
  }
})

t.test(
  'POST /v1/emails: invalid values of each field are refused with exactly their problems',
  async (t) => {
    const before = await traces(sql)
    for (const [name, [body, fields]] of Object.entries(bad)) {
      const response = await post(`${base}/v1/emails`, liveKey, body)
      isRefused(t, response, 'validation_error', fields, { name })
    }
    t.strictSame(await traces(sql), before, 'nothing is stored')
  },
)

t.test('POST /v1/emails: names that objects inherit are unknown fields', async (t) => {
  const body = `{"__proto__":{"text":"x"},"constructor":1,${JSON.stringify(email({})).slice(1)}`
  const single = await post(`${base}/v1/emails`, liveKey, body)
  const fields = '"fields":{"__proto__":["unknown field"],"constructor":["unknown field"]}'
  t.equal(single.status, 422)
  t.ok(single.text.includes(fields), single.text)
  const batch = await post(`${base}/v1/emails/batch`, liveKey, `{"emails":[${body}]}`)
  t.ok(batch.text.replaceAll(': ', ':').replaceAll(', ', ',').includes(fields), batch.text)
})

t.test('batch items are checked by the same rules, with paths within their item', async (t) => {
  const items = Object.values(bad).map(([body]) => body)
  const { status, json } = await post(`${base}/v1/emails/batch`, liveKey, { emails: items })
  t.equal(status, 200)
  for (const [index, [name, [, fields]]] of Object.entries(bad).entries()) {
    const error = errorOf('validation_error', fields)
    t.strictSame(json.results[index], { index, ok: false, error }, name)
  }
})

t.test('an accepted email is stored unchanged', async (t) => {
  const { json } = await post(
    `${base}/v1/emails`,
    liveKey,
    email({
      from: `"Acme, Inc." <Billing@${domain.toUpperCase()}>`,
      to: ['Jane Doe <Jane@Customer.Example>', 'joe@bücher.example'],
      cc: 'cat@c.example',
      bcc: ['"Audit (all)" <audit@c.example>'],
      replyTo: 'Help <help@c.example>',
      subject: 'Grüße\t💌 {{name}}',
      html: '<p>{{unsubscribe_url}} & \u2028</p>',
      text: 'One\r\nTwo \\ "three" $1',
      headers: { 'X-Case': 'As Given', x_snake_case: 'é' },
      tags: ['a', 'a', 'it"s', '{b}', 'NULL'],
      class: 'transactional',
    }),
  )
  const [body] = await sql`
    select b.sender, b."to", b.cc, b.bcc, b.reply_to, b.html, b.text, b.headers, m.subject, m.tags,
      m.class, m.recipients, m.from_address, m.to_address
    from app.bodies b join app.messages m on m.id = b.message_id
    where b.message_id = core.decode_id('em', ${json.id})`
  t.strictSame(
    { ...body },
    {
      sender: `"Acme, Inc." <Billing@${domain}>`,
      to: ['Jane Doe <Jane@customer.example>', 'joe@xn--bcher-kva.example'],
      cc: ['cat@c.example'],
      bcc: ['"Audit (all)" <audit@c.example>'],
      replyTo: 'Help <help@c.example>',
      html: '<p>{{unsubscribe_url}} & \u2028</p>',
      text: 'One\r\nTwo \\ "three" $1',
      headers: { 'X-Case': 'As Given', x_snake_case: 'é' },
      subject: 'Grüße\t💌 {{name}}',
      tags: ['a', 'a', 'it"s', '{b}', 'NULL'],
      class: 'transactional',
      recipients: 4,
      fromAddress: `Billing@${domain}`,
      toAddress: 'Jane@customer.example, joe@xn--bcher-kva.example',
    },
  )
})
