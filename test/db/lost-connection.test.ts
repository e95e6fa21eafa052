import { once } from 'node:events'
import { type AddressInfo, connect as connectTo, createServer } from 'node:net'
import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { until } from '../fixtures/time.ts'

const { url } = await createDatabase()

/** A proxy that cuts the first connection after this many responses, and no further one. */
async function behindWire(answers: number) {
  let left = answers
  const server = createServer((near) => {
    const { hostname, port } = new URL(url)
    const far = connectTo(Number(port), hostname)
    near.pipe(far)
    far.on('data', (chunk) => {
      near.write(chunk)
      left -= 1
      if (left === 0) near.destroy()
    })
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
    for (const socket of [near, far]) socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const wired = new URL(url)
  wired.port = String((server.address() as AddressInfo).port)
  return { url: wired.href, isCut: () => left <= 0, close: () => server.close() }
}

t.test('a connection that is lost at any moment fails only its call', async (t) => {
  const outcomes = []
  for (let answers = 1; answers <= 8; answers++) {
    const wire = await behindWire(answers)
    const sql = connect(wire.url, { role: 'postgram_service', max: 1 })
    const call = caller(sql)
    const outcome = await call('health', {}).then(
      () => 'answered',
      () => 'failed',
    )
    outcomes.push({ outcome, isCut: wire.isCut() })
    // The query may run on the connection that was just lost.
    const next = await until('an answer', () => call('health', {}).catch(() => null))
    t.match(next, /^[0-9a-f]{64}$/, `the service goes on when it was cut after ${answers} answers`)
    await sql.end()
    wire.close()
  }
  t.ok(
    outcomes.some(({ outcome, isCut }) => outcome === 'failed' && isCut),
    'some were cut off',
  )
})
