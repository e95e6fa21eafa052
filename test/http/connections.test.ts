import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { pino } from 'pino'
import t from 'tap'
import { limitConnections } from '../../src/http/connections.ts'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, get, isRefused, openRaw, postHead, type RawClient } from '../fixtures/http.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const log: string[] = []
const limits = { headersMs: 200, bodyMs: 200, keepAliveMs: 1, connections: 4 }
const { base } = await startTestService(url, {
  roles: ['api'],
  httpLimits: limits,
  log: pino({ level: 'debug' }, { write: (line) => log.push(line) }),
})
const organisation = await createOrganisation(sql)
const { liveKey, domain } = organisation
await liftRate(sql, organisation)

const body = JSON.stringify(anEmail(domain))
const health = 'GET /healthz HTTP/1.1\r\nHost: a\r\n'
const late = {
  status: 408,
  hasKey: false,
  words: 'The request did not arrive in time. Send it again.',
}

t.test('half-sent headers: 408 in the envelope, then the connection closes', async (t) => {
  const client = await openRaw(base)
  client.write('POST /v1/emails HTTP/1.1\r\nHost: a\r\nX-Half')
  isRefused(t, await client.answer(), 'invalid_json', undefined, late)
})

t.test('half-sent headers of a second request: 408 in the envelope', async (t) => {
  const client = await openRaw(base)
  client.write(`${health}\r\n`)
  await once(client.socket, 'data')
  client.write('GET /v1/usage HT')
  const [, second = ''] = (await client.received).split('{"status":"up"}')
  t.match(second, /^HTTP\/1\.1 408 Request Timeout\r\n/)
  t.match(second, '"code":"invalid_json"')
})

t.test('an idle connection closes without a response, fresh or kept alive', async (t) => {
  const fresh = await openRaw(base)
  t.equal(await fresh.received, '')
  const kept = await openRaw(base)
  kept.write(`${health}\r\n`)
  t.match(await kept.received, /^HTTP\/1\.1 200 OK.*\{"status":"up"\}$/s)
})

t.test('a half-sent body: 408 in the envelope, then the connection closes', async (t) => {
  const before = await traces(sql)
  const words = 'The body did not arrive in time: 10 s, and 1 s more for each 32 KB. Send it again.'
  const client = await openRaw(base)
  client.write(postHead('/v1/emails', liveKey, body.length) + body.slice(0, -1))
  isRefused(t, await client.answer(), 'invalid_json', undefined, { status: 408, words })

  const dripping = await openRaw(base)
  dripping.write(postHead('/v1/emails', liveKey, 1_000_000))
  const drip = setInterval(() => dripping.socket.writable && dripping.write(' '), 10)
  const response = await dripping.answer()
  clearInterval(drip)
  isRefused(t, response, 'invalid_json', undefined, { status: 408, words, name: 'byte by byte' })
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('a large body in progress has more time than one that stopped', async (t) => {
  const large = await openRaw(base)
  const padded = body.padEnd(640 * 1024)
  large.write(postHead('/v1/emails', liveKey, padded.length, 'Connection: close\r\n'))
  await new Promise((resolve) => large.socket.write(padded.slice(0, -1), resolve))
  const stopped = await openRaw(base)
  stopped.write(postHead('/v1/emails', liveKey, 10))
  t.equal((await stopped.answer()).status, 408)
  large.write(padded.slice(-1))
  t.equal((await large.answer()).status, 200)
})

t.test('a refused request whose body never ends gets its response and is cut off', async (t) => {
  const client = await openRaw(base)
  client.write(postHead('/v1/emails', `sk_live_${'0'.repeat(64)}`, 1000))
  const response = await client.answer()
  isRefused(t, response, 'unauthorized')
  t.equal(response.headers.get('connection'), 'close')
})

t.test('a body that ends early: 400 invalid_json', async (t) => {
  for (const more of ['', 'Content-Encoding: gzip\r\n']) {
    const client = await openRaw(base)
    client.socket.end(postHead('/v1/emails', liveKey, body.length, more) + body.slice(0, -1))
    isRefused(t, await client.answer(), 'invalid_json', undefined, {
      hasKey: false,
      words: 'The body broke off before its end.',
    })
  }
})

t.test('a connection reset within a body is logged as a refusal, not as an error', async (t) => {
  log.length = 0
  const client = await openRaw(base)
  client.write(postHead('/v1/emails', liveKey, body.length) + body.slice(0, -1))
  client.socket.resetAndDestroy()
  const line = await until('its line in the log', async () =>
    log.map((each) => JSON.parse(each)).find(({ route }) => route === '/v1/emails'),
  )
  t.match(line, { msg: 'request', status: 400 })
  const error = await until('the error of the socket in the log', async () =>
    log.map((each) => JSON.parse(each)).find(({ msg }) => msg === 'response not sent'),
  )
  t.equal(error.level, 20, 'it is at level debug')
  t.notMatch(log.join(''), '"level":50')
})

/** Returns how many requests a server emits of those that arrive together on one connection. */
async function requestsOf(count: number): Promise<number> {
  let requests = 0
  const server = createServer({ requireHostHeader: false }, () => {
    requests += 1
  })
  limitConnections(server, 10)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1', () =>
    socket.write('GET / HTTP/1.1\r\n\r\n'.repeat(count)),
  )
  await new Promise((resolve) => socket.on('error', () => undefined).once('close', resolve))
  server.close()
  return requests
}

t.test('a 17th request on a connection whose responses are not sent closes it', async (t) => {
  const many = await openRaw(base)
  many.write(`${health}\r\n`.repeat(17))
  t.equal(await many.received, '')
  const parsed = await requestsOf(1000)
  t.equal(parsed, 17, 'further requests are not parsed')
  const some = await openRaw(base)
  some.write(`${health}\r\n`.repeat(16))
  t.equal((await some.received).split('{"status":"up"}').length, 17, '16 are served')
})

t.test('a client that closes its side after a request still gets the response', async (t) => {
  const client = await openRaw(base)
  client.socket.end(postHead('/v1/emails', liveKey, body.length) + body)
  t.match(await client.answer(), { status: 200, json: { status: 'queued' } })
  const reader = await openRaw(base)
  reader.socket.end(`${health}\r\n`)
  t.match(await reader.answer(), { status: 200, json: { status: 'up' } })
})

t.test('one connection too many closes the one that has waited longest', async (t) => {
  const waiting = []
  for (let n = 0; n < limits.connections; n++) {
    const client = await openRaw(base)
    client.write(postHead('/v1/emails', liveKey, 1_000_000))
    // A longer time limit than the other tests of this file.
    client.write(' '.repeat(900_000))
    waiting.push(client)
  }
  const [oldest, ...others] = waiting
  const newcomer = await openRaw(base)
  newcomer.write(`${health}Connection: close\r\n\r\n`)
  t.match(await newcomer.answer(), { status: 200 })
  t.equal(await oldest?.received, '', 'is closed without a response')
  t.ok(others.every(({ socket }) => socket.writable && !socket.readableEnded))
  for (const { socket } of waiting) socket.destroy()
})

t.test('over the limit connections with a received request stay open', async (t) => {
  const served: RawClient[] = []
  await sql.begin(async (sql) => {
    await sql`lock table app.request_counts in exclusive mode`
    for (let n = 0; n < limits.connections; n++) {
      const client = await openRaw(base)
      client.write(
        `GET /v1/usage HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${liveKey}\r\nConnection: close\r\n\r\n`,
      )
      served.push(client)
    }
    await until('the requests to wait for the database', async () => {
      const locked = await sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and query like '%admit%'`
      return locked.length > 0
    })
    const newcomer = await openRaw(base)
    t.equal(await newcomer.received, '', 'the new connection is closed')
  })
  for (const client of served) t.equal((await client.answer()).status, 200)
  t.equal((await get(`${base}/healthz`, null)).status, 200)
})
