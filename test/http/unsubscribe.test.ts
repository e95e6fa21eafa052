import { randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createUnsubscribeLinks } from '../../src/marketing/unsubscribe-link.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post, request, sendRaw } from '../fixtures/http.ts'
import { messageOf, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { links, startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql, { name: 'Acme <b>&</b> "Sons"' })

const BUTTON = '<form method="post"><button>Unsubscribe</button></form>'

const uuidOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql<{ uuid: string }[]>`select core.decode_id('org', ${id}) as uuid`
  return row?.uuid ?? ''
}

let made = 0

/** Sends marketing to a new recipient; returns the unsubscribe link. */
async function aLink({ email = '', of = organisation } = {}) {
  made += 1
  const to = email || `reader${made}@c.example`
  const id = await send(base, of, { class: 'marketing', to: [to, `other${made}@c.example`] })
  const link = links.url({
    organisationId: await uuidOf(of),
    messageId: (await messageOf(sql, id)).id,
    email: to.toLowerCase(),
  })
  return { to, id, address: link.replace('https://postgram.test', base) }
}

const entriesOf = (email: string) => sql<{ reason: string; messageId: string; email: string }[]>`
  select s.reason, core.encode_id('em', s.message_id) as message_id, s.email
  from app.suppressions s where s.email = ${email}`

const optOutsOf = async (id: string) =>
  (await timelineOf(sql, id))
    .filter(({ type }) => type === 'opted_out')
    .map(({ detail }) => detail.recipient)

const sendTo = (to: string, kind: string, of = organisation) =>
  post(`${base}/v1/emails`, of.liveKey, anEmail(of.domain, { to, class: kind }))

t.test('GET of the link shows a button and changes nothing', async (t) => {
  const { to, id, address } = await aLink()
  for (let time = 0; time < 2; time++) {
    const { status, headers, text } = await get(address, null)
    t.equal(status, 200)
    t.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    t.match(text, BUTTON)
    t.match(text, `<strong>${to}</strong>`)
    t.match(text, '<strong>Acme &lt;b&gt;&amp;&lt;/b&gt; &quot;Sons&quot;</strong>')
  }
  const head = await request('HEAD', address, null)
  t.same([head.status, head.text], [200, ''])
  t.same(await entriesOf(to), [])
  t.same(await optOutsOf(id), [])
})

t.test(
  'the page loads no external resources and has a strict Content-Security-Policy',
  async (t) => {
    const { address } = await aLink()
    for (const { headers, text } of [
      await get(address, null),
      await get(`${base}/u/nothing`, null),
      await request('POST', address, null),
    ]) {
      t.match(Object.fromEntries(headers), {
        'content-security-policy':
          /^default-src 'none'; style-src 'sha256-[^' ]+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
        'referrer-policy': 'no-referrer',
        'x-robots-tag': 'noindex',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      })
      t.equal(headers.get('set-cookie'), null)
      t.notMatch(text, /<script|<link|<img|<iframe|style=|\bon\w+=|https?:/i)
      t.match(text, '<meta name="viewport" content="width=device-width, initial-scale=1">')
      const [, style = ''] = /<style>(.*?)<\/style>/s.exec(text) ?? []
      const sha256 = Buffer.from(
        await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style)),
      ).toString('base64')
      t.match(headers.get('content-security-policy'), `'sha256-${sha256}'`)
    }
  },
)

t.test('a POST unsubscribes with any body', async (t) => {
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const boundary = 'b0undary'
  const multipart = [
    `--${boundary}`,
    'Content-Disposition: form-data; name="List-Unsubscribe"',
    '',
    'One-Click',
    `--${boundary}--`,
    '',
  ].join('\r\n')
  const bodies: [string, unknown, Record<string, string>?][] = [
    ['a one-click body', 'List-Unsubscribe=One-Click', form],
    ['a multipart one', multipart, { 'Content-Type': `multipart/form-data; boundary=${boundary}` }],
    ['the form of the page', '', form],
    ['none', undefined],
    ['JSON', { no: 'form' }],
    [
      'something broken',
      '%%%',
      { 'Content-Type': 'multipart/form-data', 'Content-Encoding': 'gzip' },
    ],
    ['something large', 'x'.repeat(3_000_000), form],
  ]
  for (const [name, body, headers] of bodies) {
    const { to, id, address } = await aLink()
    const { status, text } = await request('POST', address, null, body, headers)
    t.equal(status, 200, name)
    t.match(text, 'You are unsubscribed')
    t.match(text, to)
    t.notMatch(text, '<form')
    t.same(await entriesOf(to), [{ reason: 'unsubscribe', messageId: id, email: to }])
    t.same(await optOutsOf(id), [to])
  }
})

t.test('a request after a large body on the same connection gets its response', async (t) => {
  const { address } = await aLink()
  const { pathname } = new URL(address)
  const body = 'x'.repeat(500_000)
  const { text } = await sendRaw(
    base,
    `POST ${pathname} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}` +
      'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  )
  t.match(text, /You are unsubscribed.*HTTP\/1\.1 200 OK.*\{"status":"up"\}$/s)
})

t.test('after the unsubscribe marketing is refused, and other email is accepted', async (t) => {
  const other = await createOrganisation(sql)
  const { to, address } = await aLink({ email: 'Mixed.Case@c.example' })
  await request('POST', address, null)
  const refused = await sendTo(to, 'marketing')
  isRefused(t, refused, 'recipient_suppressed', { to: ['mixed.case@c.example: unsubscribe'] })
  t.equal((await sendTo(to, 'transactional')).status, 200)
  t.equal((await sendTo(to, 'marketing', other)).status, 200, 'of another organisation')
  t.equal((await sendTo(`other${made}@c.example`, 'marketing')).status, 200, 'to another recipient')
})

t.test('a second unsubscribe changes nothing', async (t) => {
  const { to, id, address } = await aLink()
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => request('POST', address, null, 'List-Unsubscribe=One-Click')),
  )
  t.same(new Set(responses.map(({ status }) => status)), new Set([200]))
  const entries = await entriesOf(to)
  t.equal(entries.length, 1)
  t.equal((await request('POST', address, null)).status, 200)
  t.same(await entriesOf(to), entries)
  t.same(await optOutsOf(id), [to])
})

t.test('an unsubscribe does not change an existing suppression', async (t) => {
  const { to, id, address } = await aLink()
  await sql`
    insert into app.suppressions (id, organisation_id, email, reason)
    values (core.new_id(now()), ${await uuidOf(organisation)}, ${to}, 'complaint')`
  t.equal((await request('POST', address, null)).status, 200)
  t.match(await entriesOf(to), [{ reason: 'complaint', messageId: null }])
  t.same(await optOutsOf(id), [to])
})

t.test('an unsubscribe that the provider reported is not recorded again', async (t) => {
  const { to, id, address } = await aLink()
  const { id: messageId } = await messageOf(sql, id)
  await sql`
    insert into app.events (message_id, type, occurred_at, provider_event_id, detail)
    values (${messageId}, 'opted_out', now(), 'e1', ${sql.json({ recipient: to })})`
  await request('POST', address, null)
  t.same(await optOutsOf(id), [to])
  t.match(await entriesOf(to), [{ reason: 'unsubscribe' }])
})

t.test('after the entry is deleted marketing is accepted, and the old link works', async (t) => {
  const { to, id, address } = await aLink()
  await request('POST', address, null)
  await sql`delete from app.suppressions where email = ${to}`
  t.equal((await sendTo(to, 'marketing')).status, 200)
  t.equal((await request('POST', address, null)).status, 200)
  t.match(await entriesOf(to), [{ reason: 'unsubscribe', messageId: id }])
  t.equal((await sendTo(to, 'marketing')).status, 422)
})

t.test('a link works after its message is deleted', async (t) => {
  const messageId = randomUUID()
  const link = links.url({
    organisationId: await uuidOf(organisation),
    messageId,
    email: 'gone@c.example',
  })
  const { status } = await request('POST', link.replace('https://postgram.test', base), null)
  t.equal(status, 200)
  t.match(await entriesOf('gone@c.example'), [{ reason: 'unsubscribe' }])
})

t.test('a link of an older SECRET_KEY works, one of another key does not', async (t) => {
  const keys = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'))
  const linkBy = async (key: string | undefined) =>
    createUnsubscribeLinks({ secrets: createSecrets([key ?? '']), publicUrl: '' }).url({
      organisationId: await uuidOf(organisation),
      messageId: randomUUID(),
      email: 'rotated@c.example',
    })
  const rotated = await startTestService(url, { roles: ['api'], secrets: createSecrets(keys) })
  for (const key of keys) {
    t.equal((await get(rotated.base + (await linkBy(key)), null)).status, 200)
    t.equal((await get(base + (await linkBy(key)), null)).status, 404)
  }
})

t.test('an unknown or incomplete link gets 404 with a page that says so', async (t) => {
  const { address } = await aLink()
  const { pathname } = new URL(address)
  const before = await sql`select count(*) from app.suppressions`
  const unknownOrganisation = links.url({
    organisationId: randomUUID(),
    messageId: randomUUID(),
    email: 'a@b.c',
  })
  for (const path of [
    '/u/nothing',
    pathname.slice(0, -1),
    pathname.replace('.', '%2E%00'),
    '/u/%zz',
    '/u/%00',
    `/u/${'A'.repeat(8000)}`,
    new URL(unknownOrganisation).pathname,
  ]) {
    for (const method of ['GET', 'POST']) {
      const { status, headers, text } = await request(method, base + path, null)
      t.equal(status, 404, `${method} ${path.slice(0, 50)}`)
      t.match(text, 'This link does not work')
      t.ok(headers.get('x-request-id'))
    }
  }
  t.same(await sql`select count(*) from app.suppressions`, before)
})

t.test('other paths below /u are not found', async (t) => {
  const { address } = await aLink()
  for (const path of ['/u', '/u/', `${new URL(address).pathname}/more`]) {
    isRefused(t, await get(base + path, null), 'not_found', undefined, { hasKey: false })
  }
  for (const method of ['PUT', 'DELETE', 'PATCH']) {
    isRefused(t, await request(method, address, null), 'not_found', undefined, { hasKey: false })
  }
})

t.test('an error is logged without the link or the address', async (t) => {
  const lines: string[] = []
  const log = pino(
    { level: 'trace' },
    new Writable({ write: (line, _, done) => done(void lines.push(String(line))) }),
  )
  const service = await startTestService(url, { roles: ['api'], log })
  const { to, address } = await aLink()
  const { pathname } = new URL(address)
  await sql`alter function api.unsubscribe rename to unsubscribe_away`
  const response = await request('POST', service.base + pathname, null)
  await sql`alter function api.unsubscribe_away rename to unsubscribe`
  isRefused(t, response, 'internal_error', undefined, { hasKey: false })
  const [, token = ''] = /^\/u\/([^.]+)/.exec(pathname) ?? []
  t.match(lines.join(''), response.headers.get('x-request-id') ?? 'none')
  t.notMatch(lines.join(''), token)
  t.notMatch(lines.join(''), to)
  t.equal(
    (await request('POST', service.base + pathname, null)).status,
    200,
    'the next request succeeds',
  )
})
