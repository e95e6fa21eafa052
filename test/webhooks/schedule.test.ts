import type { ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { freePort, listen, selfSigned, startTcpServer } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  addEvents,
  attemptsAt,
  createEndpoint,
  startReceiver,
  stateOf,
} from '../fixtures/webhooks.ts'

const database = await createDatabase()
const { sql } = database
const organisation = await createOrganisation(sql)

/** Enough for every response on a slow machine. */
const PATIENT_MS = 30_000

/** The delay after each failure, in minutes. */
const DELAYS = [1, 5, 30, 120, 1440]

const elsewhere = await startReceiver()

async function httpReceiver(answer: (response: ServerResponse) => void) {
  return (await startReceiver(answer)).url
}

async function tcpReceiver(onConnection: Parameters<typeof startTcpServer>[0]) {
  return `http://127.0.0.1:${(await startTcpServer(onConnection)).port}/`
}

async function tlsReceiver() {
  const certificate = selfSigned()
  if (!certificate) return
  const server = createTlsServer(certificate, (_, response) => response.end())
  return `https://127.0.0.1:${(await listen(server)).port}/`
}

/** Writes until the connection is closed. */
function pour(response: ServerResponse) {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const more = () => {
    while (response.write(chunk));
  }
  response.on('drain', more)
  more()
}

type Way = {
  url: string | undefined
  status: number | null
  answer?: RegExp
  /** Short where each of the six attempts takes all of it. */
  timeoutMs?: number
}

/** Ways to fail, each with its URL and what an attempt records. */
const ways: Record<string, Way> = {
  refuses: { url: `http://127.0.0.1:${await freePort()}/`, status: null },
  resets: {
    url: await tcpReceiver((socket) => socket.once('data', () => socket.resetAndDestroy())),
    status: null,
  },
  'never responds': { url: await httpReceiver(() => undefined), status: null, timeoutMs: 300 },
  'sends its headers slowly': {
    url: await tcpReceiver((socket) => {
      const timer = setInterval(() => socket.write('X: y\r\n'), 20)
      socket.write('HTTP/1.1 200 OK\r\n')
      socket.on('close', () => clearInterval(timer))
    }),
    status: null,
    timeoutMs: 300,
  },
  'sends a body without end': { url: await httpReceiver(pour), status: 200, answer: /^x{1000}$/ },
  'responds with 500': {
    url: await httpReceiver((response) => response.writeHead(500).end('out of order')),
    status: 500,
    answer: /^out of order$/,
  },
  redirects: {
    url: await httpReceiver((response) => {
      response.writeHead(301, { location: elsewhere.url }).end()
    }),
    status: 301,
  },
  'has a self-signed certificate': { url: await tlsReceiver(), status: null },
  'closes the connection during its response': {
    url: await httpReceiver((response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('half an', () => response.destroy())
    }),
    status: 200,
    answer: /^half an$/,
  },
  'does not speak HTTP': {
    url: await tcpReceiver((socket) => socket.end('hello\r\n\r\n')),
    status: null,
  },
}

for (const [way, { url, status, answer = /^$/, timeoutMs = PATIENT_MS }] of Object.entries(ways)) {
  t.test(`an endpoint that ${way} gets six attempts on schedule`, { skip: !url }, async (t) => {
    const options = { roles: ['worker' as const], webhookTimeoutMs: timeoutMs }
    const worker = await startTestService(database.url, options)
    const endpoint = await createEndpoint(sql, organisation, { url: url ?? '' })
    const [event] = await addEvents(sql, [endpoint], 1)
    const deliveryOf = async () => {
      const [delivery] = await sql<{ attempts: number; dueInMs: number; sinceMs: number }[]>`
        select d.attempts,
          1000 * extract(epoch from d.due_at - a.started_at)::float8 - a.duration_ms as due_in_ms,
          1000 * extract(epoch from clock_timestamp() - a.started_at)::float8 - a.duration_ms as since_ms
        from app.webhook_deliveries d
        left join app.webhook_attempts a on a.event_id = d.event_id and a.attempt = d.attempts
        where d.endpoint_id = core.decode_id('we', ${endpoint.id})`
      return delivery
    }
    for (const [place, minutes] of DELAYS.entries()) {
      const delivery = await until(`failure ${place + 1}`, async () => {
        const found = await deliveryOf()
        return found?.attempts === place + 1 && found
      })
      // A lease that is ending would miss the delivery that the lines below make due.
      await until('the end of the lease', async () => !(await stateOf(sql, endpoint)).isHeld)
      const delayMs = minutes * 60_000
      // The duration has whole milliseconds.
      t.ok(delivery.dueInMs >= delayMs - 1, `${minutes} minutes after the failure`)
      t.ok(delivery.dueInMs <= delayMs * 1.1 + delivery.sinceMs, 'at most 10 % later')
      t.match(await sql`select api.enqueue_due_deliveries() as jobs`, [
        // Only the first delay is so short that the delivery gets a job for its time.
        { jobs: minutes === 1 ? 1 : 0 },
      ])
      await sql`delete from graphile_worker._private_jobs where run_at > now()`
      await sql`update app.webhook_deliveries set due_at = now() where attempts = ${place + 1}`
      await sql`select api.enqueue_due_deliveries()`
    }
    await until('the last failure', async () => (await deliveryOf()) === undefined)

    const attempts = await attemptsAt(sql, endpoint)
    t.same(
      attempts.map(({ attempt }) => attempt),
      [1, 2, 3, 4, 5, 6],
    )
    for (const attempt of attempts) {
      t.match(attempt, { event: event?.id, status, error: /\w+/ })
      t.match(attempt.response ?? '', answer)
    }
    const { lastError, waiting, failingSince } = await stateOf(sql, endpoint)
    t.comment(lastError)
    t.equal(lastError, attempts.at(-1)?.error)
    t.ok(failingSince)
    t.equal(waiting, 0, 'no attempt is left')
    t.match(await sql`select api.enqueue_due_deliveries() as jobs`, [{ jobs: 0 }])
    const kept = await sql`
      select from app.webhook_events where id = core.decode_id('evt', ${event?.id ?? ''})`
    t.equal(kept.length, 1, 'and the event is kept for replay')
    await worker.stop()
  })
}

t.test('a redirect: no attempt follows it', async (t) => {
  t.same(elsewhere.received, [])
})
