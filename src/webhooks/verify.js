// For receivers of events: exported as postgram/webhooks; the file can also be copied. It is plain
// JavaScript, because Node strips no types below node_modules, and imports node:crypto only.
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Room for dozens of signatures, where two are in use. It limits the cost of a hostile header. */
const MAX_HEADER_LENGTH = 4096

export class WebhookSignatureError extends Error {
  /**
   * @param {import('./verify.d.ts').SignatureProblem} reason
   * @param {string} message
   */
  constructor(reason, message) {
    super(message)
    this.name = 'WebhookSignatureError'
    this.reason = reason
  }
}

/**
 * Returns the event in a request body. Throws WebhookSignatureError unless one of the secrets signed the
 * raw body, and the time of the signature is within the tolerance.
 *
 * @type {typeof import('./verify.d.ts').verifyEvent}
 */
export function verifyEvent({
  body,
  signature,
  secrets,
  toleranceSeconds = 300,
  now = new Date(),
}) {
  const bytes = bytesOf(body)
  const keys = keysOf(secrets)
  const { time, candidates } = readHeader(signature)

  const isSigned = keys.some((key) => {
    const expected = createHmac('sha256', key).update(`${time}.`).update(bytes).digest()
    return candidates.some((candidate) => timingSafeEqual(candidate, expected))
  })
  if (!isSigned) {
    throw new WebhookSignatureError(
      'no_match',
      'no signature matches: the secret is wrong, or the body was changed',
    )
  }

  const ageSeconds = Math.floor(now.getTime() / 1000) - Number(time)
  // Written so that a time or a tolerance that is not a number is refused.
  if (!(ageSeconds <= toleranceSeconds)) {
    throw new WebhookSignatureError('too_old', `the signature is ${ageSeconds} s old`)
  }
  if (!(-ageSeconds <= toleranceSeconds)) {
    throw new WebhookSignatureError(
      'too_new',
      `the signature is ${-ageSeconds} s in the future; check the clock of this machine`,
    )
  }
  return JSON.parse(new TextDecoder().decode(bytes))
}

/** @param {unknown} body */
function bytesOf(body) {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  if (body instanceof Uint8Array) return body
  throw new WebhookSignatureError(
    'body',
    'body must be the raw request body, a string or bytes; a parsed body cannot be verified',
  )
}

/**
 * @param {unknown} secrets
 * @returns {string[]}
 */
function keysOf(secrets) {
  const keys = Array.isArray(secrets) ? secrets : [secrets]
  const isComplete = keys.every((key) => typeof key === 'string' && key !== '')
  if (isComplete && keys.length > 0) return keys
  throw new WebhookSignatureError('secret', "the endpoint's signing secret, whsec_…, is missing")
}

/**
 * Returns the time as text, because the text was signed, and the well-formed v1 signatures. Entries may
 * come in any order; schemes other than v1 are ignored.
 *
 * @param {unknown} header
 */
function readHeader(header) {
  if (header === undefined || header === null || header === '') {
    throw new WebhookSignatureError('no_header', 'there is no Service-Signature header')
  }
  if (typeof header !== 'string' || header.length > MAX_HEADER_LENGTH) throw malformed()
  const entries = header.split(',').map((entry) => entry.trim())
  const valuesOf = (/** @type {string} */ name) =>
    entries
      .filter((entry) => entry.startsWith(`${name}=`))
      .map((entry) => entry.slice(name.length + 1))

  const [time = '', ...otherTimes] = valuesOf('t')
  const candidates = valuesOf('v1')
    .filter((value) => /^[0-9a-f]{64}$/.test(value))
    .map((value) => Buffer.from(value, 'hex'))
  if (!/^\d{1,12}$/.test(time) || otherTimes.length > 0 || candidates.length === 0)
    throw malformed()
  return { time, candidates }
}

function malformed() {
  return new WebhookSignatureError(
    'malformed',
    'the Service-Signature header does not have the form t=<unix seconds>,v1=<64 hex digits>',
  )
}
