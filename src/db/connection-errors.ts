import postgres from 'postgres'

/** No connection could be had in time: the statement was never sent. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
  readonly code: string | undefined

  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.code = codeOf(cause)
  }
}

/** The connection was lost after the statement was sent: nobody knows whether it was committed. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
  readonly code: string | undefined

  constructor(cause: unknown) {
    super(`connection to the database lost: ${messageOf(cause)}`, { cause })
    this.code = codeOf(cause)
  }
}

/** What the driver and Node call a connection that ended; class 08 and 57P0x are the server's words. */
const LOST = /^(CONNECTION_[A-Z]+|CONNECT_TIMEOUT|E[A-Z]+|ERR_S[A-Z_]+|57P0[1-5]|08...)$/

/** Whether an error of the driver is about the connection, and not about the statement. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof postgres.PostgresError && /FATAL|PANIC/.test(error.severity)) return true
  return LOST.test(codeOf(error) ?? '')
}

export function messageOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: string; code?: string }
  return message || code || String(error)
}

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : undefined
}
