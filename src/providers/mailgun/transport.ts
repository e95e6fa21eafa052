import type { Interfaces } from 'mailgun.js/definitions'
import { storable } from '../../text/storable.ts'

/** Timelines store the text and show it to operators. */
const MAX_TEXT_LENGTH = 500

type Details = { status?: number; code: string; isUnsent?: boolean }

/** Mailgun refused the request, or gave no readable response. */
export class MailgunError extends Error {
  /** The HTTP status; null if there is no response, or an unreadable one with a 2xx status. */
  readonly status: number | null
  /** The HTTP status, or the system's code for the failure. */
  readonly code: string
  /** Whether it is certain that nothing of the request was sent. */
  readonly isUnsent: boolean

  constructor(text: string, { status, code, isUnsent = false }: Details) {
    super(text)
    this.status = status ?? null
    this.code = code
    this.isUnsent = isUnsent
  }

  /** Whether Mailgun refuses this request, and would refuse it again. */
  get isRefusal(): boolean {
    // An exhausted quota and a disabled account also get a 400: "Domain … is not allowed to send:
    // recipient limit exceeded".
    if (this.status === 400) return !/is not allowed to send/i.test(this.message)
    return this.status === 413 || this.status === 422
  }

  /** Whether Mailgun does not have this domain, or allows only this domain not to send. */
  get isOfDomain(): boolean {
    return (
      (this.status === 404 && /domain not found/i.test(this.message)) ||
      (this.status === 403 && /the domain is unverified/i.test(this.message))
    )
  }
}

/**
 * Creates the transport of mailgun.js, which throws MailgunError. It replaces the default one, which reports
 * status 400 also for a lost connection, an interrupted response or a wrong address, follows redirects with
 * GET, and accepts any page as success.
 */
export function createTransport(apiKey: string, timeoutMs: number): Interfaces.IRequestProvider {
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
        signal: AbortSignal.timeout(timeoutMs),
      })
      const body = parseObject(text)
      if (status < 200 || status > 299) {
        throw new MailgunError(textOf(body, text) || statusText, { status, code: `${status}` })
      }
      if (!body)
        throw new MailgunError('Mailgun sent an unreadable response', { code: `${status}` })
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
    throw connectionError(error)
  }
}

/** Quotes only codes: a message may contain the URL, and with it a secret from the settings. */
function connectionError(error: unknown): MailgunError {
  const { name, cause } = error as { name?: string; cause?: Failure }
  if (name === 'TimeoutError') {
    return new MailgunError('Mailgun did not respond in time', { code: 'timeout' })
  }
  const code = cause?.code ?? 'failed'
  return isUnsent(cause)
    ? new MailgunError(`Mailgun cannot be reached: ${code}`, { code, isUnsent: true })
    : new MailgunError(`the connection to Mailgun broke: ${code}`, { code })
}

type Failure = { code?: string; syscall?: string; errors?: Failure[] }

/** TLS checks the certificate before anything is sent. */
const HANDSHAKE_FAILURE =
  /^(?:CERT_|DEPTH_ZERO_|ERR_TLS_|SELF_SIGNED_|UNABLE_TO_|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_.*HANDSHAKE)/

function isUnsent(failure: Failure | undefined): boolean {
  if (!failure) return false
  // A host with several addresses has one error for each.
  if (failure.errors) return failure.errors.every(isUnsent)
  return (
    failure.syscall === 'connect' ||
    failure.syscall === 'getaddrinfo' ||
    HANDSHAKE_FAILURE.test(failure.code ?? '')
  )
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns the text of a response, or '' for an HTML page, which is not from Mailgun itself. */
function textOf(body: Record<string, unknown> | undefined, text: string): string {
  const message = body ? (body.message ?? body.error) : text
  if (typeof message !== 'string' || message.trimStart().startsWith('<')) return ''
  return storable(message.trim().slice(0, MAX_TEXT_LENGTH))
}
