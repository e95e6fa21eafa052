import { Socket } from 'node:net'
import { buildConnector, Client } from 'undici'
import { STOPPED, WebhookFailure } from './failures.ts'
import { skipInterim } from './interim.ts'

export type Connections = {
  /** One to an origin for nobody else: one that is idle, or a new one, which connects when it is used. */
  take(origin: string): Client
  /** Puts it by for the next, until it closes. */
  keep(origin: string, client: Client): void
  /** Breaks off all of them, whatever they are at. */
  close(): void
}

/**
 * Shorter than servers keep a connection that is idle, lest one is used again while it is being closed;
 * and endpoints of which there is nothing to tell hold nothing of ours.
 */
const IDLE_MS = 1000

/**
 * Connections of which each serves one request at a time, so that one which is broken off goes without
 * any other; the agents of undici connect anew after it, for nothing. Of an origin without connections
 * nothing is kept.
 */
export function createConnections(
  options: buildConnector.BuildOptions,
  idleMs = IDLE_MS,
): Connections {
  const idle = new Map<string, Client[]>()
  const sockets = new Set<Socket>()
  /** To be called before another request. */
  const expectAnswer = new WeakMap<Client, () => void>()
  const connector = buildConnector(options)

  function open(origin: string): Client {
    const connect: buildConnector.connector = (target, callback) => {
      // A socket, though its type does not say so; nothing else can end one that is still connecting.
      const socket: unknown = connector(target, callback)
      if (!(socket instanceof Socket)) return
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      expectAnswer.set(client, skipInterim(socket))
    }
    const client = new Client(origin, {
      connect,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      // An exchange has a limit of its own.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    return client
  }

  function forget(origin: string, client: Client) {
    const left = idle.get(origin)?.filter((other) => other !== client) ?? []
    if (left.length > 0) idle.set(origin, left)
    else idle.delete(origin)
  }

  return {
    take(origin) {
      const client = idle.get(origin)?.at(-1)
      if (!client) return open(origin)
      client.removeAllListeners('disconnect')
      forget(origin, client)
      expectAnswer.get(client)?.()
      return client
    },

    keep(origin, client) {
      client.once('disconnect', () => {
        forget(origin, client)
        void client.destroy()
      })
      // The other side may have closed it with its answer.
      if (client.stats.connected) idle.set(origin, [...(idle.get(origin) ?? []), client])
      else void client.destroy()
    },

    close() {
      for (const socket of sockets) socket.destroy(new WebhookFailure(STOPPED))
    },
  }
}
