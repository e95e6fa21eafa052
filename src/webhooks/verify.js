// For receivers of events: exported as postgram/webhooks, and fit to be copied on its own. Plain
// JavaScript, since Node strips no types below node_modules, and nothing is imported but node:crypto.
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Room for dozens of signatures, where two are in use; it bounds what a hostile header costs. */
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
 * The event in a body whose Service-Signature is right (interface 6.3): over the raw body, by one of
 * the secrets, and made within the tolerance of now, either way. Throws WebhookSignatureError.
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
      'no signature matches: the secret is another one, or the body is not as it was sent',
    )
  }

  const ageSeconds = Math.floor(now.getTime() / 1000) - Number(time)
  // Asked this way round, a time or a tolerance that is no number refuses.
  if (!(ageSeconds <= toleranceSeconds)) {
    throw new WebhookSignatureError('too_old', `the signature is ${ageSeconds} seconds old`)
  }
  if (!(-ageSeconds <= toleranceSeconds)) {
    throw new WebhookSignatureError(
      'too_new',
      `the signature is from ${-ageSeconds} seconds ahead: is the clock here right?`,
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
    'body must be the raw request body, a string or bytes: one that was parsed already cannot be verified',
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
 * The time as it stands, which is what was signed, and the v1 signatures that are well-formed. The
 * order of the entries does not matter, and schemes of another name are passed over.
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
    'the Service-Signature header is not of the form t=<unix seconds>,v1=<64 hex digits>',
  )
}
