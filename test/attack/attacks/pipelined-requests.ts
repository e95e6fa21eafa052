import { once } from 'node:events'
import { connect } from 'node:net'
import type { Attack, Gun } from '../attack.ts'

const CONNECTIONS = 100
const REQUESTS = 4000

export const pipelinedRequests: Attack = {
  name: 'pipelined-requests',
  title: '4 000 requests at once on each of 100 connections, opened again when they close',
  isKeyless: true,
  aim(gun) {
    const words = 'GET / HTTP/1.1\r\n\r\n'.repeat(REQUESTS)
    const lane = async () => {
      while (!gun.isOver()) await say(gun, words)
    }
    return async () => {
      await Promise.all(Array.from({ length: CONNECTIONS }, lane))
    }
  },
}

/** Sends words on a connection of their own, until it closes or the time is over. */
async function say(gun: Gun, words: string): Promise<void> {
  const socket = connect(gun.port, gun.host)
  socket.on('error', () => undefined)
  socket.end(words)
  socket.resume()
  void gun.over.then(() => socket.destroy())
  await once(socket, 'close')
  gun.note('closed')
}
