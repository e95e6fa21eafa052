import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import t, { type Test } from 'tap'
import type { Visit } from '../../src/dashboard/page.ts'
import { streamResource } from '../../src/dashboard/pages/message-streams.ts'
import type { Call } from '../../src/db/call.ts'
import type { Refusal } from '../../src/errors.ts'
import { type Browser, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createLives, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { HELD_MS, holdLimits, until } from '../fixtures/time.ts'

const database = await createDatabase()
const { sql, url } = database
const service = await startTestService(url, { roles: ['api'] })
const { base } = service
const lives = createLives(database)
const organisation = await createOrganisation(sql)

const signInOnce = (email: string) =>
  signInAs(sql, base, { organisation: organisation.id, role: 'viewer', email })

const pageOf = (id: string) => `/dashboard/${organisation.id}/messages/${id}`

/** The path of the stream that a page follows; undefined if it follows none. */
async function streamOf(browser: Browser, id: string): Promise<string | undefined> {
  const { html } = await browser.get(pageOf(id))
  return /data-stream="([^"]*)"/.exec(html)?.[1]
}

/** A stream of events as a browser follows it. */
async function follow(address: string, headers: Record<string, string>) {
  const leaving = new AbortController()
  const response = await fetch(address, { headers, signal: leaving.signal })
  let received = ''
  const ended = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) received += decoder.decode(chunk)
    return 'ended'
  })().catch(() => 'broken')
  const events = () => [...received.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name)
  return {
    response,
    ended,
    events,
    text: () => received,
    untilEvents: (count: number) =>
      until(`${count} events`, async () => events().length >= count && events()),
    leave: () => leaving.abort(),
  }
}

t.test('a page follows a message that changes until its final status', async (t) => {
  const browser = await signInOnce('a@example.com')
  const id = await send(base, organisation)
  const path = await streamOf(browser, id)
  const stream = await follow(`${base}${path}`, { Cookie: browser.cookies() })
  t.match(stream.response.headers.get('Content-Type'), 'text/event-stream')
  t.match(stream.response.headers.get('Cache-Control'), 'no-store')
  await lives.start(id)
  await lives.finish(id, 'sent')
  await stream.untilEvents(1)
  await lives.record(id, { type: 'delivered' })
  t.equal(await stream.ended, 'ended')
  const [last, before, ...others] = stream.events().toReversed()
  t.same([before, last], ['change', 'end'])
  t.ok(others.every((name) => name === 'change'))
  t.equal(await streamOf(browser, id), undefined)
})

t.test('a page that is older than its message gets the change at once', async (t) => {
  const browser = await signInOnce('b@example.com')
  const id = await send(base, organisation)
  const path = await streamOf(browser, id)
  await lives.start(id)
  await lives.finish(id, 'sent')
  const stream = await follow(`${base}${path}`, { Cookie: browser.cookies() })
  t.same(await stream.untilEvents(1), ['change'])
  const [, version = ''] = /^id: (\w+)$/m.exec(stream.text()) ?? []
  stream.leave()
  const again = await follow(`${base}${path}`, {
    Cookie: browser.cookies(),
    'Last-Event-ID': version,
  })
  await lives.record(id, { type: 'delivered' })
  await again.ended
  t.same(again.events(), ['change', 'end'], 'what the browser has heard of is not repeated')
})

t.test('a stream ends when its user signs out, and when the role is taken away', async (t) => {
  const id = await send(base, organisation)
  const [first, second] = [await signInOnce('c@example.com'), await signInOnce('d@example.com')]
  const streams = []
  for (const browser of [first, second]) {
    streams.push(
      await follow(`${base}${await streamOf(browser, id)}`, { Cookie: browser.cookies() }),
    )
  }
  await first.post('/logout')
  await sql`select ops.remove_member(${organisation.id}, 'd@example.com')`
  for (const stream of streams) {
    t.equal(await stream.ended, 'ended')
    t.same(stream.events(), ['end'])
  }
})

t.test('a stream does not extend its session', async (t) => {
  const browser = await signInOnce('e@example.com')
  const id = await send(base, organisation)
  const path = await streamOf(browser, id)
  const stream = await follow(`${base}${path}`, { Cookie: browser.cookies() })
  await sql`
    update app.sessions s set seen_at = s.seen_at - interval '11 hours 59 minutes'
    from app.users u where u.id = s.user_id and u.email = 'e@example.com'`
  await lives.start(id)
  await stream.untilEvents(1)
  await sql`
    update app.sessions s set seen_at = s.seen_at - interval '1 minute'
    from app.users u where u.id = s.user_id and u.email = 'e@example.com'`
  t.equal(await stream.ended, 'ended')
})

/** The resource on a server of its own, whose calls the test counts or fails. */
async function serveStreams(
  t: Test,
  {
    fails = () => false,
    ...options
  }: Partial<Parameters<typeof streamResource>[1]> & {
    fails?: () => boolean
  } = {},
) {
  const email = `${t.name.replaceAll(/\W+/g, '-')}@example.com`
  await signInOnce(email)
  const [row] = await sql<{ session: string }[]>`
    select encode(s.sha256, 'hex') as session
    from app.sessions s join app.users u on u.id = s.user_id where u.email = ${email.toLowerCase()}`
  const calls: number[] = []
  let running = 0
  const call = (async (name: 'dashboard_message_versions', args: { messages: string[] }) => {
    calls.push(args.messages.length)
    if (fails()) throw new Error('the database is away')
    running += 1
    return lives.call(name, args as never).finally(() => {
      running -= 1
    })
  }) as Call
  const stopping = new AbortController()
  const { respond } = streamResource(call, { stopping: stopping.signal, pollMs: 5, ...options })
  const app = new Koa()
  // Browsers leave.
  app.silent = true
  app.use(async (ctx) => {
    const visit = {
      ctx,
      session: ctx.get('Session'),
      organisation: organisation.id,
      id: ctx.path.slice(1),
      query: ctx.query,
    }
    await respond(visit as unknown as Visit, new Map()).catch((error) => {
      ctx.status = (error as Refusal).status
    })
  })
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  t.teardown(() => {
    stopping.abort()
    server.closeAllConnections()
    server.close()
  })
  const address = `http://127.0.0.1:${port}/`
  return {
    calls,
    running: () => running,
    address,
    session: row?.session ?? '',
    open: (id: string, session = row?.session ?? '') =>
      follow(`${address}${id}`, { Session: session, 'Last-Event-ID': '' }),
  }
}

t.test(
  'one call in each poll reads all versions, and unchanged messages get no event',
  async (t) => {
    const { calls, open } = await serveStreams(t)
    const ids = [await send(base, organisation), await send(base, organisation)]
    const streams = await Promise.all(ids.map((id) => open(id)))
    // A browser without a version hears of the one there is.
    for (const stream of streams) await stream.untilEvents(1)
    calls.length = 0
    await until('five polls', async () => calls.length >= 5)
    t.ok(calls.every((messages) => messages === 2))
    for (const stream of streams) t.same(stream.events(), ['change'])
  },
)

t.test('no call is made without an open stream, nor after a HEAD request', async (t) => {
  const polls = holdLimits(t)
  const { running, open, address, session } = await serveStreams(t, { pollMs: HELD_MS })
  const id = await send(base, organisation)
  await fetch(`${address}${id}`, { method: 'HEAD', headers: { Session: session } })
  t.equal(polls.count(), 0)
  const stream = await open(id)
  await stream.untilEvents(1)
  t.equal(polls.count(), 1)
  stream.leave()
  await stream.ended
  await until('polls to stop', async () => {
    if (polls.count() > 0) polls.endFirst()
    return polls.count() === 0 && running() === 0
  })
})

t.test('a quiet stream gets comments, also while the database is away', async (t) => {
  let isAway = false
  const { open } = await serveStreams(t, { quietMs: 0, fails: () => isAway })
  const id = await send(base, organisation)
  const stream = await open(id)
  const comments = () => stream.text().split('\n:\n').length
  await until('comments', async () => comments() > 3)
  isAway = true
  const before = comments()
  await until('more comments', async () => comments() > before + 3)
  isAway = false
  await lives.start(id)
  await stream.untilEvents(2)
  t.same(stream.events(), ['change', 'change'])
})

t.test(
  'streams over the limit of a session or of the process are refused until one ends',
  async (t) => {
    const { open, session } = await serveStreams(t, { maxOfSession: 2, maxStreams: 3 })
    const [other = { session: '' }] = await sql<{ session: string }[]>`
    select encode(s.sha256, 'hex') as session from app.sessions s where s.sha256 <> decode(${session}, 'hex')
      and exists (select from app.members m where m.user_id = s.user_id)
      and s.seen_at > now() - interval '1 hour' limit 1`
    const id = await send(base, organisation)
    const first = await open(id)
    await open(id)
    t.equal((await open(id)).response.status, 429)
    t.equal((await open(id, other.session)).response.status, 200)
    t.equal((await open(id, other.session)).response.status, 429)
    first.leave()
    await until('the place to be free', async () => {
      const again = await open(id)
      return again.response.status === 200
    })
  },
)

// Last: it stops the service.
t.test(
  'a stop of the process ends streams at once, and requests in progress are not cut',
  async (t) => {
    const browser = await signInOnce('f@example.com')
    const id = await send(base, organisation)
    const path = await streamOf(browser, id)
    const stream = await follow(`${base}${path}`, { Cookie: browser.cookies() })
    await until('the stream to be open', async () => stream.text() !== '')
    const stopped = service.stop()
    // Connections that are still open after 8 s are broken off.
    t.equal(await stream.ended, 'ended')
    t.same(stream.events(), [], 'so the browser connects again')
    await stopped
  },
)
