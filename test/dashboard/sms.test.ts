import t from 'tap'
import { type Browser, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { post } from '../fixtures/http.ts'
import {
  createOrganisation,
  createPayer,
  grant,
  smsOf,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const HOSTILE = '<script>alert("1")</script>\u202eabc'
const ESCAPED = '&lt;script>alert(&quot;1&quot;)&lt;/script>\u202eabc'

const pathOf = ({ id }: TestOrganisation) => `/dashboard/${id}/sms`

const signInOf = ({ id }: TestOrganisation, role: 'viewer' | 'member' = 'member') =>
  signInAs(sql, base, { organisation: id, role })

async function setUp() {
  const organisation = await createOrganisation(sql)
  return { organisation, member: await signInOf(organisation), path: pathOf(organisation) }
}

const consentsOf = async ({ id }: TestOrganisation) => [
  ...(await sql`
    select phone, source, opted_out_by from ops.consents where organisation = ${id} order by phone`),
]

const importAudit = async ({ id }: TestOrganisation) => [
  ...(await sql`
    select action, actor, target, before, after from ops.audit
    where organisation = ${id} and action like '%consent%' order by id`),
]

const preview = (browser: Browser, path: string, text: string) =>
  browser.get(`${path}?${new URLSearchParams({ text })}`)

t.test(
  'segments: a text in GSM-7 is shown in its segments, without a list of characters',
  async (t) => {
    const { member, path } = await setUp()
    const one = await preview(member, path, 'Hello {you}\r\nBye')
    t.match(one.text, /1 segment , GSM-7/)
    t.match(one.html, /<pre dir="auto">Hello \{you\}\nBye<\/pre>/)
    t.notMatch(one.text, 'not in GSM-7')
    const two = await preview(member, path, 'x'.repeat(161))
    t.match(two.text, /2 segments/)
    t.match(two.html, `<pre dir="auto">${'x'.repeat(153)}</pre>`)
    t.match(two.html, `<pre dir="auto">${'x'.repeat(8)}</pre>`)
  },
)

t.test('segments: a text in UCS-2 is shown with the characters that force it', async (t) => {
  const { member, path } = await setUp()
  const page = await preview(member, path, 'It\u2019s 5\u00a0o\u2019clock 💌')
  t.match(page.text, /1 segment , UCS-2/)
  t.match(page.text, /These 3 characters are not in GSM-7 and make the whole text UCS-2/)
  t.match(page.text, /’ U\+2019 right single quotation mark character 3 ' /)
  t.match(page.text, / U\+00A0 no-break space character 7 /)
  t.match(page.text, /💌 U\+1F48C – character 16 –/)
  const single = await preview(member, path, 'naïve')
  t.match(single.text, /This character is not in GSM-7 and makes .* ï U\+00EF – character 3 –/)
})

t.test('segments: hostile text is shown escaped, and a long one with its problem', async (t) => {
  const { member, path } = await setUp()
  const page = await preview(member, path, HOSTILE)
  t.notMatch(page.html, '<script>alert')
  t.match(page.html, `<pre dir="auto">${ESCAPED}</pre>`)
  t.match(
    page.html,
    /<bdi><\/bdi>.*U\+202E/s,
    'a character that changes the direction is not shown',
  )
  t.match((await preview(member, path, 'x'.repeat(1531))).text, 'must be at most 10 segments')
  // The longest path that the form makes: nine bytes for each character.
  t.match((await preview(member, path, '你'.repeat(1600))).text, /24 segments/)
  t.match(page.html, /<textarea[^>]* maxlength="1600"/)
})

t.test('the ledger shows movements newest first, 50 to a page', async (t) => {
  const organisation = await createPayer(sql, { included: 2 })
  await grant(sql, organisation, 500)
  await sql`select ops.grant_credits(${organisation.id}, 3, ${HOSTILE})`
  const sent = await post(`${base}/v1/sms`, organisation.liveKey, smsOf(3))
  const browser = await signInOf(organisation, 'viewer')
  const path = pathOf(organisation)
  const page = await browser.get(path)
  t.match(page.text, 'Left: 0 of 2 segments of the plan')
  t.match(page.text, 'and 502 credits')
  t.match(
    page.text,
    new RegExp(`sms −2 −1 502 ${sent.json.id} .* grant 0 \\+3 503 .* grant 0 \\+500 500 a test`),
  )
  t.match(page.html, `href="/dashboard/${organisation.id}/messages/${sent.json.id}"`)
  t.match(page.html, `<bdi>${ESCAPED}</bdi>`)

  for (let n = 1; n <= 50; n++)
    await sql`select ops.grant_credits(${organisation.id}, 1, ${`note ${n}.`})`
  const first = await browser.get(path)
  t.match(first.text, /note 50\..*note 1\. Older/)
  t.notMatch(first.text, sent.json.id)
  const [, next = ''] = /href="([^"]*[?]ledger=\d+)#ledger"/.exec(first.html) ?? []
  const second = await browser.get(next)
  t.match(second.text, new RegExp(`sms −2 −1 502 ${sent.json.id}`))
  t.notMatch(second.text, 'note 1.')
})

t.test('senders are shown with the shared one', async (t) => {
  const { organisation, member, path } = await setUp()
  t.match((await member.get(path)).text, /shared sender Postgram .*has no sender ID of its own/)
  await sql`select ops.approve_sender(${organisation.id}, 'Acme')`
  t.match((await member.get(path)).text, /Sender ID Approved Acme \d{4}-/)
})

t.test('consents are shown by number, 50 to a page, and found by their first digits', async (t) => {
  const { organisation, member, path } = await setUp()
  for (let n = 10; n < 70; n++)
    await sql`select ops.record_consent(${organisation.id}, ${`+278200000${n}`}, 'a form')`
  await sql`select ops.record_consent(${organisation.id}, '+447700900000', ${HOSTILE})`
  await sql`select ops.withdraw_consent(${organisation.id}, '+447700900000')`
  const first = await member.get(path)
  t.match(first.text, /\+27820000010 .*\+27820000059 /)
  t.notMatch(first.text, '+27820000060')
  const [, next = ''] = /href="([^"]*[?][^"]*after=[^"#]+)#consents"/.exec(first.html) ?? []
  const second = await member.get(next.replaceAll('&amp;', '&'))
  t.match(second.text, /\+27820000060 .*\+447700900000 /)
  const found = await member.get(`${path}?phone=${encodeURIComponent('+44 77')}`)
  t.match(found.text, /\+447700900000 .* operator /)
  t.match(found.html, `<bdi>${ESCAPED}</bdi>`)
  t.notMatch(found.text, '+27820')
  const none = await member.get(`${path}?phone=${encodeURIComponent(HOSTILE)}`)
  t.match(none.text, /no consent or opt-out of a number that begins so/)
  t.match(none.html, `value="${ESCAPED}"`)
})

t.test('an import records good lines and reports bad ones with number and reason', async (t) => {
  const { organisation, member, path } = await setUp()
  const lines = [
    'phone,source',
    '+27820000001,"a form, 2 March"',
    '0820000002,x',
    '',
    '+27820000003',
    '+27820000001,again',
    '+27820000005,a,b',
    `${HOSTILE},x`,
    `+27820000006,${'x'.repeat(1001)}`,
  ].join('\n')
  const page = await member.post(`${path}/import`, { lines, source: 'the shop' })
  t.equal(page.status, 200)
  t.match(page.text, '2 of 7 lines were recorded as consents. 5 were not:')
  t.match(page.text, /3 0820000002, x is not a number in E\.164/)
  t.match(page.text, /6 \+27820000001, again repeats the number of line 2/)
  t.match(page.text, /7 \+27820000005, a, b has more than two values/)
  t.match(page.text, /8 <script>.* is not a number/)
  t.match(page.text, /9 \+27820000006, x+… has a source longer than/)
  t.match(page.html, `<bdi>${ESCAPED}, x</bdi>`)
  t.same(await consentsOf(organisation), [
    { phone: '+27820000001', source: 'a form, 2 March', optedOutBy: null },
    { phone: '+27820000003', source: 'the shop', optedOutBy: null },
  ])
  t.match(await importAudit(organisation), [
    {
      action: 'import_consents',
      actor: `member-${organisation.id}@example.com`,
      after: { consents: 2, opt_outs_ended: 0 },
    },
  ])
})

t.test('an import without anything to record records nothing', async (t) => {
  const { organisation, member, path } = await setUp()
  const page = await member.post(`${path}/import`, { lines: '+27820000001', source: '' })
  t.match(page.text, /0 of 1 lines .* has no source/)
  await member.post(`${path}/import`, { lines: 'x1', source: 'a form', endsOptOuts: 'yes' })
  t.same(await importAudit(organisation), [])
  const empty = await member.post(`${path}/import`, { lines: ' \n', source: 'a "form" <b>' })
  t.match(empty, { status: 422, text: /paste lines here, or choose a file/ })
  t.match(empty.html, 'value="a &quot;form&quot; &lt;b>"')
  t.match(empty.html, /<details open/)
})

t.test('an import ends opt-outs only if the form says so', async (t) => {
  const { organisation, member, path } = await setUp()
  const [phone, erased, other] = ['+27820000001', '+27820000002', '+27820000003']
  await sql`select ops.record_consent(${organisation.id}, ${phone}, 'first')`
  await sql`select ops.withdraw_consent(${organisation.id}, ${phone})`
  await sql`
    insert into app.suppression_hashes (sha256, organisation_id, reason, erased_at)
    select core.person_sha256(${erased}, s.salt), o.id, 'opted_out', now()
    from app.person_salt s cross join app.organisations o`
  const lines = [phone, erased, other].join('\n')
  const kept = await member.post(`${path}/import`, { lines, source: 'the list' })
  t.match(kept.text, '1 of 3 lines were recorded as consents. 2 were not:')
  t.match(kept.text, /1 \+27820000001 opted out earlier.* 2 \+27820000002 opted out earlier/)
  t.match(await consentsOf(organisation), [
    { phone, source: 'first', optedOutBy: /^operator/ },
    { phone: other, source: 'the list' },
  ])

  const form = { lines, source: 'the new list', endsOptOuts: 'yes' }
  const ended = await member.post(`${path}/import`, form)
  t.match(ended.text, '3 of 3 lines were recorded as consents.')
  t.same(
    await consentsOf(organisation),
    [phone, erased, other].map((phone) => ({ phone, source: 'the new list', optedOutBy: null })),
  )
  const actor = `member-${organisation.id}@example.com`
  t.match((await importAudit(organisation)).slice(2), [
    { action: 'import_consents', actor, after: { consents: 1, opt_outs_ended: 0 } },
    {
      action: 'record_consent',
      actor,
      target: phone,
      before: { source: 'first', opted_out_by: /^operator/ },
      after: { source: 'the new list', opted_out_by: null },
    },
    { action: 'record_consent', actor, target: erased, before: null },
    { action: 'import_consents', actor, after: { consents: 3, opt_outs_ended: 2 } },
  ])
  const [hashes] = await sql`
    select count(*)::integer as left from app.suppression_hashes
    where organisation_id = core.decode_id('org', ${organisation.id})`
  t.match(hashes, { left: 0 })
})

/** Uploads a file as a browser does; the response can be read while it arrives. */
function upload(browser: Browser, path: string, lines: string[], signal?: AbortSignal) {
  const body = new FormData()
  body.set('lines', '')
  body.set('source', 'the list')
  body.set('file', new Blob([`\uFEFFCell number\r\n${lines.join('\r\n')}`]), 'list.csv')
  return fetch(`${base}${path}/import`, {
    method: 'POST',
    body,
    headers: { Cookie: browser.cookies(), 'Sec-Fetch-Site': 'same-origin' },
    ...(signal && { signal }),
  })
}

const numbers = (count: number) =>
  Array.from({ length: count }, (_, n) => `+2782${String(n).padStart(7, '0')}`)

t.test(
  'a file of 100 000 lines is imported with progress, and 100 bad lines are shown',
  async (t) => {
    const { organisation, member, path } = await setUp()
    const lines = numbers(100_000).map((number, n) => (n % 500 === 0 ? `bad ${n}` : number))
    const response = await upload(member, path, lines)
    const html = await response.text()
    t.equal(response.status, 200)
    t.match(html, /1\u202f000 of 99\u202f800 numbers.*99\u202f000 of 99\u202f800 numbers/s)
    t.match(html, '99\u202f800 of 100\u202f000 lines were recorded')
    t.match(html, '200 were not:')
    t.equal(html.split('is not a number in E.164').length - 1, 100)
    t.match(html, 'The first 100 are listed.')
    t.match(html, /<\/html>\n$/)
    t.equal((await consentsOf(organisation)).length, 99_800)

    const tooMany = await upload(member, path, [...lines, '+27829999999'])
    t.equal(tooMany.status, 422)
    t.match(await tooMany.text(), 'at most 100\u202f000 lines at a time; the list has 100\u202f002')
  },
)

t.test('an import counts the lines of a list, also empty ones, before it reads it', async (t) => {
  const { organisation, member, path } = await setUp()
  const lines = `+27820000001${'\n'.repeat(100_001)}+27820000002`
  const refused = await member.post(`${path}/import`, { lines, source: 'a form' })
  t.equal(refused.status, 422)
  t.match(refused.html, 'at most 100\u202f000 lines at a time; the list has 100\u202f002')
  t.same(await consentsOf(organisation), [])
})

t.test('an import that fails halfway says so at the end of its page', async (t) => {
  const { organisation, member, path } = await setUp()
  await sql`alter table app.consents add constraint fails check (phone <> '+27820006000') not valid`
  const response = await upload(member, path, numbers(7000))
  // The page ends after the slice that fails.
  const html = await response.text()
  await sql`alter table app.consents drop constraint fails`
  t.match(html, /6\u202f000 of 7\u202f000 numbers.*role="alert">The service failed.*<\/html>/s)
  t.notMatch(html, 'were recorded')
  t.equal((await consentsOf(organisation)).length, 6000)
})

t.test('an import goes on when the browser leaves', async (t) => {
  const { organisation, member, path } = await setUp()
  const lock = await sql.reserve()
  const browser = new AbortController()
  const response = await upload(member, path, numbers(20_000), browser.signal)
  const reader = (response.body as ReadableStream).getReader()
  await reader.read()
  await lock`select pg_advisory_lock(hashtextextended('postgram inbound', 0))`
  browser.abort()
  await t.rejects(reader.closed)
  await lock`select pg_advisory_unlock(hashtextextended('postgram inbound', 0))`
  lock.release()
  await until('all are recorded', async () => (await consentsOf(organisation)).length === 20_000)
})

t.test('a viewer sees consents, but imports none', async (t) => {
  const { organisation, path } = await setUp()
  await sql`select ops.record_consent(${organisation.id}, '+27820000001', 'a form')`
  const viewer = await signInOf(organisation, 'viewer')
  const page = await viewer.get(path)
  t.match(page.text, '+27820000001')
  t.notMatch(page.text, 'Import consents')
  const form = { lines: '+27820000002', source: 'x' }
  t.match(await viewer.post(`${path}/import`, form), { status: 403, text: /needs the role member/ })
  t.equal((await consentsOf(organisation)).length, 1)
})

t.test('SMS of another organisation are neither shown nor changed', async (t) => {
  const { organisation, member, path } = await setUp()
  const other = await createPayer(sql, { credits: 777 })
  await sql`select ops.record_consent(${other.id}, '+27820000009', 'theirs')`
  await sql`select ops.approve_sender(${other.id}, 'Theirs')`
  const form = { lines: '+27820000002', source: 'x' }
  for (const page of [
    await member.get(pathOf(other)),
    await member.post(`${pathOf(other)}/import`, form),
  ]) {
    t.equal(page.status, 404)
    t.notMatch(page.text, /777|27820000009|Theirs/)
  }
  t.notMatch((await member.get(path)).text, /777|27820000009|Theirs/)
  await member.post(`${path}/import`, { lines: '+27820000009', source: 'ours' })
  t.match(await consentsOf(other), [{ source: 'theirs' }])
  t.match(await consentsOf(organisation), [{ source: 'ours' }])
})
