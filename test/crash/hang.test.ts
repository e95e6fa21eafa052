import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { jobsOf, messageOf, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService, startTestService } from '../fixtures/service.ts'
import { createStandIn } from '../fixtures/stand-in.ts'
import { startTcpServer } from '../fixtures/tcp-server.ts'
import { until } from '../fixtures/until.ts'

const { url, sql } = await createDatabase()

/** Design section 2: a process has 15 to stop in. Far more where the machine is busy with much else. */
const STOP_SECONDS = 60

t.test('neither a caller nor a provider that never ends holds up a stop', async (t) => {
  const provider = createStandIn()
  provider.onSend = () => new Promise(() => undefined)
  const service = await startTestService(url, { createEmailProvider: () => provider })
  const organisation = await createOrganisation(sql)
  const id = await send(service.base, organisation)
  await until('the hand-over', async () => provider.handed.length === 1)

  // The count begins anew with each second, so that only a change of it tells.
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
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 1, handoverStartedAt: Date })
  t.match(await jobsOf(sql, id), [{ lockedBy: null }])
  t.match(await timelineOf(sql, id), [
    { type: 'queued' },
    { type: 'deferred', detail: { text: 'the worker stopped before the provider answered' } },
  ])

  const next = createStandIn()
  next.onLookup = () => true
  const restarted = await startTestService(url, { createEmailProvider: () => next })
  await until('the message to be sent', async () => (await messageOf(sql, id)).status === 'sent')
  t.equal(next.asked.length, 1, 'the next worker asks first')
  t.equal(next.handed.length, 0)
  await restarted.stop()
})

t.test('nor does a database that says nothing any more', async (t) => {
  const { hostname, port } = new URL(url)
  const wires = new Set<Socket>()
  const wire = await startTcpServer((near) => {
    wires.add(near)
    const far = connect(Number(port), hostname)
    far.on('error', () => undefined)
    near.pipe(far).pipe(near)
    near.on('close', () => far.destroy())
  })
  const wired = Object.assign(new URL(url), { port: wire.port })
  const service = await spawnService(wired.href)
  for (const near of wires) near.unpipe()
  const ending = service.end('SIGTERM')
  await until('the process to end', async () => service.child.exitCode !== null)
  t.equal(await ending, 1)
  t.match(service.output(), /not all of it stopped in time/)
})
