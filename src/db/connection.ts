import { type ClientOptions, connect, type Sql } from './client.ts'
import { coded, NoResponse } from './connection-errors.ts'
import { openSocket } from './hosts.ts'

export type Connection = {
  sql: Sql
  close(): void
}

export type ConnectionOptions = Omit<ClientOptions, 'max' | 'isKept' | 'socket' | 'onClose'> & {
  /** The time limit for connecting and the first statement. */
  withinMs: number
  /** The first statement. */
  onOpen: string
  /** Called when the open connection has closed. */
  onClosed(): void
  /** Aborts the attempt to connect. */
  signal: AbortSignal
}

/** How long a closed connection may take to send what is left. */
const CLOSES_WITHIN_MS = 1000

/**
 * Opens one connection, which never reconnects. By default postgres.js tries again without end if a proxy accepts
 * connections and closes them.
 */
export async function openConnection(
  url: string,
  { withinMs, onOpen, onClosed, signal, ...options }: ConnectionOptions,
): Promise<Connection> {
  const { promise: failed, reject: fail } = Promise.withResolvers<never>()
  const closing = new AbortController()
  let hasSocket = false
  let state: 'opening' | 'open' | 'closed' = 'opening'
  const sql = connect(url, {
    ...options,
    max: 1,
    isKept: true,
    async socket() {
      // The driver asks for another socket after it has lost the first.
      if (hasSocket) throw closedError()
      hasSocket = true
      try {
        return await openSocket(url, closing.signal)
      } catch (error) {
        fail(error)
        throw error
      }
    },
    onClose() {
      const wasOpen = state === 'open'
      state = 'closed'
      if (wasOpen) onClosed()
    },
  })
  const close = () => {
    void sql.end({ timeout: 0 }).catch(() => undefined)
    setTimeout(() => closing.abort(), CLOSES_WITHIN_MS).unref()
  }
  const timer = setTimeout(() => fail(new NoResponse(withinMs)), withinMs)
  const onAbort = () => fail(signal.reason)
  signal.addEventListener('abort', onAbort)
  try {
    await Promise.race([sql.unsafe(onOpen), failed])
    // onClose() may have changed the state meanwhile, which TypeScript does not know.
    if ((state as string) === 'closed') throw closedError()
    state = 'open'
    return { sql, close }
  } catch (error) {
    close()
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

function closedError(): Error {
  return coded('CONNECTION_CLOSED', 'the server closed the connection')
}
