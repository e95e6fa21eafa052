import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Koa from 'koa'
import t from 'tap'
import { createBodies } from '../../src/http/body/index.ts'
import { HTTP_LIMITS } from '../../src/http/limits.ts'
import { createYield } from '../../src/http/yield.ts'

t.test('createYield(): runs owners round-robin, each with its oldest work first', async (t) => {
  const rounds = createYield(1000)
  const ran: string[] = []
  const run = (owner: string, work: string) => rounds.run(owner, () => ran.push(work))
  await Promise.all([
    run('a', 'a1'),
    run('a', 'a2'),
    run('a', 'a3'),
    run('b', 'b1'),
    run('c', 'c1'),
  ])
  t.same(ran, ['a1', 'b1', 'c1', 'a2', 'a3'])
})

t.test('createYield(): after maxMs the rest waits for the next iteration', async (t) => {
  const rounds = createYield(0)
  const ran: number[] = []
  const all = [0, 1, 2].map((n) => rounds.run('a', () => ran.push(n)))
  t.same(ran, [], 'none runs at once')
  for (const expected of [[0], [0, 1], [0, 1, 2]]) {
    await nextTurn()
    t.same(ran, expected)
  }
  t.same(await Promise.all(all), [1, 2, 3])
})

t.test('createYield(): work that throws or rejects fails alone', async (t) => {
  const rounds = createYield(1000)
  const thrown = rounds.run('a', () => {
    throw new Error('thrown')
  })
  const rejected = rounds.run('a', () => Promise.reject(new Error('rejected')))
  const next = rounds.run('a', async () => 'done')
  await t.rejects(thrown, { message: 'thrown' })
  await t.rejects(rejected, { message: 'rejected' })
  t.equal(await next, 'done')
})

t.test('createBodies(): concurrent refused bodies are discarded one chunk at a time', async (t) => {
  const requests = 10
  const bytes = 4_000_000
  const received: IncomingMessage[] = []
  const { promise: allBegun, resolve: begin } = Promise.withResolvers<void>()
  const app = new Koa().use(createBodies(HTTP_LIMITS).drain).use(async (ctx) => {
    if (received.push(ctx.req) === requests) begin()
    await allBegun
    ctx.status = 429
  })
  const server = createServer(app.callback()).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  let areOver = false
  const responses = Promise.all(
    Array.from({ length: requests }, async () => {
      const call = request({ port, method: 'POST', agent: false }).end(Buffer.alloc(bytes))
      const [response] = (await once(call, 'response')) as [IncomingMessage]
      response.resume()
      return response.statusCode
    }),
  ).finally(() => {
    areOver = true
  })
  await allBegun
  const read = () => received.reduce((sum, { socket }) => sum + socket.bytesRead, 0)
  let before = read()
  let most = 0
  while (!areOver) {
    await nextTurn()
    most = Math.max(most, read() - before)
    before = read()
  }
  t.same(await responses, Array(requests).fill(429))
  t.ok(before > requests * bytes, 'all of them were read')
  // A chunk has 64 KB, and the next one may already be buffered.
  t.ok(most <= 4 * 65_536, `at most ${most} bytes in one iteration of the event loop`)
})
