import { once } from 'node:events'
import type { Server } from 'node:http'
import * as net from 'node:net'

/** Connections that wait to be accepted. The client of a further one retries after a second. */
const BACKLOG = 4096

/**
 * The sockets of one port. With four, a burst of a thousand connections is accepted so quickly that parsing their
 * requests delays others by half a second.
 */
const SOCKETS = 2

export type Listening = {
  /** The URL of the server. */
  address: string
  /** Accepts no more connections; settles when all have ended. */
  close(): Promise<void>
}

/** Makes a server listen, on a free port for port 0; returns its URL. Rejects when the port is taken. */
export async function listen(server: net.Server, host: string, port: number): Promise<string> {
  await listenOn(server, { host, port })
  return addressOf(host, (server.address() as net.AddressInfo).port)
}

/**
 * Makes a server listen on several sockets of one port. Node accepts one connection of a socket in each
 * iteration of the event loop: with one socket, a client behind a burst of new connections waits a second. On
 * systems other than Linux there is one socket. Rejects when the port is taken.
 */
export async function listenOnSeveral(
  server: Server,
  host: string,
  port: number,
): Promise<Listening> {
  if (process.platform !== 'linux') {
    return { address: await listen(server, host, port), close: () => close(server) }
  }
  // Sockets that share a port would also share it with another process, so it must be free first.
  const first = net.createServer()
  const address = await listen(first, host, port)
  const shared = { host, port: (first.address() as net.AddressInfo).port, reusePort: true }
  await close(first)
  const pass = (socket: net.Socket) => server.emit('connection', socket)
  const others = Array.from({ length: SOCKETS - 1 }, () =>
    net.createServer({ allowHalfOpen: true, noDelay: true }, pass),
  )
  const servers = [server, ...others]
  for (const one of servers) await listenOn(one, shared)
  return {
    address,
    async close() {
      await Promise.all(servers.map(close))
    },
  }
}

/** Returns the URL of a server on this host and port. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function listenOn(server: net.Server, options: net.ListenOptions): Promise<void> {
  server.listen({ ...options, backlog: BACKLOG })
  await once(server, 'listening')
}

async function close(server: net.Server): Promise<void> {
  await once(server.close(), 'close')
}
