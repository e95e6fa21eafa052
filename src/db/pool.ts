import { once } from 'node:events'
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { type ClientOptions, connect, type Sql, type Target } from './client.ts'
import { ConnectionLost, isConnectionError, messageOf, Unreachable } from './connection-errors.ts'

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
  /** Closes all connections, those in use after at most `timeoutMs`. */
  end(timeoutMs: number): Promise<void>
}

export type PoolOptions = Pick<ClientOptions, 'role' | 'clock' | 'settings'> & {
  size: number
  /** How long work waits for a connection unless its own options say otherwise. */
  waitMs: number
  /** A connection whose work takes longer is dropped: a network may lose it without a sign. */
  workMs: number
  /** The first statement of each connection. */
  onOpen?: string
}

type Connection = { sql: Sql; expiresAt: number; close(): void }
type Waiter = { resolve(connection: Connection): void; reject(error: unknown): void }

/**
 * How long the first attempt to connect may take; the limit doubles with each failure. It is short because
 * an attempt that hangs, as in a proxy that lost its server, is best made again.
 */
const FIRST_ATTEMPT_MS = 500
const LONGEST_ATTEMPT_MS = 5000
const RETRY_AFTER_MS = 100

/** A closed connection gets this long to send what is left. */
const CLOSES_WITHIN_MS = 1000

/** Server processes grow with age, and a load balancer needs new connections from time to time. */
const LIFETIME_MS = 30 * 60_000

/** Codes of errors that waiting does not fix: wrong password, unknown database, no right to a setting. */
const PERMANENT = /^(28|3D|42|22)...$/

export function createPool(url: string, options: PoolOptions): Pool {
  const { size, waitMs: defaultWaitMs, workMs, onOpen = 'select', ...clientOptions } = options
  /** All connections, also those that are being opened. */
  const connections = new Set<Connection>()
  const busy = new Set<Connection>()
  const idle: Connection[] = []
  const waiting = new Set<Waiter>()
  let opening = 0
  let failures = 0
  let lastError: unknown
  let isEnding = false
  let onDrained: () => void = () => undefined

  async function use<Result>(
    work: (sql: Sql) => Promise<Result>,
    { waitMs = defaultWaitMs }: UseOptions = {},
  ): Promise<Result> {
    const connection = takeIdle() ?? (await waitForOne(waitMs))
    const limit = setTimeout(() => drop(connection), workMs)
    try {
      return await work(connection.sql)
    } catch (error) {
      if (!isConnectionError(error)) throw error
      drop(connection)
      throw new ConnectionLost(error)
    } finally {
      clearTimeout(limit)
      release(connection)
    }
  }

  function takeIdle(): Connection | undefined {
    for (;;) {
      const connection = idle.pop()
      if (!connection) return
      if (performance.now() < connection.expiresAt) {
        busy.add(connection)
        return connection
      }
      drop(connection)
    }
  }

  function waitForOne(waitMs: number): Promise<Connection> {
    if (isEnding) return Promise.reject(ended())
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
  function release(connection: Connection) {
    busy.delete(connection)
    if (!connections.has(connection)) openMissing()
    else if (isEnding) drop(connection)
    else {
      const [next] = waiting
      if (next) next.resolve(connection)
      else idle.push(connection)
    }
    if (busy.size === 0) onDrained()
  }

  function drop(connection: Connection) {
    forget(connection)
    connection.close()
  }

  function forget(connection: Connection) {
    connections.delete(connection)
    const place = idle.indexOf(connection)
    if (place >= 0) idle.splice(place, 1)
  }

  /** Opens a connection for each that waits; while attempts fail, one at a time. */
  function openMissing() {
    while (
      !isEnding &&
      connections.size < size &&
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

  async function open(withinMs: number): Promise<Connection> {
    const { promise: failed, reject: fail } = Promise.withResolvers<never>()
    const closing = new AbortController()
    let hasSocket = false
    const connection: Connection = {
      sql: connect(url, {
        ...clientOptions,
        max: 1,
        isKept: true,
        async socket(target) {
          // The driver asks for another one after it has lost the first.
          if (hasSocket) throw new Error('the connection was lost')
          hasSocket = true
          try {
            return await openSocket(target, closing.signal)
          } catch (error) {
            fail(error)
            throw error
          }
        },
        onClose() {
          forget(connection)
          openMissing()
        },
      }),
      expiresAt: performance.now() + LIFETIME_MS * (1 + Math.random()),
      close() {
        void connection.sql.end({ timeout: 0 }).catch(() => undefined)
        setTimeout(() => closing.abort(), CLOSES_WITHIN_MS).unref()
      },
    }
    connections.add(connection)
    const timer = setTimeout(() => fail(new Error(`no answer within ${withinMs} ms`)), withinMs)
    try {
      await Promise.race([connection.sql.unsafe(onOpen), failed])
      if (!connections.has(connection)) throw new Error('the connection was lost')
      return connection
    } catch (error) {
      drop(connection)
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    use,
    size,
    underWay: () => waiting.size + busy.size,
    async end(timeoutMs) {
      isEnding = true
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

/** A socket to the first host that takes the connection. */
async function openSocket({ host, port, path }: Target, signal: AbortSignal): Promise<Socket> {
  let problem: unknown
  for (const [n, name] of (path ? [path] : host).entries()) {
    // The driver checks a certificate against `host`.
    const socket = Object.assign(new Socket({ signal }), { host: name })
    try {
      if (path) socket.connect(path)
      else socket.connect(port[n] ?? 5432, name)
      await once(socket, 'connect')
      return socket
    } catch (error) {
      socket.destroy()
      problem = error
    }
  }
  throw problem
}
