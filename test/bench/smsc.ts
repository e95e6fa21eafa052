// An SMSC that takes everything at once, and reports nothing: what is measured is us.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, PDU } from 'smpp'

let taken = 0
const server = createServer({}, (session) => {
  session.on('pdu', ({ command, sequence_number }: PDU) => {
    const id = command === 'submit_sm' ? { message_id: String(++taken) } : {}
    session.send(new PDU(`${command}_resp`, { sequence_number, ...id }))
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }))
