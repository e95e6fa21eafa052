import type { Interfaces } from 'mailgun.js/definitions'
import { storable } from '../../text/storable.ts'

/** Kept in timelines and shown to operators. */
const MAX_WORDS = 500

type Failed = { status?: number; code: string; isUnsent?: boolean }

/** Mailgun said no, or gave no answer that can be read. */
export class MailgunError extends Error {
  /** The HTTP status; null when none came, or a 2xx with nothing readable after it. */
  readonly status: number | null
  /** The status, or what the system calls the failure. */
  readonly code: string
  /** Whether it is certain that nothing of the request has left. */
  readonly isUnsent: boolean

  constructor(words: string, { status, code, isUnsent = false }: Failed) {
    super(words)
    this.status = status ?? null
    this.code = code
    this.isUnsent = isUnsent
  }

  /** Whether Mailgun refuses this very request, which it would therefore refuse again. */
  get isRefusal(): boolean {
    // A full quota and a disabled account get a 400 too: "Domain … is not allowed to send: recipient
    // limit exceeded".
    if (this.status === 400) return !/is not allowed to send/i.test(this.message)
    return this.status === 413 || this.status === 422
  }

  /** Whether Mailgun has no such domain, or lets only this one not send. */
  get isOfDomain(): boolean {
    return (
      (this.status === 404 && /domain not found/i.test(this.message)) ||
      (this.status === 403 && /the domain is unverified/i.test(this.message))
    )
  }
}

/**
 * Takes requests of mailgun.js to Mailgun; throws MailgunError. Its own way there says status 400
 * also for a lost connection, for an answer cut off and for a wrong address, follows redirects with
 * a GET, and reads any page as success.
 */
export function createTransport(
  apiKey: string,
  answersWithinMs: number,
): Interfaces.IRequestProvider {
  const authorization = `Basic ${Buffer.from(`api:${apiKey}`).toString('base64')}`
  return {
    async makeRequest(
      url,
      method,
      { params, data }: { params?: URLSearchParams; data?: FormData },
    ) {
      const { status, statusText, text } = await exchange(params ? `${url}?${params}` : url, {
        method,
        headers: { authorization },
        body: data ?? null,
        redirect: 'manual',
        signal: AbortSignal.timeout(answersWithinMs),
      })
      const body = jsonOf(text)
      if (status < 200 || status > 299) {
        throw new MailgunError(wordsOf(body, text) || statusText, { status, code: `${status}` })
      }
      if (!body) throw new MailgunError('Mailgun gave an unreadable answer', { code: `${status}` })
      return { status, body }
    },
    setSubAccountHeader: () => undefined,
    resetSubAccountHeader: () => undefined,
  }
}

async function exchange(url: string, init: RequestInit) {
  try {
    const response = await fetch(url, init)
    const { status, statusText } = response
    return { status, statusText, text: await response.text() }
  } catch (error) {
    throw noAnswer(error)
  }
}

/** Only codes are quoted: messages may hold the address, and with it what an operator put there. */
function noAnswer(error: unknown): MailgunError {
  const { name, cause } = error as { name?: string; cause?: Failure }
  if (name === 'TimeoutError') {
    return new MailgunError('Mailgun did not answer in time', { code: 'timeout' })
  }
  const code = cause?.code ?? 'failed'
  return isUnsent(cause)
    ? new MailgunError(`Mailgun cannot be reached: ${code}`, { code, isUnsent: true })
    : new MailgunError(`the connection to Mailgun broke: ${code}`, { code })
}

type Failure = { code?: string; syscall?: string; errors?: Failure[] }

/** A certificate is looked at before anything is sent. */
const HANDSHAKE_FAILURE =
  /^(?:CERT_|DEPTH_ZERO_|ERR_TLS_|SELF_SIGNED_|UNABLE_TO_|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_.*HANDSHAKE)/

function isUnsent(failure: Failure | undefined): boolean {
  if (!failure) return false
  // A host with several addresses fails with an error for each.
  if (failure.errors) return failure.errors.every(isUnsent)
  return (
    failure.syscall === 'connect' ||
    failure.syscall === 'getaddrinfo' ||
    HANDSHAKE_FAILURE.test(failure.code ?? '')
  )
}

function jsonOf(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** What Mailgun says, or empty: a page of HTML is not its own. */
function wordsOf(body: Record<string, unknown> | undefined, text: string): string {
  const words = body ? (body.message ?? body.error) : text
  if (typeof words !== 'string' || words.trimStart().startsWith('<')) return ''
  return storable(words.trim().slice(0, MAX_WORDS))
}
