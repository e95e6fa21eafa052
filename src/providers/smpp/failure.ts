import { ALREADY_BOUND, isOfTheLogin, isWrongLogin, labelOf, nameOf } from './status.ts'

/** The SMSC cannot be reached, or does not let us in. */
export class LinkFailed extends Error {
  /** That of the operating system, of TLS, or of SMPP. */
  readonly code: string
  readonly status: number | null

  private constructor(message: string, code: string, status: number | null) {
    super(message)
    this.code = code
    this.status = status
  }

  /** What it is called where people read it. */
  get label(): string {
    return this.status === null ? this.code : labelOf(this.status)
  }

  /** Whether user or password is wrong, and not just this bind refused. */
  get isWrongLogin(): boolean {
    return this.status !== null && isWrongLogin(this.status)
  }

  /** A bind that was answered with anything but ESME_ROK. */
  static refused(status: number): LinkFailed {
    const text = isOfTheLogin(status) ? 'it refuses our login' : 'it does not let us in'
    return new LinkFailed(text, nameOf(status), status)
  }

  /** The failure that an error means: itself, or a lost link with its code, EUNKNOWN where it has none. */
  static from(error: unknown): LinkFailed {
    if (error instanceof LinkFailed) return error
    return LinkFailed.lost((error as NodeJS.ErrnoException).code ?? 'EUNKNOWN')
  }

  /** A link that was lost or could not be made, by a code of the operating system, of TLS or of this file. */
  static lost(code: string): LinkFailed {
    return new LinkFailed(reasons.get(code) ?? 'it cannot be reached', code, null)
  }
}

/** What a failure was called that has no code of the operating system. */
export const CLOSED = 'ECLOSED'
export const SILENT = 'ESILENT'
export const GARBAGE = 'EGARBAGE'
const REFUSED = 'ECONNREFUSED'
const NO_TLS = new Set(['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'])
const NO_ADDRESS = new Set(['ENOTFOUND', 'EAI_AGAIN'])

const reasons = new Map([
  [CLOSED, 'it closed the connection'],
  [SILENT, 'it does not answer'],
  [GARBAGE, 'it does not speak SMPP'],
  [REFUSED, 'nobody listens there'],
])

/** What to do about a failure; null when it means that all is well. */
export function hintOf({ code, status, label }: LinkFailed): string | null {
  // Who asks while the service runs, with an account that may be bound once, has seen all there is.
  if (status === ALREADY_BOUND) return null
  if (status !== null) {
    return isOfTheLogin(status)
      ? `the SMSC of SMPP_URL refuses our login (${label}): check user, password and systemType`
      : `the SMSC of SMPP_URL does not let us in (${label}): ask the network why`
  }
  if (NO_ADDRESS.has(code)) {
    return `the host of SMPP_URL has no address (${code}): check its name and the resolver`
  }
  if (code === REFUSED) {
    return `nobody listens at host and port of SMPP_URL (${code}): check both`
  }
  if (NO_TLS.has(code)) {
    return `no TLS at host and port of SMPP_URL (${code}): write smpp://, or the port that has TLS`
  }
  if (/CERT|SIGNATURE/.test(code)) {
    return `the SMSC's certificate is not to be trusted (${code}): the network must renew it, or set ?tls.rejectUnauthorized=false`
  }
  if (code === CLOSED || code === SILENT || code === GARBAGE) {
    return `the far end of SMPP_URL ${verbs[code]}: check the port, write smpps:// if it wants TLS, and have the network let in this machine's address`
  }
  return `the SMSC of SMPP_URL cannot be reached (${code}): check host and port, and have the network let in this machine's address`
}

const verbs = {
  [CLOSED]: 'closes the connection',
  [SILENT]: 'does not answer',
  [GARBAGE]: 'does not speak SMPP',
}
