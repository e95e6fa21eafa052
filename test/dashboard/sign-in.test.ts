import t from 'tap'
import { openBrowser, signIn, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { secrets, startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
// Without a worker, the notices wait with the tokens of their links.
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const home = `/dashboard/${organisation.id}`

const SAME_RESPONSE = /an email with a link is on its way/

/** The token of the last link that was requested for an address, as its email has it; undefined if none was. */
async function lastToken(email: string): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }[]>`
    select detail ->> 'sealedToken' as sealed from app.notices
    where email = ${email} and kind = 'sign_in' order by id desc limit 1`
  return row && secrets.open(row.sealed)
}

async function addUser(email: string) {
  await sql`select ops.invite(${organisation.id}, ${email}, 'viewer')`
}

t.test('a requested link signs in once; opening it alone does not use it', async (t) => {
  await addUser('ann@example.com')
  const browser = openBrowser(base)
  t.match(await browser.get(home), { status: 200, text: /Email me a link/ })
  const asked = await browser.post('/login', { email: 'Ann@Example.com' })
  t.match(asked, { status: 200, text: SAME_RESPONSE })
  const token = await lastToken('ann@example.com')
  t.match(await openBrowser(base).get(`/login/${token}`), {
    status: 200,
    text: /Sign in to Postgram/,
  })
  t.match(await browser.post(`/login/${token}`), { status: 200, text: /Home/ })
  t.match(await browser.get(home), { status: 200, text: /ann@example\.com/ })
  t.match(await openBrowser(base).post(`/login/${token}`), { status: 410 })
  t.match(await openBrowser(base).get(`/login/${token}`), { status: 410 })
  const [link] = await sql`select encode(sha256, 'hex') as sha256 from app.sign_in_links`
  t.notMatch(JSON.stringify(link), token ?? '')
})

t.test('an unknown address gets the same response and no link', async (t) => {
  const known = await openBrowser(base).post('/login', { email: 'ann@example.com' })
  const unknown = await openBrowser(base).post('/login', { email: 'bob@example.com' })
  t.equal(unknown.status, known.status)
  t.equal(unknown.text.replaceAll('bob@', 'ann@'), known.text)
  t.equal(await lastToken('bob@example.com'), undefined)
})

t.test(
  'sign-in: a text that is not an address is refused beside its field, with the text',
  async (t) => {
    const refused = await openBrowser(base).post('/login', { email: 'no"<script>' })
    t.match(refused, { status: 422, text: /must be an email address/ })
    t.match(refused.html, 'value="no&quot;&lt;script>"')
  },
)

t.test('the sixth request for an address within 15 minutes is refused, known or not', async (t) => {
  /** Requests a link through a proxy on this machine, which names its client. */
  const requestFrom = async (client: string, email: string) => {
    const headers = { 'X-Forwarded-For': client, 'Sec-Fetch-Site': 'same-origin' }
    const body = new URLSearchParams({ email })
    return (await fetch(`${base}/login`, { method: 'POST', headers, body })).status
  }
  const fiveTimes = [200, 200, 200, 200, 200]
  for (const email of ['carl@example.com', 'nobody@example.com']) {
    if (email.startsWith('carl')) await addUser(email)
    for (const client of ['8.8.8.1', '8.8.8.2']) {
      const statuses: number[] = []
      for (let n = 0; n < 6; n++) statuses.push(await requestFrom(client, email))
      t.same(statuses, [...fiveTimes, 429], `${email} from ${client}`)
    }
    t.equal(await requestFrom('8.8.8.3', email), 429, 'ten were requested for the address')
  }
})

t.test('the 21st request of a client within 15 minutes is refused', async (t) => {
  await sql`delete from app.sign_in_requests`
  const statuses = new Set<number>()
  for (let n = 0; n < 20; n++) {
    statuses.add((await openBrowser(base).post('/login', { email: `n${n}@example.com` })).status)
  }
  t.same([...statuses], [200])
  const refused = await openBrowser(base).post('/login', { email: 'n20@example.com' })
  t.equal(refused.status, 429)
  t.match(refused.headers.get('Retry-After'), /^\d+$/)
  await sql`delete from app.sign_in_requests`
})

t.test('the addresses of one IPv6 network are one client for the limit of requests', async (t) => {
  const request = (address: string, n: number) =>
    fetch(`${base}/login`, {
      method: 'POST',
      headers: { 'X-Forwarded-For': address },
      body: new URLSearchParams({ email: `v${n}@example.com` }),
    })
  const statuses = new Set<number>()
  for (let n = 0; n < 20; n++) {
    const address = n % 2 ? `2001:db8::${n.toString(16)}` : `2001:DB8:0:0:${n}:0:0:1`
    statuses.add((await request(address, n)).status)
  }
  t.same([...statuses], [200])
  t.equal((await request('2001:db8::ffff:1', 20)).status, 429)
  t.equal((await request('2001:db8:0:1::1', 21)).status, 200, 'another network is another client')
  await sql`delete from app.sign_in_requests`
})

t.test('a request for a link of more than 64 KB is refused before it is parsed', async (t) => {
  const email = `${'a'.repeat(65_000)}@example.com`
  const refused = await openBrowser(base).post('/login', { email, more: 'x'.repeat(1000) })
  t.match(refused.text, /the body is larger than/)
})

t.test('a form of more than 1000 fields is refused, however it is encoded', async (t) => {
  const browser = await signInAs(sql, base, { organisation: organisation.id, role: 'owner' })
  const fields = (add: (name: string, value: string) => void, count: number) => {
    add('name', 'Many fields')
    for (let n = 1; n < count; n++) add('x', '')
  }
  const multipart = new FormData()
  fields((name, value) => multipart.append(name, value), 1001)
  for (const form of [{ x: Array<string>(1001).fill('') }, multipart]) {
    const refused = await browser.post(`${home}/keys/create`, form)
    t.match(refused.text, /the form has more than 1000 fields/)
  }
})

t.test('a sign-in ends the session that the browser had', async (t) => {
  const email = 'again@example.com'
  await addUser(email)
  const browser = await signIn(sql, base, email)
  const former = browser.cookies()
  const [row] = await sql<{ path: string }[]>`select ops.create_sign_in_link(${email}) as path`
  await browser.post(row?.path ?? '')
  t.not(browser.cookies(), former)
  t.match(await browser.get(home), { status: 200, text: /again@example\.com/ })
  const response = await fetch(`${base}${home}`, {
    headers: { Cookie: former },
    redirect: 'manual',
  })
  t.equal(response.status, 303, 'a copy of the former cookie has no session')
})

t.test('a sign-in leads to the page that was asked for', async (t) => {
  await addUser('page@example.com')
  const linkTo = async () => {
    const [row] = await sql<{ path: string }[]>`
      select ops.create_sign_in_link('page@example.com') as path`
    return row?.path ?? ''
  }
  const browser = openBrowser(base)
  t.match(await browser.get(`${home}/messages?q=tag:welcome`), { text: /Email me a link/ })
  t.match(await browser.post(await linkTo()), { status: 200, html: /value="tag:welcome"/ })
  const again = await browser.post(await linkTo())
  t.notMatch(again.html, 'value="tag:welcome"', 'once')

  for (const path of ['https://evil.example/', '//evil.example', '/dashboardx', '%']) {
    const response = await fetch(`${base}${await linkTo()}`, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'Sec-Fetch-Site': 'same-origin',
        Cookie: `__Host-postgram-destination=${encodeURIComponent(path)}`,
      },
    })
    t.match([response.status, response.headers.get('Location')], [303, '/dashboard'], path)
  }
})

t.test('a link expires after 15 minutes', async (t) => {
  await addUser('dora@example.com')
  const browser = openBrowser(base)
  await browser.post('/login', { email: 'dora@example.com' })
  await sql`update app.sign_in_links set expires_at = expires_at - interval '15 minutes' where used_at is null`
  t.match(await browser.post(`/login/${await lastToken('dora@example.com')}`), { status: 410 })
})

t.test('a path with a NUL, which Postgres cannot store, is not found', async (t) => {
  await addUser('nul@example.com')
  const browser = await signIn(sql, base, 'nul@example.com')
  t.match(await browser.get(`${home}%00/keys`), { status: 404 })
})

t.test('forged links and sessions do not sign in', async (t) => {
  const browser = openBrowser(base)
  t.match(await browser.post('/login/forged'), { status: 410 })
  const response = await fetch(`${base}${home}`, {
    headers: { Cookie: '__Host-postgram=forged' },
    redirect: 'manual',
  })
  t.match([response.status, response.headers.get('Location')], [303, '/login'])
})

t.test(
  'a session ends by signing out, by ops.sign_out, after 12 idle hours and after 30 days',
  async (t) => {
    const email = 'eve@example.com'
    await addUser(email)
    const isSignedIn = async (browser: Awaited<ReturnType<typeof signIn>>) =>
      (await browser.get(home)).text.includes(email)

    const first = await signIn(sql, base, email)
    const stolen = first.cookies()
    t.ok(await isSignedIn(first))
    await first.post('/logout')
    const response = await fetch(`${base}${home}`, {
      headers: { Cookie: stolen },
      redirect: 'manual',
    })
    t.equal(response.status, 303, 'a copy of the cookie has no session either')

    const second = await signIn(sql, base, email)
    t.ok(await isSignedIn(second))
    await sql`select ops.sign_out(${email})`
    t.notOk(await isSignedIn(second))

    for (const [column, age] of [
      ['seen_at', '12 hours'],
      ['signed_in_at', '30 days'],
    ] as const) {
      const browser = await signIn(sql, base, email)
      t.ok(await isSignedIn(browser))
      await sql`update app.sessions set ${sql(column)} = ${sql(column)} - ${age}::interval`
      t.notOk(await isSignedIn(browser), `${column} ${age} ago`)
    }
  },
)

t.test('the cookie is kept from scripts and from other sites', async (t) => {
  const [row] = await sql<
    { path: string }[]
  >`select ops.create_sign_in_link('ann@example.com') as path`
  const response = await fetch(`${base}${row?.path}`, { method: 'POST', redirect: 'manual' })
  const [cookie = ''] = response.headers.getSetCookie()
  t.match(cookie, /^__Host-postgram=[\w-]{43}; path=\/;/)
  t.match(cookie.toLowerCase(), /; samesite=lax/)
  t.match(cookie.toLowerCase(), /; secure/)
  t.match(cookie.toLowerCase(), /; httponly/)
})

t.test('an unsafe request from another site is refused, whatever browser sends it', async (t) => {
  const browser = await signInAs(sql, base, { organisation: organisation.id, role: 'owner' })
  for (const headers of [
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
  ]) {
    const response = await fetch(`${base}/logout`, {
      method: 'POST',
      redirect: 'manual',
      headers: { Cookie: browser.cookies(), ...headers } as Record<string, string>,
    })
    t.equal(response.status, 403, JSON.stringify(headers))
  }
  t.match(await browser.get(home), { status: 200 })
})

t.test(
  'pages: a strict policy, no caching, 404 as a page for paths that do not exist',
  async (t) => {
    const browser = await signInAs(sql, base, { organisation: organisation.id, role: 'viewer' })
    const { headers, html } = await browser.get(home)
    const policy = headers.get('Content-Security-Policy') ?? ''
    t.match(policy, "default-src 'none'")
    t.notMatch(policy, 'unsafe')
    t.equal(headers.get('Cache-Control'), 'no-store')
    // With no-referrer, browsers send "Origin: null" with the own forms of a service without HTTPS.
    t.equal(headers.get('Referrer-Policy'), 'same-origin')
    t.notMatch(html, / style=|<style|<script>|javascript:| on\w+=/)
    t.match(await browser.get(`${home}/nothing`), { status: 404, text: /Not found/ })
    t.match(await browser.get('/operator'), { status: 404 })
  },
)

t.test('the last owner of an organisation is neither removed nor made a member', async (t) => {
  const other = await createOrganisation(sql)
  await t.rejects(sql`select ops.remove_member(${other.id}, 'owner@example.com')`, /needs an owner/)
  await t.rejects(
    sql`select ops.invite(${other.id}, 'owner@example.com', 'viewer')`,
    /needs an owner/,
  )
  await sql`select ops.invite(${other.id}, 'second@example.com', 'owner')`
  await sql`select ops.remove_member(${other.id}, 'owner@example.com')`
  t.match(await sql`select email, role from ops.members where organisation = ${other.id}`, [
    { email: 'second@example.com', role: 'owner' },
  ])
})

t.test('a user who loses the last role is deleted, with sessions and links', async (t) => {
  const other = await createOrganisation(sql)
  const email = 'leaver@example.com'
  await sql`select ops.invite(${organisation.id}, ${email}, 'member')`
  await sql`select ops.invite(${other.id}, ${email}, 'member')`
  await sql`select ops.make_operator(${email})`
  const browser = await signIn(sql, base, email)
  await openBrowser(base).post('/login', { email })
  const isUser = async () => (await sql`select from app.users where email = ${email}`).length === 1
  await sql`select ops.remove_member(${organisation.id}, ${email})`
  await sql`select ops.remove_member(${other.id}, ${email})`
  t.ok(await isUser(), 'an operator stays')
  await sql`select ops.make_operator(${email}, false)`
  t.notOk(await isUser())
  t.match((await browser.get('/dashboard')).text, 'Email me a link')
  t.same(await sql`select from app.notices where email = ${email}`, [])
})
