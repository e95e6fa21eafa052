import { Client } from 'undici'

export type Connections = {
  /** One to an origin for nobody else: one that is idle, or a new one, which connects when it is used. */
  take(origin: string): Client
  /** Puts it by for the next, until it closes. */
  keep(origin: string, client: Client): void
}

/**
 * Connections of which each serves one request at a time, so that one which is broken off goes without
 * any other; the agents of undici connect anew after it, for nothing. Of an origin without connections
 * nothing is kept.
 */
export function createConnections(options: Client.Options): Connections {
  const idle = new Map<string, Client[]>()

  function forget(origin: string, client: Client) {
    const left = idle.get(origin)?.filter((other) => other !== client) ?? []
    if (left.length > 0) idle.set(origin, left)
    else idle.delete(origin)
  }

  return {
    take(origin) {
      const client = idle.get(origin)?.at(-1)
      if (!client) return new Client(origin, options)
      client.removeAllListeners('disconnect')
      forget(origin, client)
      return client
    },

    keep(origin, client) {
      client.once('disconnect', () => {
        forget(origin, client)
        client.destroy()
      })
      // The other side may have closed it with its answer.
      if (client.stats.connected) idle.set(origin, [...(idle.get(origin) ?? []), client])
      else client.destroy()
    },
  }
}
