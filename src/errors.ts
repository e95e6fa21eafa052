/** Problems by dotted path into the body (`to.1`); `_` lists those of the whole request. */
export type Fields = Record<string, string[]>

/** Every error code of the API with its HTTP status and default message (src/docs/api.md#error-codes). */
export const catalogue = {
  unauthorized: [401, 'The API key is missing, malformed or revoked.'],
  insufficient_scope: [403, 'The API key lacks the scope that this endpoint needs.'],
  org_suspended: [403, 'The organisation is suspended.'],
  org_paused: [423, 'Sending is paused for this organisation; reads and test keys still work.'],
  recipient_suppressed: [422, 'A recipient is suppressed; nothing was queued.'],
  not_found: [404, 'The path or ID does not exist for this organisation.'],
  invalid_json: [400, 'The body is empty or not valid JSON.'],
  validation_error: [422, 'The request is not valid; fields lists every problem.'],
  insufficient_credits: [402, 'There are not enough SMS credits.'],
  idempotency_conflict: [
    409,
    'This Idempotency-Key was used with another body or path in the last 24 hours.',
  ],
  rate_limited: [429, 'The organisation has sent more than 100 requests in one second.'],
  domain_not_verified: [403, 'The from address is not on a verified domain of this organisation.'],
  already_exists: [409, 'The resource already belongs to another organisation.'],
  plan_allowance_exceeded: [
    402,
    'The allowance of the billing period is used up; nothing was queued.',
  ],
  plan_limit_reached: [402, 'The plan allows no more resources of this kind.'],
  email_provider_unavailable: [503, 'The email provider cannot be reached; nothing changed.'],
  internal_error: [
    500,
    'The service failed; nothing was sent. Retry with the same Idempotency-Key.',
  ],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type Code = keyof typeof catalogue

type RefusalDetails = {
  /** Replaces the default message of the code. */
  message?: string | null | undefined
  /** Seconds until the caller may retry; sent as Retry-After. */
  retryAfter?: number | null | undefined
  /** Replaces the default HTTP status of the code. */
  status?: number | undefined
}

/** A request that is refused for an expected reason; rendered as the error envelope. */
export class Refusal extends Error {
  readonly code: Code
  readonly fields: Fields | undefined
  readonly retryAfter: number | undefined
  readonly status: number

  constructor(code: Code, fields?: Fields | null, details: RefusalDetails = {}) {
    // Nobody reads the stack trace of a refusal, and capturing it takes most of the constructor's time.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(details.message ?? catalogue[code][1])
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.fields = fields ?? undefined
    this.retryAfter = details.retryAfter ?? undefined
    this.status = details.status ?? catalogue[code][0]
  }
}

export type ErrorBody = { code: Code; message: string; docs: string; fields?: Fields }

/** The error object of the envelope; `docs` links to the errors page below `publicUrl`. */
export function errorBody(
  publicUrl: string,
  code: Code,
  fields?: Fields,
  message: string = catalogue[code][1],
): ErrorBody {
  const body = { code, message, docs: `${publicUrl}/docs/errors#${code}` }
  return fields ? { ...body, fields } : body
}

/** The catalogue as JSON text, for SQL functions that write errors into batch results. */
export function catalogueJson(publicUrl: string): string {
  const codes = Object.keys(catalogue) as Code[]
  return JSON.stringify(Object.fromEntries(codes.map((code) => [code, errorBody(publicUrl, code)])))
}

/** An error in the set-up that the operator fixes; printed without a stack trace. */
export class SetupError extends Error {}
