import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { listenOnSeveral } from '../../src/http/listen.ts'

async function aServer(t: Test) {
  const server = createServer((_request, response) => response.end('hello'))
  const listening = await listenOnSeveral(server, '127.0.0.1', 0)
  t.teardown(async () => {
    server.closeAllConnections()
    await listening.close()
  })
  return { server, ...listening, port: Number(new URL(listening.address).port) }
}

t.test(
  'several connections are accepted in each iteration of the event loop',
  { skip: process.platform !== 'linux' && 'only Linux shares a port between sockets' },
  async (t) => {
    const { server, port } = await aServer(t)
    const clients = Array.from({ length: 200 }, () => connect(port, '127.0.0.1'))
    t.teardown(() => {
      for (const client of clients) client.destroy()
    })
    let accepted = 0
    let iterations = 0
    const { promise: all, resolve } = Promise.withResolvers<void>()
    server.on('connection', () => {
      accepted += 1
      if (accepted === clients.length) resolve()
    })
    const iterate = () => {
      iterations += 1
      if (accepted < clients.length) setImmediate(iterate)
    }
    iterate()
    await all
    // The system divides connections by a hash, so one socket may have more than half.
    t.ok(iterations < clients.length * 0.8, `${iterations} iterations`)
  },
)

t.test('a port that is taken is refused, also by sockets that share it', async (t) => {
  const { port } = await aServer(t)
  const second = createServer()
  await t.rejects(listenOnSeveral(second, '127.0.0.1', port), { code: 'EADDRINUSE' })
})

t.test('close() accepts no more, and waits for the connections of every socket', async (t) => {
  const { server, port, close } = await aServer(t)
  const clients: Socket[] = []
  for (let n = 0; n < 20; n++) {
    const accepted = once(server, 'connection')
    clients.push(connect(port, '127.0.0.1'))
    await accepted
  }
  let isClosed = false
  const closed = close().then(() => {
    isClosed = true
  })
  const [error] = await once(connect(port, '127.0.0.1'), 'error')
  t.match(error, { code: 'ECONNREFUSED' })
  const [last, ...others] = clients
  for (const client of others) client.destroy()
  await Promise.all(others.map((client) => once(client, 'close')))
  t.notOk(isClosed)
  last?.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const [response] = await once(last as Socket, 'data')
  t.match(String(response), /hello/)
  await closed
})
