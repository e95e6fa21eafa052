import { setTimeout as pause } from 'node:timers/promises'
import type { ClientOptions, Sql } from './client.ts'
import { type Connection, openConnection } from './connection.ts'
import {
  ConnectionLost,
  isConnectionError,
  messageOf,
  NoAnswer,
  Unreachable,
} from './connection-errors.ts'
import { isReadOnlyError } from './read-only.ts'

export type UseOptions = {
  /** How long to wait for a connection before Unreachable is thrown. */
  waitMs?: number
}

/**
 * Connections to the database; each piece of work has one to itself.
 *
 * postgres.js has a pool of its own. This one has a client for each connection instead, and replaces the
 * client when its connection is lost, for two reasons. A client that reconnects keeps state of the lost
 * connection: if a write was queued when the connection closed, it never sends the startup message of
 * the next one and waits for connect_timeout. And its pool binds a statement to a busy connection
 * although another one may become free sooner.
 */
export type Pool = {
  /**
   * Runs work on a connection. Throws Unreachable if no connection was available in time, so that nothing
   * was sent, and ConnectionLost if the connection was lost during the work.
   */
  use<Result>(work: (sql: Sql) => Promise<Result>, options?: UseOptions): Promise<Result>
  /** How many pieces of work have a connection or wait for one. */
  underWay(): number
  size: number
  /** Closes idle connections, so that further work gets new ones. */
  renew(): void
  /** Closes all connections, those in use after at most `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
}

export type PoolOptions = Pick<ClientOptions, 'role' | 'clock' | 'settings' | 'applicationName'> & {
  size: number
  /** How long work waits for a connection unless its own options say otherwise. */
  waitMs: number
  /** A connection whose work takes longer is dropped: a network may lose it without a sign. */
  workMs: number
  /** The first statement of each connection. */
  onOpen?: string
  /** Connections are replaced after a while, unless they hold something for the process. */
  isKept?: boolean
  /** Called with each error of work, and when the server or the network closes an idle connection. */
  onError?: (error: unknown) => void
}

type Pooled = Connection & { expiresAt: number | null }
type Waiter = { resolve(connection: Pooled): void; reject(error: unknown): void }

/**
 * How long the first attempt to connect may take; the limit doubles with each failure. It is short because
 * an attempt that hangs, as in a proxy that lost its server, is best made again.
 */
const FIRST_ATTEMPT_MS = 500
const LONGEST_ATTEMPT_MS = 5000
const RETRY_AFTER_MS = 100

/** Server processes grow with age, and a load balancer needs new connections from time to time. */
const LIFETIME_MS = 30 * 60_000

/** Codes of errors that waiting does not fix: wrong password, unknown database, no right to a setting. */
const PERMANENT = /^(28|3D|42|22)...$/

export function createPool(url: string, options: PoolOptions): Pool {
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
  let opening = 0
  let failures = 0
  let lastError: unknown
  const ending = new AbortController()
  let onDrained: () => void = () => undefined

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
      const problem = isLost ? new ConnectionLost(isLate ? new NoAnswer(workMs) : error) : error
      // A setting of the database may be the reason, or a failover: a new connection may write.
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
      openMissing()
    })
  }

  function ended(): Unreachable {
    return new Unreachable('the connection pool has ended')
  }

  function unreachable(waitMs: number): Unreachable {
    return failures > 0
      ? new Unreachable(`cannot connect to the database: ${messageOf(lastError)}`, lastError)
      : new Unreachable(`no connection to the database became free within ${waitMs} ms`)
  }

  /** Gives a connection to the work that has waited longest. */
  function release(connection: Pooled) {
    busy.delete(connection)
    if (!connections.has(connection)) openMissing()
    else if (ending.signal.aborted) drop(connection)
    else {
      const [next] = waiting
      if (next) next.resolve(connection)
      else idle.push(connection)
    }
    if (busy.size === 0) onDrained()
  }

  function drop(connection: Pooled) {
    forget(connection)
    connection.close()
  }

  function forget(connection: Pooled) {
    connections.delete(connection)
    const place = idle.indexOf(connection)
    if (place >= 0) idle.splice(place, 1)
  }

  /** Opens a connection for each that waits; while attempts fail, one at a time. */
  function openMissing() {
    while (
      !ending.signal.aborted &&
      connections.size + opening < size &&
      opening < (failures > 0 ? Math.min(waiting.size, 1) : waiting.size)
    ) {
      opening += 1
      void openOne().finally(() => {
        opening -= 1
        openMissing()
      })
    }
  }

  async function openOne(): Promise<void> {
    const failuresBefore = failures
    try {
      const limitMs = Math.min(FIRST_ATTEMPT_MS * 2 ** failuresBefore, LONGEST_ATTEMPT_MS)
      const connection = await open(limitMs)
      failures = 0
      release(connection)
    } catch (error) {
      // Attempts side by side that fail count as one.
      failures = failuresBefore + 1
      lastError = error
      if (PERMANENT.test((error as { code?: string }).code ?? '')) {
        for (const waiter of waiting) waiter.reject(error)
      }
      await pause(RETRY_AFTER_MS)
    }
  }

  async function open(withinMs: number): Promise<Pooled> {
    const connection = await openConnection(url, {
      ...clientOptions,
      withinMs,
      onOpen,
      signal: ending.signal,
      onClosed() {
        // If the connection is in use, its work reports the error.
        const isIdle = connections.has(pooled) && !busy.has(pooled)
        forget(pooled)
        if (isIdle) onError(new ConnectionLost(new Error('the server closed the connection')))
        openMissing()
      },
    })
    const expiresAt = isKept ? null : performance.now() + LIFETIME_MS * (1 + Math.random())
    const pooled = { ...connection, expiresAt }
    connections.add(pooled)
    return pooled
  }

  return {
    use,
    size,
    underWay: () => waiting.size + busy.size,
    renew() {
      for (const connection of [...idle]) drop(connection)
    },
    async end(timeoutMs) {
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
