import { isIPv6 } from 'node:net'
import { errors } from 'undici'

/** What is said of an attempt that failed: plain words for the endpoint's owner, and nothing of ours. */

/** One that comes with its words. */
export class WebhookFailure extends Error {}

/** One that is ours, and says nothing of the endpoint: something that we lack. */
export class OwnFailure extends Error {}

/** How far an exchange has come. */
export type Phase = 'connecting' | 'waiting' | 'reading'

export const TIMED_OUT: Record<Phase, string> = {
  connecting: 'timed out while connecting',
  waiting: 'timed out while waiting for its answer',
  reading: 'timed out before the end of its answer',
}

export const STOPPED = 'the service was stopped before it was through'

const BROKEN: Record<Phase, string> = {
  connecting: 'the connection was closed before it was made',
  waiting: 'the connection was closed without an answer',
  reading: 'the connection was closed before the end of its answer',
}

/** By the code of the error, as Node, OpenSSL and undici give it. */
const WORDS: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its network cannot be reached',
  EADDRNOTAVAIL: 'its network cannot be reached',
  ENOTFOUND: 'its host name was not found',

  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  CERT_REVOKED: 'its certificate was revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority that is not known',
  UNABLE_TO_GET_ISSUER_CERT: 'its certificate comes without those of its authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate comes from an authority that is not known',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes without those of its authority',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS there',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS there',

  UND_ERR_HEADERS_OVERFLOW: 'the headers of its answer are too long',
}

const TIMEOUTS = ['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT']

const BREAKS = [
  ...['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET'],
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
]

/** We have no more of them for now: file descriptors, ports, memory. */
const LACKS = ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']

/** What an error tells of us rather than of the endpoint; undefined when it tells of that. */
export function ownFailureOf(error: unknown): OwnFailure | undefined {
  if (error instanceof OwnFailure) return error
  // What is said of any of its addresses is said of the endpoint, unless we have no way there.
  const errors: unknown[] = error instanceof AggregateError ? error.errors : [error]
  const telling = errors.filter((one) => !isWithoutIPv6(one))
  const codes = telling.map(lackOf)
  return codes.length > 0 && codes.every((code) => code !== undefined)
    ? new OwnFailure(`no connection can be made (${codes[0]})`)
    : undefined
}

function lackOf(error: unknown): string | undefined {
  const { code } = error as { code?: string }
  return code !== undefined && LACKS.includes(code) ? code : undefined
}

/** A machine without IPv6 says so of each address there, and that does not pass. */
function isWithoutIPv6(error: unknown): boolean {
  const { code = '', address = '' } = error as { code?: string; address?: string }
  return isIPv6(address) && ['EADDRNOTAVAIL', 'ENETUNREACH'].includes(code)
}

/** The words for an error in this phase. */
export function wordsFor(error: unknown, phase: Phase): string {
  if (error instanceof WebhookFailure) return error.message
  const code = String((error as { code?: unknown }).code ?? '')
  const words = WORDS[code]
  if (words) return words
  if (TIMEOUTS.includes(code)) return TIMED_OUT[phase]
  if (BREAKS.includes(code)) return BROKEN[phase]
  if (error instanceof errors.HTTPParserError) return 'its answer is not HTTP'
  return /^[A-Z][A-Z0-9_]{1,60}$/.test(code)
    ? `the connection failed (${code})`
    : 'the connection failed'
}
