import t from 'tap'
import { type Browser, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { post } from '../fixtures/http.ts'
import { haveSent, messageOf, send, sendSms } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

type Role = 'viewer' | 'member' | 'owner'

async function createScene(role: Role = 'member') {
  const organisation = await createOrganisation(sql)
  const path = `/dashboard/${organisation.id}/messages`
  const browser = await signInAs(sql, base, { organisation: organisation.id, role })
  return { organisation, path, browser }
}

/** The IDs of the messages that a page lists, newest first. */
async function idsOn(browser: Browser, path: string): Promise<string[]> {
  const { html } = await browser.get(path)
  return [...html.matchAll(/<td data-label="To"[^>]*><div><a href="[^"]*\/((?:em|sm)_\w+)"/g)].map(
    ([, id = '']) => id,
  )
}

t.test('messages: the list shows recipient, subject, status, channel, tags and time', async (t) => {
  const { organisation, path, browser } = await createScene('viewer')
  t.match((await browser.get(path)).text, 'No message was sent yet. Create an API key')
  const id = await send(base, organisation, {
    to: 'ann@example.com',
    subject: 'Your code',
    tags: ['login', 'code'],
  })
  const { text, html } = await browser.get(path)
  t.match(text, /ann@example\.com Your code queued email login code \d{4}-\d\d-\d\d \d\d:\d\d/)
  t.match(html, `href="${path}/${id}"`)
})

t.test('messages: each filter finds those that match it', async (t) => {
  const { organisation, path, browser } = await createScene()
  const welcome = await send(base, organisation, {
    to: ['Ann <ann@example.com>', 'bob@example.com'],
    subject: 'Welcome, Ann',
    tags: ['welcome'],
  })
  const sale = await send(base, organisation, {
    from: `Shop <shop@${organisation.domain}>`,
    to: 'ann@example.com',
    subject: 'A big sale',
    class: 'marketing',
    tags: ['sale'],
  })
  const sms = await sendSms(base, organisation, { to: '+27821234567', tags: ['code'] })
  const test = (
    await post(`${base}/v1/sms`, organisation.testKey, {
      to: '+27821234568',
      class: 'transactional',
      body: 'Hello',
    })
  ).json.id
  const [old = ''] = await haveSent(sql, organisation, 1, { acceptedAgo: 72, sentAgo: 72 })
  const [{ id: oldId } = { id: '' }] = await sql<{ id: string }[]>`
    select core.encode_id('em', ${old}::uuid) as id`
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  for (const [query, expected] of [
    ['', [test, sms, sale, welcome, oldId]],
    ['status=sent', [test, oldId]],
    ['channel=sms', [test, sms]],
    ['class=marketing', [sale]],
    ['mode=test', [test]],
    ['tag=sale', [sale]],
    ['to=ANN@example.com', [sale, welcome]],
    ['to=bob@example.com', [welcome]],
    ['to=%2B27%2082%20123%204567', [sms]],
    [`from=shop@${organisation.domain}`, [sale]],
    [`until=${yesterday}`, [oldId]],
    [`since=${yesterday}&channel=email`, [sale, welcome]],
    [`since=${yesterday}T00:00:00%2B02:00&class=marketing`, [sale]],
    ['q=to:ann@example.com', [sale, welcome]],
    ['q=to:ann@example.com tag:sale', [sale]],
    ['q=bob@example.com', [welcome]],
    ['q=%2B27821234567', [sms]],
    ['q=status:sent', [test, oldId]],
    ['q=subject:"big sale"', [sale]],
    ['q=BIG sale', [sale]],
    ['q=Welcome, Ann', [welcome]],
    [`q=before:${yesterday}`, [oldId]],
    ['q=tag:sale&tag=welcome', [sale]],
    ['q=constructor:x', []],
  ] as const) {
    t.same(await idsOn(browser, `${path}?${query}`), expected, query)
  }
  t.match((await browser.get(`${path}?tag=none`)).text, 'No message matches the filters.')
  t.match((await browser.get(`${path}?q=${sms}`)).html, `<a href="${path}/${sms}">Open ${sms}</a>`)
})

t.test(
  'messages: a filter that is not valid is shown with its problem, and finds nothing',
  async (t) => {
    const { organisation, path, browser } = await createScene()
    await send(base, organisation)
    for (const [query, typed, problem] of [
      ['status=gone', 'id="field-status-problem"', 'must be one of scheduled, queued'],
      ['to=ann', 'value="ann"', 'must be a whole address or number'],
      ['since=soon', 'value="soon"', 'must be a date, as 2026-11-23'],
      ['q=status:gone', 'value="status:gone"', 'status must be one of scheduled'],
      ['q=tag:a%20tag:b', 'value="tag:a tag:b"', 'tag can be given once'],
    ] as const) {
      const { html, text, status } = await browser.get(`${path}?${query}`)
      t.equal(status, 200)
      t.match(html, typed)
      t.match(text, problem)
      t.notMatch(text, 'delivered@sandbox.postgram.test')
    }
  },
)

t.test(
  'messages: markup, quotes and right-to-left marks are shown as text in the list',
  async (t) => {
    const { organisation, path, browser } = await createScene()
    const nasty = `<script>alert("1")</script>'" \u202eevil`
    await send(base, organisation, { subject: nasty, tags: [nasty] })
    const list = await browser.get(path)
    const searched = await browser.get(
      `${path}?${new URLSearchParams({ q: nasty, tag: nasty, to: nasty, from: nasty })}`,
    )
    const escaped = "&lt;script>alert(&quot;1&quot;)&lt;/script>'&quot; \u202eevil"
    t.match(list.html, `<bdi>${escaped}</bdi>`)
    for (const name of ['q', 'tag', 'to', 'from']) {
      t.match(
        searched.html,
        new RegExp(`name="${name}"[^>]*value="${escaped.replace(/[()]/g, '.')}"`),
      )
    }
    for (const { html } of [list, searched]) t.notMatch(html, '<script>')
  },
)

t.test('messages: each is on one page, newest first, and links keep the filters', async (t) => {
  const { organisation, path, browser } = await createScene()
  const ids = await haveSent(sql, organisation, 120)
  const seen: string[] = []
  let next: string | undefined = `${path}?status=sent`
  let pages = 0
  while (next) {
    pages += 1
    seen.push(...(await idsOn(browser, next)))
    const { html } = await browser.get(next)
    const [, href] = /rel="next" href="([^"]*)"/.exec(html) ?? []
    next = href?.replaceAll('&amp;', '&')
    if (next) t.match(next, 'status=sent')
  }
  t.equal(pages, 3)
  t.same(seen, seen.toSorted().toReversed())
  t.equal(new Set(seen).size, ids.length)
})

t.test(
  'messages: the CSV file has all that match, quoted, and no value is a formula',
  async (t) => {
    const { organisation, path, browser } = await createScene('viewer')
    await haveSent(sql, organisation, 1200)
    const subject = '=HYPERLINK("https://evil.example"), "x"'
    await send(base, organisation, { subject, tags: ['+1', '@x'], to: 'ann@example.com' })
    await sendSms(base, organisation, { to: '+27821234567' })
    const { headers, html: csv } = await browser.get(`${path}.csv`)
    t.match(headers.get('Content-Type'), 'text/csv')
    t.match(headers.get('Content-Disposition'), 'attachment; filename="messages.csv"')
    const lines = csv.split('\r\n')
    t.equal(lines.length, 1 + 1202 + 1)
    t.match(lines[0], 'id,channel,class,mode,status,to,from,subject,tags,')
    t.match(lines[1], /^sm_\w+,sms,transactional,live,queued,'\+27821234567,/)
    t.match(lines[2], `,"'=HYPERLINK(""https://evil.example""), ""x""","'+1, @x",`)
    const filtered = await browser.get(`${path}.csv?channel=sms`)
    t.equal(filtered.html.split('\r\n').length, 3)
    t.match(await browser.get(`${path}.csv?status=gone`), { status: 422 })
  },
)

t.test('messages: an organisation exports one CSV file at a time', async (t) => {
  const { organisation, path, browser } = await createScene()
  await send(base, organisation)
  // Of one session, the second request would wait for the first.
  const other = await signInAs(sql, base, {
    organisation: organisation.id,
    role: 'viewer',
    email: `other-${organisation.id}@example.com`,
  })
  const exportOf = ({ cookies }: typeof browser) =>
    fetch(`${base}${path}.csv`, { headers: { Cookie: cookies() } })
  const [first, second] = await sql.begin(async (tx) => {
    await tx`lock table app.messages in access exclusive mode`
    return [await exportOf(browser), await exportOf(other)]
  })
  t.match([first?.status, second?.status], [200, 429])
  t.match(await first?.text(), /\r\nem_/)
  t.match(await browser.get(`${path}.csv`), { status: 200 })
})

t.test('members retry the selected messages; the page says which cannot be retried', async (t) => {
  const { organisation, path, browser } = await createScene()
  const failed = await send(base, organisation)
  const waiting = await send(base, organisation)
  await sql`update app.messages set status = 'failed' where id = ${(await messageOf(sql, failed)).id}`
  const delivered = await send(base, organisation)
  await sql`update app.messages set status = 'delivered' where id = ${(await messageOf(sql, delivered)).id}`

  const none = await browser.post(`${path}/retry?channel=email`, {})
  t.match(none, { status: 422, text: /Select the messages to retry\./ })

  const retried = await browser.post(`${path}/retry?channel=email`, {
    message: [failed, waiting, delivered],
  })
  t.match(retried.text, /2 messages are retried\. 1 cannot be retried: the message is delivered;/)
  t.match(retried.html, /<option value="email" selected>/)
  t.match(await messageOf(sql, failed), { status: 'queued' })
  const audited = await sql`
    select target, actor from ops.audit where action = 'retry_message' and target = any (${[failed, waiting, delivered]})`
  t.same(audited.map(({ target }) => target).sort(), [failed, waiting].sort())
  for (const { actor } of audited) t.equal(actor, `member-${organisation.id}@example.com`)
})

t.test('messages: a viewer has no button to retry, and a retry is refused', async (t) => {
  const { organisation, path, browser } = await createScene('viewer')
  const id = await send(base, organisation)
  t.notMatch((await browser.get(path)).text, 'Retry')
  const refused = await browser.post(`${path}/retry`, { message: [id] })
  t.match(refused, { status: 403, text: /this needs the role member/ })
})

t.test('messages of another organisation are neither listed, exported nor retried', async (t) => {
  const { path, browser } = await createScene()
  const other = await createScene()
  const id = await send(base, other.organisation, { subject: 'Secret' })
  await sql`update app.messages set status = 'failed' where id = ${(await messageOf(sql, id)).id}`
  for (const suffix of ['', '.csv']) {
    t.notMatch((await browser.get(`${path}${suffix}`)).html, /Secret|em_/)
    const theirs = await browser.get(`${other.path}${suffix}`)
    t.match(theirs, { status: 404 })
    t.notMatch(theirs.html, 'Secret')
  }
  t.match(await browser.post(`${path}/retry`, { message: [id] }), { status: 404 })
  t.match(await browser.post(`${other.path}/retry`, { message: [id] }), { status: 404 })
  t.match(await messageOf(sql, id), { status: 'failed' })
})
