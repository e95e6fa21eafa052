import { connect } from 'node:net'
import type { Attack, Gun } from '../attack.ts'

const CONNECTIONS = 2000

export const halfSentBodies: Attack = {
  name: 'half-sent-bodies',
  title: '2 000 requests whose body stops after half of it',
  aim(gun) {
    return () =>
      openAll(gun, CONNECTIONS, (key) => {
        const body = `{"from":"${'a'.repeat(10_000)}`
        return `POST /v1/emails HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: 1000000\r\n\r\n${body}`
      })
  },
}

/** Opens connections, says something on each, and holds them until the time is over. */
export async function openAll(gun: Gun, count: number, words: (key: string) => string) {
  const sockets = Array.from({ length: count }, (_, n) => {
    const { key = '' } = gun.attackers[n % gun.attackers.length] ?? {}
    const socket = connect(gun.port, gun.host)
    socket.on('error', () => undefined)
    socket.once('connect', () => socket.write(words(key)))
    // Said once for each, with the status where there was one.
    let heard = 'closed'
    socket.once('data', (chunk) => {
      heard = `${chunk.toString('latin1').slice(9, 12)}, then closed`
    })
    socket.once('close', () => gun.note(gun.isOver() ? 'held' : heard))
    return socket
  })
  await gun.over
  for (const socket of sockets) socket.destroy()
  await new Promise((done) => setTimeout(done, 500))
}
