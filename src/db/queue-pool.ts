import pg from 'pg'
import type { DropConnections } from './availability.ts'
import { pgOptions, queueLimits, SERVICE_ROLE } from './client.ts'
import { ConnectionLost, isConnectionError } from './connection-errors.ts'
import { isReadOnlyError } from './read-only.ts'

export type QueuePoolOptions = {
  settings: Record<string, string>
  max: number
  /** Called once for each connection that is lost outside of a query. */
  onLost(error: ConnectionLost): void
  /** Receives the function that drops connections after the database was silent. */
  onSilenceEnd?: (drop: DropConnections) => void
}

/** The server cancels a statement after 60 s (queueLimits), so a connection that is silent for longer is lost. */
export const queuePoolLimits = { connectionTimeoutMillis: 5000, query_timeout: 65_000 }

/**
 * Creates the connections of graphile-worker. By default their driver keeps a connection that is silent, or whose
 * server became read-only.
 */
export function createQueuePool(url: string, options: QueuePoolOptions): pg.Pool {
  const { settings, max, onLost, onSilenceEnd } = options
  const openedAt = new Map<pg.PoolClient, number>()
  const pool = new pg.Pool({
    ...pgOptions(url, { role: SERVICE_ROLE, ...settings, ...queueLimits }),
    ...queuePoolLimits,
    max,
    application_name: 'postgram worker',
  })
  // A lost connection may emit several errors on its client and on the pool; without a listener each of them would
  // end the process.
  pool.on('error', () => undefined)
  onSilenceEnd?.((time) => {
    for (const [client, at] of openedAt) if (at < time) client.connection.stream.destroy()
  })
  pool.on('connect', (client) => {
    openedAt.set(client, performance.now())
    client.once('end', () => openedAt.delete(client))
    client.on('error', () => undefined)
    client.once('error', (error) => onLost(new ConnectionLost(error)))
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown> | undefined
    const endUnusable = (error: unknown) => {
      if (isReadOnlyError(error) || isConnectionError(error)) client.connection.stream.destroy()
    }
    client.query = ((...args: unknown[]) => {
      const result = query(...args)
      result?.catch(endUnusable)
      return result
    }) as typeof client.query
  })
  return pool
}

declare module 'pg' {
  interface ClientBase {
    /** Missing in pg's types. */
    connection: { stream: { destroy(): void } }
  }
}
