import fc from 'fast-check'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { type Answer, anEmail, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { liftRate } from '../fixtures/rate.ts'
import { STATUS } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { traces } from '../fixtures/traces.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const { id, liveKey, testKey, domain } = organisation
await liftRate(sql, organisation)
const [row] = await sql`
  select ops.create_template(${id}, 'A', 'Hi {{name}}', '<p>{{name}}</p>', null) as template`

const RUNS = 2000
const AT_A_TIME = 50

/** Texts of JSON values, because some of them no JSON.stringify would write. */
const NASTY = String.raw`
null
true
0
-0
1e999
-1e999
1e-999
0.1e+30
""
" "
"\u0000"
"\ud800"
"\udc00x"
"\u2028"
"\\u0000"
"\r\nBcc: x@y.example"
"{{name}}"
"$1 \\1 %s"
"'; drop table app.messages; --"
"NULL"
"{a,b}"
"a@c.example"
"a@c.example\u0000"
"💌@c.example"
"transactional"
"marketing"
[]
{}
[[]]
[null]
["a@c.example","a@c.example"]
{"__proto__":{"text":"x"}}
{"constructor":{"prototype":1}}
{"toString":1}
{"length":5}
{"0":"a@c.example","length":1}
{"\u0000":1}
{"":""}
{"x":1,"x":2}
{"name":"x"}
{"name":1e308}
{"X-A":"b"}
{"X-A":"\u0000"}`
  .trim()
  .split('\n')
const nastyText = fc.constantFrom(
  ...NASTY,
  '9'.repeat(400),
  `"${'x'.repeat(10_000)}"`,
  `"${row?.template}"`,
)
const deepText = fc
  .tuple(fc.constantFrom('[ ]', '{"a": }'), fc.constantFrom(5, 500, 50_000))
  .map(([brackets, depth]) => {
    const [open = '', close = ''] = brackets.split(' ')
    return `${open.repeat(depth)}1${close.repeat(depth)}`
  })
const jsonText = fc.json({ maxDepth: 4, stringUnit: 'binary' })
const valueText = fc.oneof(
  { weight: 6, arbitrary: nastyText },
  { weight: 3, arbitrary: jsonText },
  { weight: 1, arbitrary: deepText },
)

const FIELDS = [
  ...['from', 'to', 'cc', 'bcc', 'replyTo', 'subject', 'html', 'text', 'templateId', 'variables'],
  ...[
    'headers',
    'tags',
    'class',
    'attachments',
    '__proto__',
    'constructor',
    'call',
    'index',
    'error',
  ],
]

const textOf = (fields: Map<string, string>) =>
  `{${[...fields].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`

/** A good email with some fields changed, taken away or added. */
const emailText = fc
  .tuple(
    fc.constantFrom<Record<string, unknown>>(
      anEmail(domain),
      anEmail(domain, {
        html: '<p>a</p>',
        tags: ['a'],
        headers: { 'X-A': 'b' },
        cc: ['b@c.example'],
      }),
      {
        from: `a@${domain}`,
        to: ['a@c.example'],
        templateId: row?.template,
        variables: { name: 'x' },
      },
    ),
    fc.array(fc.tuple(fc.constantFrom(...FIELDS), fc.option(valueText, { freq: 8 })), {
      minLength: 0,
      maxLength: 3,
    }),
  )
  .map(([email, changes]) => {
    const fields = new Map(
      Object.entries(email).map(([name, value]) => [name, JSON.stringify(value)]),
    )
    for (const [name, text] of changes) {
      if (text === null) fields.delete(name)
      else fields.set(name, text)
    }
    return textOf(fields)
  })

const batchText = fc
  .array(fc.oneof({ weight: 3, arbitrary: emailText }, { weight: 1, arbitrary: valueText }), {
    maxLength: 5,
  })
  .map((items) => `{"emails":[${items.join(',')}]}`)

const cutText = fc
  .tuple(fc.oneof(emailText, batchText), fc.nat({ max: 300 }))
  .map(([text, length]) => text.slice(0, length))

const paths = fc.constantFrom('/v1/emails', '/v1/emails/batch')
const requestOf = fc
  .oneof(
    { weight: 5, arbitrary: fc.tuple(fc.constant('/v1/emails'), emailText) },
    { weight: 3, arbitrary: fc.tuple(fc.constant('/v1/emails/batch'), batchText) },
    { weight: 1, arbitrary: fc.tuple(paths, valueText) },
    { weight: 1, arbitrary: fc.tuple(paths, cutText) },
    { weight: 1, arbitrary: fc.tuple(paths, fc.string({ unit: 'binary' })) },
  )
  .chain(([path, body]) => fc.constantFrom(liveKey, testKey).map((key) => ({ path, key, body })))

/** What is wrong with an answer to anything at all; null when nothing is. */
function faultOf({ status, headers, json }: Answer, isBatch: boolean): string | null {
  if (!headers.get('x-request-id')) return 'no x-request-id'
  if (status === 200) {
    const ids = isBatch
      ? json?.results
          ?.filter(({ ok }: { ok: boolean }) => ok)
          .map(({ data }: { data: { id: string } }) => data.id)
      : [json?.id]
    return ids?.every((each: string) => /^em_[0-9a-hjkmnp-tv-z]{26}$/.test(each))
      ? null
      : 'no proper ids'
  }
  const { code, message, docs } = json?.error ?? {}
  if (STATUS[code as keyof typeof STATUS] !== status || status >= 500) return `${status} ${code}`
  if (!message || docs !== `https://postgram.test/docs/errors#${code}`) return 'no proper envelope'
  return null
}

const acceptedOf = ({ status, json }: Answer): number => {
  if (status !== 200) return 0
  return json.results ? json.results.filter(({ ok }: { ok: boolean }) => ok).length : 1
}

t.test(`${RUNS} bodies of any kind are accepted or refused, never at fault`, async (t) => {
  const seed = Math.trunc(Math.random() * 2 ** 31)
  const requests = fc.sample(requestOf, { numRuns: RUNS, seed })
  const before = await traces(sql)
  const sum = { answered: 0, accepted: 0, live: 0 }
  const faults: string[] = []
  for (let first = 0; first < requests.length; first += AT_A_TIME) {
    const some = requests.slice(first, first + AT_A_TIME)
    const answers = await Promise.all(
      some.map(({ path, key, body }) => post(base + path, key, body)),
    )
    for (const [n, answer] of answers.entries()) {
      const { path, key, body } = some[n] as (typeof some)[0]
      const fault = faultOf(answer, path.endsWith('batch'))
      if (fault)
        faults.push(`${fault}: ${path} ${body.slice(0, 2000)} -> ${answer.text.slice(0, 500)}`)
      sum.answered += answer.status === 200 ? 1 : 0
      sum.accepted += acceptedOf(answer)
      sum.live += key === liveKey ? acceptedOf(answer) : 0
    }
  }
  t.strictSame(faults, [], `with seed ${seed}`)
  t.ok(sum.accepted > 100 && sum.answered < RUNS, 'some were accepted and some were not')

  const after = await traces(sql)
  t.strictSame(
    { ...after, used: null },
    {
      ...before,
      used: null,
      messages: before.messages + sum.accepted,
      bodies: before.bodies + sum.accepted,
      keys: before.keys + sum.answered,
      jobs: before.jobs + sum.live,
      accepted: before.accepted + sum.live,
    },
    `what was refused left nothing behind, with seed ${seed}`,
  )
  const [recipients] = await sql`
    select coalesce(sum(recipients), 0)::integer as used from app.messages where mode = 'live'`
  t.equal(after.used, recipients?.used)
})
