import type { ParsedUrlQuery } from 'node:querystring'
import type * as v from 'valibot'
import type { Admission } from '../db/api.gen.ts'
import type { Code } from '../errors.ts'
import type { Question, Scope } from './admit.ts'
import type { PostBody, PostKind, PostValues } from './body/post-body.ts'
import type { KnownKey } from './fair-start.ts'
import type { responseSchemas, successes } from './responses.ts'

export type Reply = {
  status: number
  /** JSON text. */
  body: string
  isReplay?: boolean
}

/** A request without its body. */
export type BareRequest<Caller = Admission> = {
  admission: Caller
  /** The ID in the path; empty if the endpoint has none. */
  id: string
  /** The query parameters; a repeated one is an array. */
  query: ParsedUrlQuery
  /** Aborts when the request has waited too long; an accept that has not begun then never begins. */
  signal: AbortSignal
}

export type PostRequest<
  Kind extends PostKind = PostKind,
  Caller = Admission,
> = BareRequest<Caller> & {
  /** The body, parsed and validated. */
  body: PostValues[Kind]
  /** The length of the body in bytes. */
  size: number
  /** The number of the call in SQL; calls in progress have different numbers. */
  call: number
  /** The caller's Idempotency-Key; null if the call has none. */
  idempotencyKey: string | null
  requestId: string
} & Pick<PostBody, 'fingerprint'>

/** A request of a known key, which is not admitted yet. */
export type KnownRequest<Kind extends PostKind = PostKind> = PostRequest<Kind, KnownKey>

export type ResponseName = keyof typeof responseSchemas

type Common = {
  path: string
  scope: Scope
  summary: string
  /** The schema of the successful response. */
  response: ResponseName
  /** The statuses of that response; default 200. */
  statuses?: readonly (keyof typeof successes)[]
  /** Whether it waits for the email provider: then only the time limits of the provider's client apply. */
  asksProvider?: true
  /** Its error codes, besides those of every endpoint. */
  refusals: readonly Code[]
}

/** The declaration of a route, from which both the router and the OpenAPI document are made. */
export type Endpoint =
  | (Common & {
      method: 'GET' | 'DELETE'
      /** The query in the OpenAPI document; `handle` validates it. */
      query?: v.GenericSchema
      handle(request: BareRequest): Promise<Reply>
    })
  | PostEndpoint

export type AdmitAndHandle<Kind extends PostKind = PostKind> = (
  request: KnownRequest<Kind>,
  question: Question,
) => Promise<Reply | undefined>

/** A POST of any kind; `handle` receives the body of that kind. */
export type PostEndpoint = {
  [Kind in PostKind]: Common & {
    method: 'POST'
    kind: Kind
    /** The body in the OpenAPI document; post-body.ts validates it. */
    request: v.GenericSchema
    handle(request: PostRequest<Kind>): Promise<Reply>
    /**
     * Admits the key of a request and handles the request, in one round trip to the database. Sets the outcome of the
     * admission in `question`. Returns undefined if the request was not handled; if it is admitted, `handle` follows.
     */
    admitAndHandle?: AdmitAndHandle<Kind>
  }
}[PostKind]
