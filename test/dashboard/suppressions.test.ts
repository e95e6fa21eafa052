import t from 'tap'
import { type Browser, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation, listOf, suppress } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

/** An organisation with its page and somebody of each role. */
async function anOrganisation() {
  const organisation = await createOrganisation(sql)
  const as = (role: 'owner' | 'member' | 'viewer') =>
    signInAs(sql, base, { organisation: organisation.id, role })
  return {
    organisation,
    path: `/dashboard/${organisation.id}/suppressions`,
    ofMember: `member-${organisation.id}@example.com`,
    owner: await as('owner'),
    member: await as('member'),
    viewer: await as('viewer'),
  }
}

const auditOf = async (target: string) => [
  ...(await sql`select action, actor, before, after from ops.audit where target = ${target} order by at`),
]

const consentOf = async (phone: string) => {
  const [row] = await sql`
    select source, opted_out_at, opted_out_by from ops.consents where phone = ${phone}`
  return row
}

/** The CSV of a path as text. */
async function csvOf(browser: Browser, path: string) {
  const response = await fetch(`${base}${path}`, { headers: { Cookie: browser.cookies() } })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function aFile(text: string, listReason = 'manual') {
  const form = new FormData()
  form.set('list', '')
  form.set('file', new Blob([text], { type: 'text/csv' }), 'list.csv')
  form.set('listReason', listReason)
  return form
}

t.test('an address that a member adds is suppressed, shown and in the audit', async (t) => {
  const { organisation, path, member, ofMember } = await anOrganisation()
  const form = { email: ' Ann@C.Example ', reason: 'unsubscribe', note: 'asked by phone' }
  const page = await member.post(`${path}/add`, form)
  t.match(page.text, 'ann@c.example is suppressed.')
  t.match(page.text, /ann@c\.example unsubscribe – asked by phone \d{4}-/)
  t.same(await listOf(sql, organisation), [
    { email: 'ann@c.example', reason: 'unsubscribe', note: 'asked by phone' },
  ])
  t.match(await auditOf('ann@c.example'), [
    {
      action: 'add_suppressions',
      actor: ofMember,
      before: null,
      after: { reason: 'unsubscribe', given: 1, added: 1 },
    },
  ])

  const again = await member.post(`${path}/add`, {
    email: 'ann@c.example',
    reason: 'manual',
    note: '',
  })
  t.match(again.text, 'ann@c.example was in the list already.')
  t.match(await listOf(sql, organisation), [{ reason: 'manual' }], 'manual replaces unsubscribe')
})

t.test('an entry shows its reason and the message that caused it', async (t) => {
  const { organisation, path, viewer } = await anOrganisation()
  await suppress(sql, organisation, 'gone@c.example', 'hard_bounce')
  const message = 'em_01h00000000000000000000000'
  await sql`
    update app.suppressions set message_id = core.decode_id('em', ${message})
    where email = 'gone@c.example'`
  const page = await viewer.get(path)
  t.match(page.text, `gone@c.example hard bounce ${message}`)
  t.match(page.html, `<a href="/dashboard/${organisation.id}/messages/${message}">`)
})

t.test('the search finds a part of an address and of a number', async (t) => {
  const { organisation, path, viewer } = await anOrganisation()
  for (const email of ['ann@c.example', 'bob@c.example', 'cat@xn--bcher-kva.example']) {
    await suppress(sql, organisation, email)
  }
  for (const phone of ['+27820000001', '+27820000002']) {
    await sql`select ops.withdraw_consent(${organisation.id}, ${phone})`
  }
  const find = async (q: string) => {
    const { text } = await viewer.get(`${path}?q=${encodeURIComponent(q)}`)
    return text.match(/\w+@[\w.-]*example(?= manual)|\+\d{11}(?= \d{4}-)/g) ?? []
  }
  t.same(await find('Bob'), ['bob@c.example'])
  t.same(await find('@bücher.example'), ['cat@xn--bcher-kva.example'])
  t.same(await find('082 000 0002'), ['+27820000002'])
  t.same(await find('%'), [])
  t.same(await find('\0'), [])
  t.match((await viewer.get(`${path}?q=nobody`)).text, 'No suppressed address contains this text.')
  t.match(
    (await viewer.get(`${path}?q=nobody`)).text,
    'No number that opted out contains this text.',
  )
})

t.test('a suppression that a member removes is gone and in the audit', async (t) => {
  const { organisation, path, member, ofMember } = await anOrganisation()
  const id = await suppress(sql, organisation, 'back@c.example', 'complaint')
  const page = await member.post(`${path}/remove`, { id })
  t.match(page.text, 'back@c.example is no longer suppressed.')
  t.same(await listOf(sql, organisation), [])
  t.match(await auditOf('back@c.example'), [
    { action: 'delete_suppression', actor: ofMember, before: { reason: 'complaint' }, after: null },
  ])

  const both = await suppress(sql, organisation, 'both@c.example', 'manual')
  await sql`update app.suppressions set other_reasons = '{unsubscribe}' where email = 'both@c.example'`
  t.match(
    (await member.post(`${path}/remove`, { id: both })).text,
    'both@c.example stays suppressed for another reason: unsubscribe.',
  )
  t.match(await auditOf('both@c.example'), [{ after: { reason: 'unsubscribe' } }])
})

t.test('the entry of a hard bounce has no button, and a forged form gets 404', async (t) => {
  const { organisation, path, member } = await anOrganisation()
  const id = await suppress(sql, organisation, 'bounced@c.example', 'hard_bounce')
  t.notMatch((await member.get(path)).html, id)
  t.equal((await member.post(`${path}/remove`, { id })).status, 404)
  t.equal((await listOf(sql, organisation)).length, 1)
})

t.test('an uploaded CSV adds addresses with notes and lists wrong lines', async (t) => {
  const { organisation, path, member, ofMember } = await anOrganisation()
  await suppress(sql, organisation, 'ann@c.example')
  const list = [
    'Email,Note',
    'ann@c.example,again',
    'bob@c.example,"said ""no"", twice"',
    '',
    'nobody,<script>alert(1)</script>',
    'BOB@c.example,second',
    "'+plus@c.example,exported",
    `cat@c.example,${'x'.repeat(2001)}`,
  ]
  const page = await member.post(`${path}/import`, aFile(list.join('\r\n'), 'unsubscribe'))
  t.equal(page.status, 200)
  t.match(page.text, /2 added 2 in the list already, or given twice 2 not imported/)
  t.match(page.text, /5 nobody,<script>alert\(1\)<\/script> email must be a bare email address/)
  t.match(page.text, /8 cat@c\.example,x+… note must be at most 2000 characters/)
  t.notMatch(page.html, '<script>alert')
  t.same(await listOf(sql, organisation), [
    { email: '+plus@c.example', reason: 'unsubscribe', note: 'exported' },
    { email: 'ann@c.example', reason: 'manual', note: '' },
    { email: 'bob@c.example', reason: 'unsubscribe', note: 'said "no", twice' },
  ])
  const rows = await sql`
    select action, target, after from ops.audit
    where actor = ${ofMember} and action = 'add_suppressions'`
  t.match([...rows], [{ target: null, after: { reason: 'unsubscribe', given: 4, added: 2 } }])
})

t.test('a pasted list needs no header, and several columns need one', async (t) => {
  const { organisation, path, member } = await anOrganisation()
  const list = 'ann@c.example\nann@c.example,a note\n"bob@c.example"\n'
  const page = await member.post(`${path}/import`, { list, listReason: 'manual' })
  t.match(page.text, '2 added 0 in the list already, or given twice 1 not imported')
  t.match(page.text, '2 ann@c.example,a note has 2 columns; the first line must then be email,note')
  t.same(
    (await listOf(sql, organisation)).map(({ email }) => email),
    ['ann@c.example', 'bob@c.example'],
  )
})

t.test(
  'a list of 100 000 lines is imported, and the first 100 wrong lines are shown',
  async (t) => {
    const { organisation, path, member } = await anOrganisation()
    const lines = Array.from({ length: 100_000 }, (_, n) =>
      n % 500 ? `a${n}@c.example` : `wrong ${n}`,
    )
    const page = await member.post(`${path}/import`, aFile(lines.join('\n')))
    t.match(page.text, '99 800 added 0 in the list already, or given twice 200 not imported')
    t.equal(page.html.match(/data-label="Line"/g)?.length, 100)
    t.match(page.text, 'The first 100 wrong lines')
    const [row] = await sql`
    select count(*)::integer as count from app.suppressions
    where organisation_id = core.decode_id('org', ${organisation.id})`
    t.equal(row?.count, 99_800)

    const longer = await member.post(`${path}/import`, aFile(`${lines.join('\n')}\nlast@c.example`))
    t.equal(longer.status, 422)
    t.match(longer.text, 'has 100 001 lines, but at most 100 000 are imported at once')
  },
)

t.test('an empty list is refused beside its field', async (t) => {
  const { path, member } = await anOrganisation()
  const refused = await member.post(`${path}/import`, { list: ' \n', listReason: 'unsubscribe' })
  t.equal(refused.status, 422)
  t.match(refused.text, 'paste addresses, or choose a file that has some')
  t.match(refused.html, /<details open>\s*<summary>Import a list/)
  t.match(refused.html, '<option value="unsubscribe" selected>')
})

t.test('refused forms keep what was typed, escaped, with the problem beside it', async (t) => {
  const { path, member } = await anOrganisation()
  const evil = `"'><script>alert(1)</script> \u202eelpmaxe`
  const shown = evil.replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  const add = await member.post(`${path}/add`, { email: evil, reason: 'unsubscribe', note: evil })
  t.equal(add.status, 422)
  t.match(add.text, 'must be a bare email address, as name@example.com')
  t.equal(add.html.split(`value="${shown}"`).length, 3, 'address and note')
  t.match(add.html, '<option value="unsubscribe" selected>')
  const optOut = await member.post(`${path}/opt-out`, { phone: evil })
  t.equal(optOut.status, 422)
  t.match(optOut.text, /is not a number in E\.164/)
  t.match(optOut.html, `value="${shown}"`)
  const search = await member.get(`${path}?q=${encodeURIComponent(evil)}`)
  t.match(search.html, `value="${shown}"`)
  for (const { html } of [add, optOut, search]) t.notMatch(html, '<script>alert')
})

t.test('notes, keywords and sources are shown escaped', async (t) => {
  const { organisation, path, viewer } = await anOrganisation()
  const evil = `"'><script>alert(1)</script> \u202eelpmaxe`
  await suppress(sql, organisation, 'ann@c.example')
  await sql`update app.suppressions set note = ${evil} where email = 'ann@c.example'`
  await sql`
    insert into app.consents (organisation_id, phone, source, consented_at, opted_out_by, opted_out_at)
    values (core.decode_id('org', ${organisation.id}), '+27820000009', ${evil}, now(), ${evil}, now())`
  const { html } = await viewer.get(path)
  t.equal(html.split('&lt;script>alert(1)&lt;/script>').length, 4)
  t.notMatch(html, '<script>alert')
})

t.test('a number that a member opts out names the member, and a new consent ends it', async (t) => {
  const { path, member, ofMember } = await anOrganisation()
  const phone = '+27821110001'
  const page = await member.post(`${path}/opt-out`, { phone: '+27 (82) 111-0001' })
  t.match(page.text, `${phone} is opted out.`)
  t.match(
    page.text,
    new RegExp(`\\${phone} \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d member ${ofMember} none`),
  )
  t.match(await consentOf(phone), { optedOutBy: `member ${ofMember}`, source: null })

  const refused = await member.post(`${path}/consent`, { phone, source: ' ' })
  t.equal(refused.status, 422)
  t.match(refused.text, 'The source must be 1 to 1000 characters.')
  t.match(refused.html, /<details open>\s*<summary>Remove/)

  const ended = await member.post(`${path}/consent`, { phone, source: 'form of 1 May' })
  t.match(ended.text, `The consent of ${phone} is recorded.`)
  t.match(await consentOf(phone), { optedOutAt: null, source: 'form of 1 May' })
  t.match(await auditOf(phone), [
    { action: 'withdraw_consent', actor: ofMember },
    { action: 'record_consent', actor: ofMember, after: { source: 'form of 1 May' } },
  ])
  const gone = await member.post(`${path}/consent`, { phone, source: 'again' })
  t.equal(gone.status, 404, 'it has not opted out')
})

t.test('the lists are exported as CSV, with formulas made harmless', async (t) => {
  const { organisation, path, viewer } = await anOrganisation()
  await suppress(sql, organisation, '+formula@c.example')
  await suppress(sql, organisation, 'ann@c.example', 'complaint')
  await sql`update app.suppressions set note = '=1+1, "x"' where email = 'ann@c.example'`
  await sql`select ops.withdraw_consent(${organisation.id}, '+27823330001')`
  const addresses = await csvOf(viewer, `${path}/addresses.csv`)
  t.equal(addresses.headers.get('content-type'), 'text/csv; charset=utf-8')
  t.match(addresses.headers.get('content-disposition'), /^attachment; filename="suppressions.csv"$/)
  const [heading, ...lines] = addresses.text.split('\r\n')
  t.equal(heading, 'email,reason,message,note,created_at')
  // Entries of one millisecond have no order.
  t.match(lines.sort(), [
    '',
    /^'\+formula@c\.example,manual,,,2\S+Z$/,
    /^ann@c\.example,complaint,,"'=1\+1, ""x""",2\S+Z$/,
  ])
  const optOuts = await csvOf(viewer, `${path}/opt-outs.csv`)
  t.match(
    optOuts.text,
    /^phone,opted_out_at,opted_out_by\r\n'\+27823330001,2\S+Z,operator \S+\r\n$/,
  )
})

t.test('lists longer than a page are shown and exported whole, each entry once', async (t) => {
  const { organisation, path, viewer } = await anOrganisation()
  await sql`
    insert into app.suppressions (id, organisation_id, email, reason)
    select core.new_id(now()), core.decode_id('org', ${organisation.id}), format('a%s@c.example', n), 'manual'
    from generate_series(1, 1060) n`
  await sql`
    insert into app.consents (organisation_id, phone, opted_out_at, opted_out_by)
    select core.decode_id('org', ${organisation.id}), '+2782' || 1000000 + n, now() + (n / 3) * interval '1 microsecond', 'STOP'
    from generate_series(1, 1060) n`
  const addressesIn = (text: string) => text.match(/a\d+@c\.example/g) ?? []
  const numbersIn = (text: string) => text.match(/\+2782\d{7}/g) ?? []
  const first = await viewer.get(path)
  const [older = '', olderOptOuts = ''] = [
    ...first.html.matchAll(/rel="next" href="([^"]+)"/g),
  ].map(([, href = '']) => href.replaceAll('&amp;', '&'))
  const second = await viewer.get(older)
  t.equal(new Set([...addressesIn(first.text), ...addressesIn(second.text)]).size, 100)
  t.same(numbersIn(second.text), numbersIn(first.text), 'the other list stays where it is')
  const secondOptOuts = await viewer.get(olderOptOuts)
  t.equal(new Set([...numbersIn(first.text), ...numbersIn(secondOptOuts.text)]).size, 100)

  const addresses = addressesIn((await csvOf(viewer, `${path}/addresses.csv`)).text)
  t.same([addresses.length, new Set(addresses).size], [1060, 1060])
  const numbers = numbersIn((await csvOf(viewer, `${path}/opt-outs.csv`)).text)
  t.same([numbers.length, new Set(numbers).size], [1060, 1060])
})

t.test('viewers see and export the lists but change nothing', async (t) => {
  const { organisation, path, viewer, owner } = await anOrganisation()
  const id = await suppress(sql, organisation, 'kept@c.example')
  const phone = '+27825550001'
  await sql`select ops.withdraw_consent(${organisation.id}, ${phone})`
  const page = await viewer.get(path)
  t.match(page.text, 'kept@c.example')
  t.notMatch(page.html, /method="post" action="\/dashboard/)
  for (const [action, form] of [
    ['add', { email: 'new@c.example', reason: 'manual', note: '' }],
    ['import', { list: 'new@c.example', listReason: 'manual' }],
    ['import', { list: 'wrong', listReason: 'manual' }],
    ['remove', { id }],
    ['opt-out', { phone: '+27825550002' }],
    ['consent', { phone, source: 'none' }],
  ] as const) {
    const refused = await viewer.post(`${path}/${action}`, form)
    t.match(refused, { status: 403, text: /this needs the role member/ }, action)
  }
  t.same(
    (await listOf(sql, organisation)).map(({ email }) => email),
    ['kept@c.example'],
  )
  t.equal(await consentOf('+27825550002'), undefined)
  t.ok((await consentOf(phone))?.optedOutAt)
  t.match(
    (await owner.post(`${path}/remove`, { id })).text,
    'kept@c.example is no longer suppressed.',
  )
})

t.test("another organisation's lists are neither shown, exported nor changed", async (t) => {
  const { path, owner } = await anOrganisation()
  const other = await anOrganisation()
  const id = await suppress(sql, other.organisation, 'theirs@c.example')
  const phone = '+27826660001'
  await sql`select ops.withdraw_consent(${other.organisation.id}, ${phone})`
  t.notMatch((await owner.get(path)).html, 'theirs@c.example')
  t.notMatch((await owner.get(path)).html, phone)
  for (const below of ['', '/addresses.csv', '/opt-outs.csv']) {
    const { status, text } = await csvOf(owner, `${other.path}${below}`)
    t.equal(status, 404, below)
    t.notMatch(text, 'theirs@c.example')
    t.notMatch(text, phone)
  }
  for (const [action, form] of [
    ['add', { email: 'x@c.example', reason: 'manual', note: '' }],
    ['import', { list: 'x@c.example', listReason: 'manual' }],
    ['remove', { id }],
    ['opt-out', { phone: '+27826660002' }],
    ['consent', { phone, source: 'none' }],
  ] as const) {
    t.equal((await owner.post(`${other.path}/${action}`, form)).status, 404, `their ${action}`)
    if (!('id' in form || 'source' in form)) continue
    t.equal((await owner.post(`${path}/${action}`, form)).status, 404, `own ${action}`)
  }
  t.same(
    (await listOf(sql, other.organisation)).map(({ email }) => email),
    ['theirs@c.example'],
  )
  t.ok((await consentOf(phone))?.optedOutAt)
})

t.test('an organisation without suppressions is told what adds them', async (t) => {
  const { path, member } = await anOrganisation()
  const { text } = await member.get(path)
  t.match(text, 'No address is suppressed. Hard bounces, complaints and unsubscribes add addresses')
  t.match(text, 'No number has opted out of marketing SMS.')
})
