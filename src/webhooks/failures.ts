import { isIPv6 } from 'node:net'
import { errors } from 'undici'

/** A failed attempt whose message is written for the endpoint's owner. */
export class WebhookFailure extends Error {}

/** A failure on this machine, such as a lack of sockets. It proves nothing about the endpoint. */
export class LocalFailure extends Error {}

/** How far an exchange has come. */
export type Phase = 'connecting' | 'waiting' | 'reading'

export const TIMED_OUT: Record<Phase, string> = {
  connecting: 'timed out while connecting',
  waiting: 'timed out while waiting for the response',
  reading: 'timed out before the end of the response',
}

export const STOPPED = 'the service stopped before the end of the response'

const CLOSED: Record<Phase, string> = {
  connecting: 'the connection was closed before it was established',
  waiting: 'the connection was closed without a response',
  reading: 'the connection was closed before the end of the response',
}

/** By the error code of Node, OpenSSL or undici. */
const MESSAGES: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network of the host cannot be reached',
  EADDRNOTAVAIL: 'the network of the host cannot be reached',
  ENOTFOUND: 'the host name was not found',

  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  CERT_REVOKED: 'the certificate was revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another name',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate is from an unknown authority',
  UNABLE_TO_GET_ISSUER_CERT: 'the intermediate certificates are missing',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is from an unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the intermediate certificates are missing',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not speak TLS on this port',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server does not speak TLS on this port',

  UND_ERR_HEADERS_OVERFLOW: 'the headers of the response are too long',
}

const TIMEOUTS = ['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT']

const CLOSING = [
  ...['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET'],
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
]

/**
 * undici closes a connection on which 100 Continue or 101 Switching Protocols arrives: no request asks
 * for either. Its errors of these two differ in their messages alone.
 */
const UNREQUESTED: Record<string, string> = {
  'bad response': 'the server sent 100 Continue, which was not requested',
  'bad upgrade': 'the server switched protocols, which was not requested',
}

/** This machine has run out of file descriptors, ports or memory. */
const LOCAL_SHORTAGES = ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']

/** Returns the failure of this machine that an error shows; undefined when it is the endpoint's. */
export function localFailureOf(error: unknown): LocalFailure | undefined {
  if (error instanceof LocalFailure) return error
  // One address that failed at the endpoint is enough to blame the endpoint.
  const failures: unknown[] = error instanceof AggregateError ? error.errors : [error]
  const codes = failures.filter((one) => !isWithoutIPv6(one)).map(shortageOf)
  return codes.length > 0 && codes.every((code) => code !== undefined)
    ? new LocalFailure(`no connection can be made (${codes[0]})`)
    : undefined
}

function shortageOf(error: unknown): string | undefined {
  const { code } = error as { code?: string }
  return code !== undefined && LOCAL_SHORTAGES.includes(code) ? code : undefined
}

/** A machine without IPv6 fails at every IPv6 address, and always will. */
function isWithoutIPv6(error: unknown): boolean {
  const { code = '', address = '' } = error as { code?: string; address?: string }
  return isIPv6(address) && ['EADDRNOTAVAIL', 'ENETUNREACH'].includes(code)
}

/** Returns the message of an error for the endpoint's owner, without anything about this machine. */
export function errorMessage(error: unknown, phase: Phase): string {
  if (error instanceof WebhookFailure) return error.message
  const code = String((error as { code?: unknown }).code ?? '')
  const message = MESSAGES[code]
  if (message) return message
  if (TIMEOUTS.includes(code)) return TIMED_OUT[phase]
  if (error instanceof errors.SocketError && phase === 'waiting') {
    return UNREQUESTED[error.message] ?? CLOSED[phase]
  }
  if (CLOSING.includes(code)) return CLOSED[phase]
  if (error instanceof errors.HTTPParserError) return 'the response is not HTTP'
  return /^[A-Z][A-Z0-9_]{1,60}$/.test(code)
    ? `the connection failed (${code})`
    : 'the connection failed'
}
