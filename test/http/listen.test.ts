import { createServer, type Server } from 'node:http'
import t from 'tap'
import { listen } from '../../src/http/listen.ts'

t.test('listen(): 4 096 connections may wait to be accepted', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  const begin = server.listen.bind(server) as (...args: unknown[]) => Server
  let given: unknown
  server.listen = ((...args: unknown[]) => {
    given = args[0]
    return begin(...args)
  }) as typeof server.listen
  t.match(await listen(server, '127.0.0.1', 0), /^http:\/\/127\.0\.0\.1:\d+$/)
  t.match(given, { backlog: 4096 })
})
