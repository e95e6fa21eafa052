import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { Fields } from '../../src/errors.ts'
import { parseEmail } from '../../src/schemas/email.ts'
import { anyCharacter } from '../fixtures/strings.ts'

type Body = Record<string, unknown>

const plain: Body = { from: 'a@acme.example', to: 'b@c.example', subject: 'Hello', text: 'Hi' }
const template: Body = { from: 'a@acme.example', to: 'b@c.example', templateId: 'welcome' }

const emailOf = (body: unknown) => {
  const parsed = parseEmail(body)
  if ('fields' in parsed) throw new Error(JSON.stringify(parsed.fields))
  return parsed.value
}
const fieldsOf = (body: unknown): Fields | null => {
  const parsed = parseEmail(body)
  return 'fields' in parsed ? parsed.fields : null
}
const without = (body: Body, ...names: string[]) =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
const numbered = <T>(length: number, item: (n: number) => T) =>
  Array.from({ length }, (_, n) => item(n))
const addresses = (length: number) => numbered(length, (n) => `r${n}@c.example`)
const inEachCase = (names: string) =>
  names.split(/\s+/).flatMap((name) => [name, name.toLowerCase(), name.toUpperCase()])
const record = <T>(length: number, value: T) =>
  Object.fromEntries(numbered(length, (n) => [`X-${n}`, value]))

const NOT_AN_ADDRESS = 'must be an email address, as name@example.com or Name <name@example.com>'
const NOT_STORED = ['must not contain NUL characters', 'must not contain lone surrogates']
const TEXT_OR_LIST = 'must be a string or an array of strings'
const NO_BODY = 'one of html, text or templateId is required'
const VARIABLE_NAME = 'must have a name of 1 to 64 letters, digits, dots, hyphens or underscores'
const HEADER_NAME = 'must have a header name without spaces or colons'
const TOO_MUCH_HTML = 'must be at most 2097152 bytes but has 2097153'
const CONTROL_HEADER = 'controls email providers and cannot be set'
const SERVICE_HEADER = 'is set by the service and cannot be overridden'

t.test('parseEmail(): returns an ordinary email in the form that SQL takes', async (t) => {
  t.strictSame(emailOf(plain), {
    class: 'transactional',
    sender: 'a@acme.example',
    from_address: 'a@acme.example',
    from_domain: 'acme.example',
    to: ['b@c.example'],
    cc: [],
    bcc: [],
    to_addresses: 'b@c.example',
    recipients: ['b@c.example'],
    reply_to: null,
    subject: 'Hello',
    html: null,
    text: 'Hi',
    template_id: null,
    variables: null,
    headers: null,
    tags: [],
  })
})

t.test('parseEmail(): returns every field', async (t) => {
  const rest = {
    headers: { 'X-Order': '17', 'List-Id': 'orders\t<o.acme.example>' },
    tags: ['a', 'b'],
  }
  t.strictSame(
    emailOf({
      from: '"Acme, Inc." <Billing@MAIL.Acme.example>',
      to: ['Jane Doe <Jane@Customer.Example>', 'joe@bücher.example'],
      cc: 'JANE@customer.example',
      bcc: ['"Audit" <audit@acme.example>', 'jane@CUSTOMER.example'],
      replyTo: 'Help Desk <help@acme.example>',
      subject: 'Invoice\t17',
      html: '<p>17</p>',
      text: '17',
      ...rest,
    }),
    {
      class: 'transactional',
      sender: '"Acme, Inc." <Billing@mail.acme.example>',
      from_address: 'Billing@mail.acme.example',
      from_domain: 'mail.acme.example',
      to: ['Jane Doe <Jane@customer.example>', 'joe@xn--bcher-kva.example'],
      cc: ['JANE@customer.example'],
      bcc: ['Audit <audit@acme.example>', 'jane@customer.example'],
      to_addresses: 'Jane@customer.example, joe@xn--bcher-kva.example',
      recipients: ['jane@customer.example', 'joe@xn--bcher-kva.example', 'audit@acme.example'],
      reply_to: 'Help Desk <help@acme.example>',
      subject: 'Invoice\t17',
      html: '<p>17</p>',
      text: '17',
      template_id: null,
      variables: null,
      ...rest,
    },
  )
})

t.test('parseEmail(): an email with a template may have variables, and no subject', async (t) => {
  const variables = { name: 'Jane\n', 'order.total-ZAR_2': 1.5, paid: false, constructor: 'Bob' }
  const email = emailOf({ ...template, variables, class: 'marketing', cc: [], bcc: [] })
  t.match(email, {
    class: 'marketing',
    subject: null,
    template_id: 'welcome',
    html: null,
    text: null,
  })
  t.strictSame(email.variables, variables)
  t.equal(emailOf({ ...template, subject: 'Own' }).subject, 'Own')
})

t.test('null in an optional field is the same as no field', async (t) => {
  const absent = `cc bcc replyTo html templateId variables headers tags class attachments`
  const nulls = Object.fromEntries(absent.split(' ').map((field) => [field, null]))
  t.strictSame(emailOf({ ...plain, ...nulls }), emailOf(plain))
  const others = { subject: null, html: null, text: null }
  t.strictSame(emailOf({ ...template, ...others }), emailOf(template))
})

t.test('parseEmail(): accepts values on the limit of each rule', async (t) => {
  const bodies: Body[] = [
    { ...plain, to: addresses(50), cc: addresses(50), bcc: addresses(50) },
    { ...plain, to: ['b@c.example', 'b@c.example'] },
    { ...plain, cc: [], bcc: [] },
    { ...plain, subject: 'x' },
    { ...plain, subject: 'é'.repeat(998) },
    { ...plain, subject: '🎉'.repeat(998) },
    { ...plain, text: 'x' },
    { ...plain, text: 'x'.repeat(1_048_576) },
    { ...plain, text: '山'.repeat(349_525) },
    { ...plain, text: 'line\r\nline\ttab \x1b' },
    { ...plain, html: 'x'.repeat(2_097_152) },
    { ...plain, html: 'é'.repeat(1_048_576) },
    { ...template, templateId: '🎉'.repeat(64) },
    { ...template, variables: {} },
    { ...template, variables: record(200, 0) },
    { ...template, variables: { ['v'.repeat(64)]: '🎉'.repeat(10_000), empty: '' } },
    { ...plain, headers: {} },
    { ...plain, headers: record(50, 'x') },
    { ...plain, headers: { ['X'.repeat(76)]: '🎉'.repeat(998) } },
    { ...plain, headers: { "X!#$%&'*+-.^_`|~1": 'x', constructor: 'x', prototype: 'x' } },
    { ...plain, headers: { 'List-Unsubscribe': '<https://a.example/u>' } },
    { ...plain, headers: { 'X-From': 'x', Contents: 'x', Arc: 'x', 'References-To': 'x' } },
    // 12 headers of 28 + 996 bytes are 12 KB exactly.
    {
      ...plain,
      headers: Object.fromEntries(
        numbered(12, (n) => [`X-${n}`.padEnd(28, 'x'), `éé${'x'.repeat(992)}`]),
      ),
    },
    { ...plain, tags: [] },
    { ...plain, tags: numbered(10, () => '🎉'.repeat(64)) },
    { ...plain, class: 'transactional' },
    { ...plain, class: 'marketing', cc: [], bcc: [] },
  ]
  for (const body of bodies) t.strictSame(fieldsOf(body), null)
})

const refusals: [what: string, body: unknown, fields: Fields][] = [
  ['null', null, { _: ['must be a JSON object'] }],
  ['an array', [plain], { _: ['must be a JSON object'] }],
  ['a string', 'email', { _: ['must be a JSON object'] }],
  [
    'an empty object',
    {},
    { from: ['is required'], to: ['is required'], subject: ['is required'], _: [NO_BODY] },
  ],
  [
    'unknown keys',
    { ...plain, body: 1, Subject: 'x', reply_to: null },
    { body: ['unknown field'], Subject: ['unknown field'], reply_to: ['unknown field'] },
  ],
  [
    'null in every field',
    {
      ...{ from: null, to: null, cc: null, bcc: null, replyTo: null, subject: null, html: null },
      ...{ text: null, templateId: null, variables: null, headers: null, tags: null, class: null },
      attachments: null,
    },
    {
      from: ['must be a string'],
      to: [TEXT_OR_LIST],
      subject: ['is required'],
      _: [NO_BODY],
    },
  ],

  ['no from', without(plain, 'from'), { from: ['is required'] }],
  ['a list as from', { ...plain, from: ['a@b.co'] }, { from: ['must be a string'] }],
  ['an empty from', { ...plain, from: '' }, { from: ['must not be empty'] }],
  ['a from that is no address', { ...plain, from: 'acme' }, { from: [NOT_AN_ADDRESS] }],
  [
    'a header injected through from',
    { ...plain, from: 'Acme\r\nBcc: x@y.co <a@b.co>' },
    { from: ['must not contain control characters'] },
  ],
  ['no to', without(plain, 'to'), { to: ['is required'] }],
  ['an object as to', { ...plain, to: { 0: 'a@b.co' } }, { to: [TEXT_OR_LIST] }],
  ['a number as to', { ...plain, to: 5 }, { to: [TEXT_OR_LIST] }],
  ['an empty to', { ...plain, to: '' }, { to: ['must not be empty'] }],
  ['a to that is no address', { ...plain, to: 'jane' }, { to: [NOT_AN_ADDRESS] }],
  [
    'a list in one string',
    { ...plain, to: 'a@b.co, c@d.co' },
    { to: ['must be one address, not a list or a group'] },
  ],
  ['an empty list in to', { ...plain, to: [] }, { to: ['must have at least 1 address'] }],
  [
    'bad addresses in lists',
    { ...plain, to: ['a@b.co', 'jane', null, ['a@b.co']], cc: [5], bcc: ['a@b.co', ''] },
    {
      'to.1': [NOT_AN_ADDRESS],
      'to.2': ['must be a string'],
      'to.3': ['must be a string'],
      'cc.0': ['must be a string'],
      'bcc.1': ['must not be empty'],
    },
  ],
  [
    '51 addresses, one of them bad',
    { ...plain, to: addresses(51), cc: ['jane', ...addresses(50)], bcc: addresses(51) },
    {
      to: ['must have at most 50 addresses but has 51'],
      cc: ['must have at most 50 addresses but has 51'],
      'cc.0': [NOT_AN_ADDRESS],
      bcc: ['must have at most 50 addresses but has 51'],
    },
  ],
  ['a list as replyTo', { ...plain, replyTo: ['a@b.co'] }, { replyTo: ['must be a string'] }],
  ['a bad replyTo', { ...plain, replyTo: 'jane@' }, { replyTo: [NOT_AN_ADDRESS] }],

  ['no subject', without(plain, 'subject'), { subject: ['is required'] }],
  ['an empty subject', { ...plain, subject: '' }, { subject: ['must not be empty'] }],
  [
    'a subject of 999 characters on two lines',
    { ...plain, subject: `${'x'.repeat(997)}\r\n` },
    {
      subject: [
        'must be at most 998 characters but has 999',
        'must not contain control characters',
      ],
    },
  ],
  [
    'NUL in a subject',
    { ...plain, subject: 'a\0' },
    { subject: ['must not contain control characters'] },
  ],
  [
    'half a surrogate pair in a subject',
    { ...plain, subject: 'a\ud83c' },
    { subject: ['must not contain lone surrogates'] },
  ],
  ['no html, text or template', without(plain, 'text'), { _: [NO_BODY] }],
  [
    'no subject and no body, and a wrong type elsewhere',
    { from: 5, to: 'b@c.example', tags: 5 },
    {
      from: ['must be a string'],
      tags: ['must be an array'],
      subject: ['is required'],
      _: [NO_BODY],
    },
  ],
  [
    'empty bodies',
    { ...plain, html: '', text: '' },
    { html: ['must not be empty'], text: ['must not be empty'] },
  ],
  [
    'bodies that Postgres cannot store',
    { ...plain, html: '\0\udf89', text: '\udf89\0' },
    { html: NOT_STORED, text: NOT_STORED },
  ],
  [
    'bodies over the limit',
    { ...plain, html: 'x'.repeat(2_097_153), text: `${'山'.repeat(349_525)}xx` },
    { html: [TOO_MUCH_HTML], text: ['must be at most 1048576 bytes but has 1048577'] },
  ],
  [
    'html over the limit by two-byte letters',
    { ...plain, html: `${'é'.repeat(1_048_576)}x` },
    { html: [TOO_MUCH_HTML] },
  ],
  ['html that is no string', { ...plain, html: {} }, { html: ['must be a string'] }],

  ['an empty templateId', { ...template, templateId: '' }, { templateId: ['must not be empty'] }],
  [
    'a templateId of 65 characters',
    { ...template, templateId: 't'.repeat(65) },
    { templateId: ['must be at most 64 characters but has 65'] },
  ],
  [
    'a template with html',
    { ...template, html: 'x' },
    { templateId: ['cannot be combined with html or text'] },
  ],
  [
    'a template with text',
    { ...template, text: 'x' },
    { templateId: ['cannot be combined with html or text'] },
  ],
  [
    'variables without a template',
    { ...plain, variables: {} },
    { variables: ['requires templateId'] },
  ],
  ['a list as variables', { ...template, variables: [] }, { variables: ['must be an object'] }],
  [
    '201 variables',
    { ...template, variables: { 'a b': 1, ...record(200, 0) } },
    {
      variables: ['must have at most 200 variables but has 201'],
      'variables.a b': [VARIABLE_NAME],
    },
  ],
  [
    'variables with bad names',
    { ...template, variables: { '': 1, ['v'.repeat(65)]: 1, é: 1, 'a\n': 1, 'a.b': 1 } },
    {
      'variables.': [VARIABLE_NAME],
      [`variables.${'v'.repeat(65)}`]: [VARIABLE_NAME],
      'variables.é': [VARIABLE_NAME],
      'variables.a\n': [VARIABLE_NAME],
    },
  ],
  [
    'variables with bad values',
    {
      ...template,
      variables: {
        ...{ a: null, b: [], c: {}, d: JSON.parse('1e999'), e: 'x'.repeat(10_001) },
        f: '\0\ud800',
      },
    },
    {
      'variables.a': ['must be a string, a number or a boolean'],
      'variables.b': ['must be a string, a number or a boolean'],
      'variables.c': ['must be a string, a number or a boolean'],
      'variables.d': ['must be a finite number'],
      'variables.e': ['must be at most 10000 characters but has 10001'],
      'variables.f': NOT_STORED,
    },
  ],
  [
    'a variable named __proto__',
    { ...template, variables: JSON.parse('{"__proto__":"x","constructor":"x"}') },
    { 'variables.__proto__': ['must not be named __proto__'] },
  ],

  ['a list as headers', { ...plain, headers: [] }, { headers: ['must be an object'] }],
  [
    '51 headers',
    { ...plain, headers: record(51, 'x') },
    { headers: ['must have at most 50 headers but has 51'] },
  ],
  [
    'headers with bad names',
    {
      ...plain,
      headers: { '': 'x', 'X Y': 'x', 'X:': 'x', 'X\r\nY': 'x', 'X-é': 'x', ['X'.repeat(77)]: 'x' },
    },
    {
      'headers.': [HEADER_NAME],
      'headers.X Y': [HEADER_NAME],
      'headers.X:': [HEADER_NAME],
      'headers.X\r\nY': [HEADER_NAME],
      'headers.X-é': [HEADER_NAME],
      [`headers.${'X'.repeat(77)}`]: ['must have a name of at most 76 characters'],
    },
  ],
  [
    'headers with bad values',
    {
      ...plain,
      headers: {
        ...{
          A: 5,
          B: null,
          C: '',
          D: 'x'.repeat(999),
          E: 'x\r\nBcc: y@z.co',
          F: 'x\0',
          G: '\ud800',
        },
      },
    },
    {
      'headers.A': ['must be a string'],
      'headers.B': ['must be a string'],
      'headers.C': ['must not be empty'],
      'headers.D': ['must be at most 998 characters but has 999'],
      'headers.E': ['must not contain control characters'],
      'headers.F': ['must not contain control characters'],
      'headers.G': ['must not contain lone surrogates'],
    },
  ],
  [
    'headers over 12 KB together',
    {
      ...plain,
      headers: Object.fromEntries(
        numbered(12, (n) => [`X-${n}`.padEnd(28, 'x'), `é${'x'.repeat(n ? 994 : 995)}`]),
      ),
    },
    { headers: ['must be at most 12288 bytes together but has 12289'] },
  ],
  [
    'a header twice in different case',
    { ...plain, headers: { 'X-Foo': 'x', 'x-foo': 'y', 'X-FOO': 'z' } },
    {
      'headers.x-foo': ['is given twice in different case'],
      'headers.X-FOO': ['is given twice in different case'],
    },
  ],
  [
    'a header named __proto__',
    { ...plain, headers: JSON.parse('{"__proto__":"x","constructor":"x"}') },
    { 'headers.__proto__': ['must not be named __proto__'] },
  ],

  ['a string as tags', { ...plain, tags: 'a' }, { tags: ['must be an array'] }],
  [
    'bad tags',
    { ...plain, tags: ['a', '', 't'.repeat(65), 5, 'a\tb', '\ud800'] },
    {
      'tags.1': ['must not be empty'],
      'tags.2': ['must be at most 64 characters but has 65'],
      'tags.3': ['must be a string'],
      'tags.4': ['must not contain control characters'],
      'tags.5': ['must not contain lone surrogates'],
    },
  ],
  [
    '11 tags',
    { ...plain, tags: numbered(11, () => 'a') },
    { tags: ['must have at most 10 tags but has 11'] },
  ],
  [
    'another class',
    { ...plain, class: 'Marketing' },
    { class: ['must be transactional or marketing'] },
  ],
  [
    'marketing with copies',
    { ...plain, class: 'marketing', cc: 'a@b.co', bcc: ['jane'] },
    {
      'bcc.0': [NOT_AN_ADDRESS],
      cc: ['is not allowed in marketing email'],
      bcc: ['is not allowed in marketing email'],
    },
  ],
  [
    'marketing with its own unsubscribe headers',
    {
      ...plain,
      class: 'marketing',
      headers: { 'list-unsubscribe': 'x', 'List-Unsubscribe-Post': 'x' },
    },
    {
      'headers.list-unsubscribe': ['is set by the service in marketing email'],
      'headers.List-Unsubscribe-Post': ['is set by the service in marketing email'],
    },
  ],
  [
    'attachments',
    { ...plain, attachments: [] },
    { attachments: ['attachments are not yet available'] },
  ],
]
for (const [what, body, fields] of refusals) {
  t.test(`parseEmail(): refuses an email with exactly its problems: ${what}`, async (t) => {
    t.strictSame(fieldsOf(body), fields)
  })
}

t.test('parseEmail(): names that objects inherit are unknown fields', async (t) => {
  const body = `{"__proto__":{"html":"x"},"constructor":1,${JSON.stringify(plain).slice(1)}`
  t.equal(
    JSON.stringify(fieldsOf(JSON.parse(body))),
    '{"__proto__":["unknown field"],"constructor":["unknown field"]}',
  )
})

t.test('a header that the service sets cannot be overridden in any case', async (t) => {
  const names = `From Sender To Cc Bcc Reply-To Subject Date Message-ID DKIM-Signature Return-Path
    Received Received-SPF MIME-Version Content-Type Content-Transfer-Encoding Content-X
    Resent-From Resent-To ARC-Seal ARC-Authentication-Results Authentication-Results Delivered-To
    X-Delivered-To X-Original-To Apparently-To Envelope-To X-Envelope-From DomainKey-Signature`
  for (const name of inEachCase(names)) {
    t.strictSame(fieldsOf({ ...plain, headers: { [name]: 'x' } }), {
      [`headers.${name}`]: [SERVICE_HEADER],
    })
  }
})

t.test('a header that controls a relay cannot be set in any case', async (t) => {
  const names = `X-Mailgun-Variables X-Mailgun-Drop-Message X-MC-Subaccount X-MC-SendAt
    X-Mandrill-Test X-SES-SOURCE-ARN X-SES-CONFIGURATION-SET X-PM-Message-Stream X-PM-Metadata-a
    X-Postmark-Tag X-MJ-TemplateID X-MJ-CustomID X-Mailjet-Campaign X-SMTPAPI X-SG-EID X-MSYS-API
    X-Sparkpost-Tag X-Sib-Sandbox X-Mailin-Tag X-ElasticEmail-Settings X-MT-Category X-SM-Campaign
    X-AliDM-Trace X-MQ-Envelope X-SMTPeter-Tags X-Virtual-MTA X-Job X-EnvID X-DKIM-Options
    X-GreenArrow-MailClass X-MS-Exchange-Organization-SCL`
  for (const name of inEachCase(names)) {
    t.strictSame(fieldsOf({ ...plain, headers: { [name]: 'x' } }), {
      [`headers.${name}`]: [CONTROL_HEADER],
    })
  }
})

t.test('a header whose name only resembles one of those is accepted', async (t) => {
  const names = `X-Return-Path X-Jobs X-Job-Id X-SMTPAPI-Copy X-SESSION X-PMX X-MCX My-X-SES-A
    Delivered-To-You List-Id X-Campaign Feedback-ID X-Entity-Ref-ID In-Reply-To References
    Auto-Submitted Precedence X-Mailer Importance`
  for (const name of inEachCase(names)) {
    t.strictSame(fieldsOf({ ...plain, headers: { [name]: 'x' } }), null, name)
  }
})

t.test(
  'parseEmail(): refuses a list or record far over its limit without checking all of it',
  async (t) => {
    const many = Array.from({ length: 1_000_000 }, () => 5)
    const fields = fieldsOf({ ...template, to: many, tags: many, headers: many, variables: many })
    t.strictSame(Object.keys(fields ?? {}), [
      'to',
      ...numbered(50, (n) => `to.${n}`),
      'variables',
      'headers',
      'tags',
      ...numbered(10, (n) => `tags.${n}`),
    ])
    const records = { variables: record(100_000, null), headers: record(100_000, 5) }
    t.equal(Object.keys(fieldsOf({ ...template, ...records }) ?? {}).length, 1 + 200 + 1 + 50)
  },
)

const json = fc.jsonValue({ stringUnit: 'binary' })
const known = `from to cc bcc replyTo subject html text templateId variables headers tags class
  attachments __proto__`.split(/\s+/)
const mutated = fc
  .tuple(
    fc.constantFrom(plain, template, {
      ...plain,
      headers: { 'X-A': 'x' },
      tags: ['a'],
      cc: ['a@b.co'],
    }),
    fc.dictionary(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...known) },
        fc.string({ unit: anyCharacter }),
      ),
      fc.oneof(
        json,
        fc.string({ unit: anyCharacter }),
        fc.array(fc.string({ unit: anyCharacter })),
        fc.dictionary(
          fc.string({ unit: anyCharacter }),
          fc.oneof(fc.string({ unit: anyCharacter }), json),
        ),
        fc.constantFrom('a@b.co', 'Zoë 🎉 <a@bücher.de>', 'marketing', ['a@b.co', 'c@d.co']),
      ),
      { maxKeys: 4 },
    ),
  )
  .map(([body, changes]) => JSON.parse(JSON.stringify({ ...body, ...changes })) as unknown)

t.test(
  'parseEmail(): returns for any JSON, with only strings that Postgres can store',
  async () => {
    let accepted = 0
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: mutated }, json), (body) => {
        const parsed = parseEmail(body)
        assert.doesNotMatch(JSON.stringify(parsed), /\\u0000|\\ud[89a-f]/)
        if ('value' in parsed) accepted++
        else assert.ok(Object.values(parsed.fields).every((problems) => problems.length > 0))
      }),
      { numRuns: 3000 },
    )
    assert.ok(accepted > 100)
  },
)
