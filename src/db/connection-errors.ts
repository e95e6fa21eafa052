/** No connection was available in time: the statement was never sent. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
  readonly code: string

  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.code = codeOf(cause)
  }
}

/** The connection was lost after the statement was sent: it is unknown whether it was committed. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
  readonly code: string

  constructor(cause: unknown) {
    super(`connection to the database lost: ${messageOf(cause)}`, { cause })
    this.code = codeOf(cause)
  }
}

/** No response within the limit: a network can drop a connection without an error. */
export class NoResponse extends Error {
  override readonly name = 'NoResponse'
  readonly code = NO_RESPONSE

  constructor(limitMs: number) {
    super(`no response within ${limitMs} ms`)
  }
}

const NO_RESPONSE = 'NO_RESPONSE'

/** Returns whether there was no response. False for a connection that was refused or closed. */
export function isSilence(error: unknown): boolean {
  return codeOf(error) === NO_RESPONSE
}

/** Error codes of a lost connection: of the driver, of Node, and of the server (class 08, 57P0x). */
const LOST =
  /^(CONNECTION_[A-Z]+|CONNECT_TIMEOUT|NO_RESPONSE|E[A-Z]+|ERR_S[A-Z_]+|57P0[1-5]|08...)$/

/** Messages of pg, the driver of the queues, whose errors have no code. */
export const LOST_BY_PG =
  /^(Connection terminated|Client has encountered a connection error|timeout e\w+|Query read timeout)/

/** Returns whether an error of a driver is about the connection, and not about the statement. */
export function isConnectionError(error: unknown): boolean {
  const { severity, message } = (error ?? {}) as { severity?: string; message?: string }
  if (/^(FATAL|PANIC)$/.test(severity ?? '') || error instanceof Unreachable) return true
  return LOST.test(codeOf(error)) || LOST_BY_PG.test(message ?? '')
}

export function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { message?: string }
  return message || codeOf(error) || String(error)
}

/** Returns an error with a code. */
export function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

/** Returns the code of an error: an SQLSTATE, or that of a driver or of Node; '' if it has none. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : ''
}
