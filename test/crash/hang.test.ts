import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import type { SmsSendResult } from '../../src/providers/sms.ts'
import { createDatabase } from '../fixtures/database.ts'
import { jobsOf, messageOf, send, sendSms, timelineOf } from '../fixtures/messages.ts'
import { startTcpServer } from '../fixtures/network.ts'
import { createOrganisation, createPayer, smsOf } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { createSmsStandIn, createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

/** The promised limit of a stop. */
const STOP_SECONDS = 15

/** The database behind a connection that can be cut without an error. */
async function behindWire(url: string) {
  const ends = new Map<Socket, Socket>()
  const wasCut = new Set<Socket>()
  const wire = await startTcpServer((near) => {
    const far = connect(Number(new URL(url).port), new URL(url).hostname)
    far.on('error', () => undefined)
    ends.set(near.pipe(far).pipe(near), far)
    near.on('close', () => far.destroy())
  })
  return {
    url: Object.assign(new URL(url), { port: wire.port }).href,
    cut() {
      for (const near of ends.keys()) {
        wasCut.add(near)
        near.unpipe()
      }
    },
    /** How many connections that were cut are still open; they lose what they hold back. */
    cutAndOpen: () => [...wasCut].filter((near) => !near.resume().destroyed).length,
    mend() {
      for (const [near, far] of ends) near.pipe(far)
    },
  }
}

// Both wait for most of the limit, so they wait at the same time.
t.test('stop: ends within its limit', { jobs: 2 }, async (t) => {
  t.test('stop: ends within its limit with a caller and a provider that never end', async (t) => {
    const provider = createStandIn()
    provider.onSend = () => new Promise(() => undefined)
    const service = await startTestService(url, { createEmailProvider: () => provider })
    const organisation = await createOrganisation(sql)
    const id = await send(service.base, organisation)
    await until('the hand-over', async () => provider.handed.length === 1)

    // The counter restarts with each second, so only its changes count.
    const admitted = async () => {
      const [row] = await sql<{ second: string; requests: number }[]>`
        select second, requests from app.request_counts
        where organisation_id = core.decode_id('org', ${organisation.id})`
      return `${row?.second} ${row?.requests}`
    }
    const before = await admitted()
    const { hostname, port } = new URL(service.base)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(
      `POST /v1/emails HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer ${organisation.liveKey}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"from":',
    )
    await until('the request to be admitted', async () => (await admitted()) !== before)

    const stoppedAt = performance.now()
    await service.stop()
    const seconds = (performance.now() - stoppedAt) / 1000
    t.comment(`stopped in ${seconds.toFixed(1)} s`)
    t.ok(seconds < STOP_SECONDS)
    if (!socket.closed) await once(socket, 'close')
    const locked = await sql`select from graphile_worker._private_jobs where locked_at is not null`
    t.equal(locked.length, 0)
    t.same(await sql`select from ops.processes`, [])
    t.match(await messageOf(sql, id), { status: 'queued', attempts: 1, attemptStartedAt: Date })
    t.match(await jobsOf(sql, id), [{ lockedBy: null }])
    t.match(await timelineOf(sql, id), [
      { type: 'queued' },
      { type: 'deferred', detail: { text: 'the worker stopped before the provider responded' } },
    ])

    const next = createStandIn()
    next.onLookup = () => true
    const restarted = await startTestService(url, { createEmailProvider: () => next })
    await until('the message to be sent', async () => (await messageOf(sql, id)).status === 'sent')
    t.equal(next.asked.length, 1, 'the next worker asks first')
    t.equal(next.handed.length, 0)
    await restarted.stop()
  })

  t.test('stop: ends within its limit if the database does not respond', async (t) => {
    // Its own: the other test expects no process in its database.
    const { url } = await createDatabase()
    const wire = await behindWire(url)
    const service = await spawnService(wire.url)
    wire.cut()
    const ending = service.end('SIGTERM')
    await until('the process to end', async () => service.child.exitCode !== null)
    t.equal(await ending, 0)
    t.match(service.output(), /role not stopped in time/)
  })
})

t.test('stop: an SMS that waits for the limiter is released as not sent', async (t) => {
  const provider = createSmsStandIn()
  const closing = Promise.withResolvers<SmsSendResult>()
  provider.onSend = () => closing.promise
  provider.close = async () => closing.resolve({ outcome: 'deferred', text: 'not its turn yet' })
  const service = await startTestService(url, { createSmsProvider: () => provider })
  const organisation = await createPayer(sql, { included: 100 })
  const id = await sendSms(service.base, organisation, smsOf(1))
  await until('the hand-over', async () => provider.handed.length === 1)
  await service.stop()
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 1 })
  t.match(await jobsOf(sql, id), [{ lockedBy: null }])
  const [, event] = await timelineOf(sql, id)
  t.match(event, { type: 'deferred', detail: { text: 'not its turn yet' } })
  t.notOk(event?.detail.isAmbiguous)
})

t.test('database silent, then available: the process replaces all its connections', async () => {
  const { url, sql } = await createDatabase()
  const wire = await behindWire(url)
  const { base, stop } = await startTestService(wire.url, { roles: ['api', 'worker'] })
  const organisation = await createOrganisation(sql)
  const first = await send(base, organisation)
  const isSent = async (id: string) => (await messageOf(sql, id)).status === 'delivered'
  await until('the first message', () => isSent(first))
  wire.cut()
  // New connections are not cut.
  await until('the connections that were cut to be closed', async () => wire.cutAndOpen() === 0)
  const second = await send(base, organisation)
  await until('the second message', () => isSent(second))
  await stop()
})

t.test('database silent for 60 s: the process exits', async (t) => {
  const begin = globalThis.setInterval
  const heartbeats: (() => void)[] = []
  const setInterval = (run: () => void, ms: number) => {
    if (ms !== 2000) return begin(run, ms)
    heartbeats.push(run)
    return begin(() => undefined, 600_000)
  }
  t.intercept(globalThis, 'setInterval', { value: setInterval })
  const lastHeartbeatAt = async () =>
    Number(
      (
        await sql<
          { at: number }[]
        >`select max(extract(epoch from heartbeat_at)) as at from app.processes`
      )[0]?.at,
    )

  const wire = await behindWire(url)
  let silences = 0
  const onSilence = () => {
    silences += 1
  }
  const { stop } = await startTestService(wire.url, { roles: ['api'], onSilence })
  const [sendHeartbeat] = heartbeats
  if (!sendHeartbeat) throw new Error('the service started no heartbeat')
  const last = await lastHeartbeatAt()
  wire.cut()
  for (let n = 1; n < 30; n++) sendHeartbeat()
  t.equal(silences, 0)
  sendHeartbeat()
  t.equal(silences, 1)

  wire.mend()
  await until('a later heartbeat', async () => {
    sendHeartbeat()
    return (await lastHeartbeatAt()) > last
  })
  t.equal(silences, 1)
  await stop()
})
