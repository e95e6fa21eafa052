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

/** No response within the limit: a network can drop a connection without an error. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
  readonly code = NO_ANSWER

  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`)
  }
}

const NO_ANSWER = 'NO_ANSWER'

/** Whether nothing came back: false also for a connection that was refused or closed. */
export function isSilence(error: unknown): boolean {
  return codeOf(error) === NO_ANSWER
}

/** What the driver and Node call a connection that ended; class 08 and 57P0x are the server's words. */
const LOST = /^(CONNECTION_[A-Z]+|CONNECT_TIMEOUT|NO_ANSWER|E[A-Z]+|ERR_S[A-Z_]+|57P0[1-5]|08...)$/

/** Messages of pg, the driver of the queues, which come without a code. */
export const LOST_BY_PG =
  /^(Connection terminated|Client has encountered a connection error|timeout e\w+|Query read timeout)/

/** Whether an error of a driver is about the connection, and not about the statement. */
export function isConnectionError(error: unknown): boolean {
  const { severity, message } = (error ?? {}) as { severity?: string; message?: string }
  if (/^(FATAL|PANIC)$/.test(severity ?? '') || error instanceof Unreachable) return true
  return LOST.test(codeOf(error) ?? '') || LOST_BY_PG.test(message ?? '')
}

export function messageOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: string; code?: string }
  return message || code || String(error)
}

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : undefined
}
