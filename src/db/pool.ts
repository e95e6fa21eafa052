import type { ClientOptions, Sql } from './client.ts'
import { type Connection, openConnection } from './connection.ts'
import {
  ConnectionLost,
  isConnectionError,
  messageOf,
  NoResponse,
  Unreachable,
} from './connection-errors.ts'
import { createConnector } from './connector.ts'
import { isReadOnlyError } from './read-only.ts'

export type UseOptions = {
  /** How long to wait for a connection before Unreachable is thrown. */
  waitMs?: number
}

/**
 * Connections to the database; each piece of work has one to itself.
 *
 * postgres.js has a pool of its own. This one has a client for each connection instead, and replaces the
 * client when its connection is lost, for two reasons. First, a client that reconnects keeps state of the lost
 * connection: if a write was queued when the connection closed, it never sends the startup message of
 * the next one and waits for connect_timeout. Second, its pool binds a statement to a busy connection
 * although another one may become free sooner.
 */
export type Pool = ReturnType<typeof createPool>

export type PoolOptions = Pick<ClientOptions, 'role' | 'clock' | 'settings' | 'applicationName'> & {
  size: number
  /** The default of UseOptions.waitMs. */
  waitMs: number
  /** A connection whose work takes longer is dropped: a network can lose a connection without an error. */
  workMs: number
  /** The first statement of each connection. */
  onOpen?: string
  /** Connections are never replaced for their age: they hold advisory locks. */
  isKept?: boolean
  /** Called with each error of work, and when the server or the network closes an idle connection. */
  onError?: (error: unknown) => void
}

type Pooled = Connection & { openedAt: number; expiresAt: number | null }
type Waiter = { resolve(connection: Pooled): void; reject(error: unknown): void }

/** Connections are replaced after 30 to 60 minutes: server processes grow, and load balancers need new connections. */
const LIFETIME_MS = 30 * 60_000

export function createPool(url: string, options: PoolOptions) {
  const {
    size,
    waitMs: defaultWaitMs,
    workMs,
    onOpen = 'select',
    isKept = false,
    onError = () => undefined,
    ...clientOptions
  } = options
  const connections = new Set<Pooled>()
  const busy = new Set<Pooled>()
  const idle: Pooled[] = []
  const waiting = new Set<Waiter>()
  const ending = new AbortController()
  const connector = createConnector({
    open,
    wanted: () => (ending.signal.aborted ? 0 : Math.min(waiting.size, size - connections.size)),
    onPermanentError(error) {
      for (const waiter of waiting) waiter.reject(error)
    },
  })
  let onDrained: () => void = () => undefined

  /**
   * Runs work on a connection. Throws Unreachable if no connection was available in time; nothing was sent
   * then. Throws ConnectionLost if the connection was lost during the work.
   */
  async function use<Result>(
    work: (sql: Sql) => Promise<Result>,
    { waitMs = defaultWaitMs }: UseOptions = {},
  ): Promise<Result> {
    const connection = takeIdle() ?? (await waitForOne(waitMs))
    let isLate = false
    const limit = setTimeout(() => {
      isLate = true
      drop(connection)
    }, workMs)
    try {
      return await work(connection.sql)
    } catch (error) {
      const isLost = isConnectionError(error)
      const problem = isLost ? new ConnectionLost(isLate ? new NoResponse(workMs) : error) : error
      // After a failover, or a change of a setting, a new connection may be able to write.
      if (isLost || isReadOnlyError(error)) drop(connection)
      onError(problem)
      throw problem
    } finally {
      clearTimeout(limit)
      release(connection)
    }
  }

  function takeIdle(): Pooled | undefined {
    for (;;) {
      const connection = idle.pop()
      if (!connection) return
      if (connection.expiresAt === null || performance.now() < connection.expiresAt) {
        busy.add(connection)
        return connection
      }
      drop(connection)
    }
  }

  function waitForOne(waitMs: number): Promise<Pooled> {
    if (ending.signal.aborted) return Promise.reject(ended())
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => waiter.reject(unreachable(waitMs)), waitMs)
      const settle = () => {
        clearTimeout(timer)
        waiting.delete(waiter)
      }
      const waiter: Waiter = {
        resolve(connection) {
          settle()
          busy.add(connection)
          resolve(connection)
        },
        reject(error) {
          settle()
          reject(error)
        },
      }
      waiting.add(waiter)
      connector.openWanted()
    })
  }

  function ended(): Unreachable {
    return new Unreachable('the connection pool has ended')
  }

  function unreachable(waitMs: number): Unreachable {
    const failure = connector.failure()
    return failure
      ? new Unreachable(
          `cannot connect to the database: ${messageOf(failure.error)}`,
          failure.error,
        )
      : new Unreachable(`no connection to the database became free within ${waitMs} ms`)
  }

  /** Gives a connection to the work that has waited longest, or keeps it idle. */
  function release(connection: Pooled) {
    busy.delete(connection)
    if (!connections.has(connection)) connector.openWanted()
    else if (ending.signal.aborted) drop(connection)
    else {
      const [next] = waiting
      if (next) next.resolve(connection)
      else idle.push(connection)
    }
    if (busy.size === 0) onDrained()
  }

  function drop(connection: Pooled) {
    removeConnection(connection)
    connection.close()
  }

  function removeConnection(connection: Pooled) {
    connections.delete(connection)
    const place = idle.indexOf(connection)
    if (place >= 0) idle.splice(place, 1)
  }

  /** Opens a connection and gives it to work that waits. */
  async function open(withinMs: number): Promise<void> {
    const connection = await openConnection(url, {
      ...clientOptions,
      withinMs,
      onOpen,
      signal: ending.signal,
      onClosed() {
        // If the connection is in use, its work reports the error.
        const isIdle = connections.has(pooled) && !busy.has(pooled)
        removeConnection(pooled)
        if (isIdle) onError(new ConnectionLost(new Error('the server closed the connection')))
        connector.openWanted()
      },
    })
    const openedAt = performance.now()
    const expiresAt = isKept ? null : openedAt + LIFETIME_MS * (1 + Math.random())
    const pooled = { ...connection, openedAt, expiresAt }
    connections.add(pooled)
    release(pooled)
  }

  return {
    use,
    size,
    /** Returns how many pieces of work have a connection or wait for one. */
    underWay: () => waiting.size + busy.size,
    /** Closes the idle connections, so that further work gets new ones. */
    renew() {
      for (const connection of [...idle]) drop(connection)
    },
    /** Closes the connections that were opened before this time, also those in use, whose work gets ConnectionLost. */
    dropOpenedBefore(time: number) {
      for (const connection of [...connections]) if (connection.openedAt < time) drop(connection)
    },
    /** Closes all connections; those in use when their work ends, or after `timeoutMs`. */
    async end(timeoutMs: number) {
      ending.abort()
      for (const waiter of waiting) waiter.reject(ended())
      for (const connection of connections) if (!busy.has(connection)) drop(connection)
      if (busy.size > 0) {
        const timer = setTimeout(() => onDrained(), timeoutMs)
        await new Promise<void>((resolve) => {
          onDrained = resolve
        })
        clearTimeout(timer)
      }
      for (const connection of connections) drop(connection)
    },
  }
}
