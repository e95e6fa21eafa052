import { ALREADY_BOUND, concernsLogin, isWrongLogin, labelOf, nameOf } from './status.ts'

/** The SMSC cannot be reached or refuses the bind. */
export class LinkFailed extends Error {
  /** The code of the operating system, of TLS, or of SMPP. */
  readonly code: string
  readonly status: number | null

  private constructor(message: string, code: string, status: number | null) {
    super(message)
    this.code = code
    this.status = status
  }

  /** The code as people read it. */
  get label(): string {
    return this.status === null ? this.code : labelOf(this.status)
  }

  /** Whether user or password is wrong; the SMSC may refuse a bind for other reasons. */
  get isWrongLogin(): boolean {
    return this.status !== null && isWrongLogin(this.status)
  }

  /** A bind with any status but ESME_ROK. */
  static refused(status: number): LinkFailed {
    const text = concernsLogin(status) ? 'it refuses the login' : 'it refuses the bind'
    return new LinkFailed(text, nameOf(status), status)
  }

  /** Returns a LinkFailed as it is; any other error as a lost link with its code, or EUNKNOWN without one. */
  static from(error: unknown): LinkFailed {
    if (error instanceof LinkFailed) return error
    return LinkFailed.lost((error as NodeJS.ErrnoException).code ?? 'EUNKNOWN')
  }

  /** A link that was lost or never made. The code is one of the operating system, of TLS, or of this file. */
  static lost(code: string): LinkFailed {
    return new LinkFailed(`it ${reasons.get(code) ?? 'cannot be reached'}`, code, null)
  }
}

/** Codes of failures that have none of the operating system. */
export const CLOSED = 'ECLOSED'
export const SILENT = 'ESILENT'
export const GARBAGE = 'EGARBAGE'
const REFUSED = 'ECONNREFUSED'
const NO_TLS = new Set(['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'])
const NO_ADDRESS = new Set(['ENOTFOUND', 'EAI_AGAIN'])

const reasons = new Map([
  [CLOSED, 'closes the connection'],
  [SILENT, 'does not respond'],
  [GARBAGE, 'does not speak SMPP'],
  [REFUSED, 'refuses connections'],
])

/** Returns a hint for a failure: the problem and its fix. null: the failure is expected. */
export function hintOf({ code, status, label }: LinkFailed): string | null {
  // The running service holds the bind of an account that allows only one, so the login works.
  if (status === ALREADY_BOUND) return null
  if (status !== null) {
    return concernsLogin(status)
      ? `the SMSC of SMPP_URL refuses the login (${label}): check user, password and systemType`
      : `the SMSC of SMPP_URL refuses the bind (${label}): ask the network why`
  }
  if (NO_ADDRESS.has(code)) {
    return `the host of SMPP_URL has no address (${code}): check the name and the resolver`
  }
  if (code === REFUSED) {
    return `no server listens at host and port of SMPP_URL (${code}): check both`
  }
  if (NO_TLS.has(code)) {
    return `no TLS at host and port of SMPP_URL (${code}): use smpp://, or the port for TLS`
  }
  if (/CERT|SIGNATURE/.test(code)) {
    return `the certificate of the SMSC is not trusted (${code}): ask the network for a trusted one, or set ?tls.rejectUnauthorized=false`
  }
  if (code === CLOSED || code === SILENT || code === GARBAGE) {
    return `the server of SMPP_URL ${reasons.get(code)}: check the port, use smpps:// if the port requires TLS, and ask the network to allow this machine's address`
  }
  return `the SMSC of SMPP_URL cannot be reached (${code}): check host and port, and ask the network to allow this machine's address`
}
