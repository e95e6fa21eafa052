// A webhook endpoint that takes everything at once: what is measured is us. As lean as can be,
// because it shares the machine with what it measures.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok'

const server = createServer((socket) => {
  let buffer = Buffer.alloc(0)
  socket.setNoDelay(true).on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk])
    for (;;) {
      const headEnd = buffer.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const head = buffer.toString('latin1', 0, headEnd)
      const total = headEnd + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (buffer.length < total) return
      buffer = buffer.subarray(total)
      socket.write(ANSWER)
    }
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }))
