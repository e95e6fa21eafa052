import pg from 'pg'
import { pgOptions, queueLimits } from './client.ts'
import { isConnectionError } from './connection-errors.ts'
import { isReadOnlyError } from './read-only.ts'

export type QueuePoolOptions = {
  role: string
  settings: Record<string, string>
  max: number
  applicationName: string
  /** Called when a connection is lost. */
  onLost(error: Error): void
}

/** The server cancels a statement after 60 s (queueLimits), so a connection that says nothing for longer is lost. */
export const queuePoolLimits = { connectionTimeoutMillis: 5000, query_timeout: 65_000 }

/** Connections for graphile-worker, whose driver keeps those that are silent, or of a server that became read-only. */
export function createQueuePool(url: string, options: QueuePoolOptions): pg.Pool {
  const { role, settings, max, applicationName, onLost } = options
  const pool = new pg.Pool({
    ...pgOptions(url, { role, ...settings, ...queueLimits }),
    ...queuePoolLimits,
    max,
    application_name: applicationName,
  })
  pool.on('error', onLost)
  pool.on('connect', (client) => {
    client.on('error', onLost)
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown> | undefined
    const endUnusable = (error: unknown) => {
      if (isReadOnlyError(error) || isConnectionError(error)) client.connection.stream.destroy()
    }
    client.query = ((...args: unknown[]) => {
      const answer = query(...args)
      answer?.catch(endUnusable)
      return answer
    }) as typeof client.query
  })
  return pool
}

declare module 'pg' {
  interface ClientBase {
    /** Not in its types. */
    connection: { stream: { destroy(): void } }
  }
}
