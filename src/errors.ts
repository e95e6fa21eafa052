/** Problems by dotted path into the body (`to.1`); `_` holds those of the request as a whole. */
export type Fields = Record<string, string[]>

/** Every code of interface section 7: its HTTP status, and what is said to people about it. */
export const catalogue = {
  unauthorized: [401, 'The API key is missing, malformed or revoked.'],
  insufficient_scope: [403, 'The API key lacks the scope that this endpoint needs.'],
  org_suspended: [403, 'The organisation is suspended.'],
  org_paused: [423, 'Sending is paused for this organisation; reads and test keys still work.'],
  recipient_suppressed: [422, 'A recipient is suppressed; nothing was queued.'],
  not_found: [404, 'There is nothing at this address for this organisation.'],
  invalid_json: [400, 'The body is empty or not valid JSON.'],
  validation_error: [422, 'The request is not valid; fields lists every problem.'],
  insufficient_credits: [402, 'There are not enough SMS credits.'],
  idempotency_conflict: [
    409,
    'This Idempotency-Key was used within 24 hours with another body or channel.',
  ],
  rate_limited: [429, 'More than 100 requests per second for this organisation.'],
  domain_not_verified: [403, 'The from address is not on a verified domain of this organisation.'],
  already_exists: [409, 'This belongs to another organisation already.'],
  plan_allowance_exceeded: [
    402,
    'The allowance of the billing period is used up; nothing was queued.',
  ],
  plan_limit_reached: [402, 'The plan allows no more of these.'],
  email_provider_unavailable: [503, 'The email provider cannot be reached; nothing changed.'],
  internal_error: [
    500,
    'Something failed on our side; nothing was sent. Retry with the same Idempotency-Key.',
  ],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type Code = keyof typeof catalogue

export type RefusalDetails = {
  /** The message, where that of the code in the catalogue says too little. */
  words?: string | null | undefined
  /** Seconds after which the caller may try again; sent as Retry-After. */
  retryAfter?: number | null | undefined
  /** The HTTP status, where it is not that of the code in the catalogue. */
  status?: number | undefined
}

/** An expected no: thrown anywhere, rendered as the error envelope. */
export class Refusal extends Error {
  readonly code: Code
  readonly fields: Fields | undefined
  readonly words: string | undefined
  readonly retryAfter: number | undefined
  readonly status: number

  constructor(code: Code, fields?: Fields | null, details: RefusalDetails = {}) {
    // A stack trace takes more time than all else of a refusal, and nobody reads it.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(code)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.fields = fields ?? undefined
    this.words = details.words ?? undefined
    this.retryAfter = details.retryAfter ?? undefined
    this.status = details.status ?? catalogue[code][0]
  }
}

export type ErrorBody = { code: Code; message: string; docs: string; fields?: Fields }

/** The error object of the envelope; `publicUrl` is where its page is served. */
export function errorBody(
  publicUrl: string,
  code: Code,
  fields?: Fields,
  words: string = catalogue[code][1],
): ErrorBody {
  const body = { code, message: words, docs: `${publicUrl}/docs/errors#${code}` }
  return fields ? { ...body, fields } : body
}

/** The whole catalogue as JSON text, for SQL functions that write errors into batch results. */
export function catalogueJson(publicUrl: string): string {
  const codes = Object.keys(catalogue) as Code[]
  return JSON.stringify(Object.fromEntries(codes.map((code) => [code, errorBody(publicUrl, code)])))
}

/** An error that the operator fixes: printed as its message alone, without a stack. */
export class SetupError extends Error {}
