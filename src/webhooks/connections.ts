import { Socket } from 'node:net'
import { buildConnector, Client } from 'undici'
import { STOPPED, WebhookFailure } from './failures.ts'

/**
 * Shorter than the time for which servers keep an idle connection, so that no request meets a connection
 * that is being closed. Endpoints without events then hold no sockets.
 */
const IDLE_MS = 1000

/**
 * Connections that serve one request at a time: destroying one never ends another caller's request.
 * The agents of undici are not used, because they reconnect after a connection is destroyed.
 */
export function createConnections(options: buildConnector.BuildOptions, idleMs = IDLE_MS) {
  const idle = new Map<string, Client[]>()
  const sockets = new Set<Socket>()
  const connector = buildConnector(options)

  const connect: buildConnector.connector = (target, callback) => {
    // The connector returns its socket, though its type does not say so. Only the socket can end a
    // connection that is still being made.
    const socket: unknown = connector(target, callback)
    if (!(socket instanceof Socket)) return
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }

  function removeIdle(origin: string, client: Client) {
    const left = idle.get(origin)?.filter((other) => other !== client) ?? []
    if (left.length > 0) idle.set(origin, left)
    else idle.delete(origin)
  }

  return {
    /** Returns a connection to an origin for one caller: an idle one, or a new one that connects when used. */
    acquire(origin: string): Client {
      const client = idle.get(origin)?.at(-1)
      if (!client) {
        return new Client(origin, {
          connect,
          keepAliveTimeout: idleMs,
          keepAliveMaxTimeout: idleMs,
          // An exchange has its own time limit.
          headersTimeout: 0,
          bodyTimeout: 0,
        })
      }
      client.removeAllListeners('disconnect')
      removeIdle(origin, client)
      return client
    },

    /** Takes a connection back for the next caller, until it closes. */
    release(origin: string, client: Client) {
      client.once('disconnect', () => {
        removeIdle(origin, client)
        void client.destroy()
      })
      // The server may have closed the connection after its response.
      if (client.stats.connected) idle.set(origin, [...(idle.get(origin) ?? []), client])
      else void client.destroy()
    },

    /** Destroys all connections, whatever they are doing. */
    close() {
      for (const socket of sockets) socket.destroy(new WebhookFailure(STOPPED))
    },
  }
}
