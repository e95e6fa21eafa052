import type { ParsedUrlQuery } from 'node:querystring'
import { Router } from '@koa/router'
import type { Context, Middleware } from 'koa'
import * as v from 'valibot'
import type { Admission } from '../db/api.gen.ts'
import { type Code, Refusal } from '../errors.ts'
import { type Fields, mergeFields, parseBody } from '../schemas/fields.ts'
import type { Admit, Scope } from './admit.ts'
import type { Bodies } from './body/index.ts'
import { isBatch, type PostKind, type PostValues } from './body/post-body.ts'
import type { PostReader } from './body/post-reader.ts'
import { parseIdempotencyKey } from './idempotency.ts'
import { BATCH_BYTES, BODY_BYTES } from './limits.ts'
import type { responseSchemas, successes } from './responses.ts'
import { timeLimitOf } from './time-limit.ts'

/** Call numbers are integers in SQL; when they restart at 0, the calls with the same number have long ended. */
const MAX_CALLS = 2 ** 31

export type Reply = {
  status: number
  /** JSON text. */
  body: string
  isReplay?: boolean
}

/** A request without its body. */
export type BareRequest = {
  admission: Admission
  params: Record<string, string>
  /** The query parameters; a repeated one is an array. */
  query: ParsedUrlQuery
  /** Aborts when the request has waited too long; an accept that has not begun then never begins. */
  signal: AbortSignal
}

export type PostRequest<Kind extends PostKind = PostKind> = BareRequest & {
  /** The body, parsed and validated. */
  body: PostValues[Kind]
  /** The length of the body in bytes. */
  size: number
  /** The number of the call in SQL; calls in progress have different numbers. */
  call: number
  /** The caller's Idempotency-Key; null if the call has none. */
  idempotencyKey: string | null
  /** SHA-256 of method, path and body; a request with the same key must have the same. */
  fingerprint: string
  requestId: string
}

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

/** A POST of any kind; `handle` receives the body of that kind. */
type PostEndpoint = {
  [Kind in PostKind]: Common & {
    method: 'POST'
    kind: Kind
    /** The body in the OpenAPI document; post-body.ts validates it. */
    request: v.GenericSchema
    handle(request: PostRequest<Kind>): Promise<Reply>
  }
}[PostKind]

const TEST_KEY_DELETES = 'Test keys delete nothing; use a live key.'

/** Returns a router that admits each request before its endpoint handles it. */
export function mount(
  endpoints: Endpoint[],
  { admit, bodies, reader }: { admit: Admit; bodies: Bodies; reader: PostReader },
): Middleware {
  const router = new Router()
  let calls = 0

  async function readPost(
    ctx: Context,
    endpoint: PostEndpoint,
    bare: Omit<BareRequest, 'signal'>,
  ): Promise<Omit<PostRequest, 'signal'>> {
    const { kind } = endpoint
    const bytes = await bodies.read(ctx, isBatch(kind) ? BATCH_BYTES : BODY_BYTES)
    const size = bytes.length
    calls = (calls + 1) % MAX_CALLS
    const call = calls
    const methodAndPath = `${ctx.method} ${pathOf(endpoint, bare.params)}`
    const posted = { kind, bytes, methodAndPath, call }
    const { key, fields } = readIdempotencyKey(ctx)
    const outsideBody = mergeFields(fields, unknownParameters(bare.query))
    const reading = reader.read(posted, bare.admission.organisationId)
    const { value, fingerprint } = await reading.catch((error) => {
      if (!(error instanceof Refusal) || error.code !== 'validation_error') throw error
      throw new Refusal('validation_error', mergeFields(error.fields ?? {}, outsideBody))
    })
    if (Object.keys(outsideBody).length > 0) throw new Refusal('validation_error', outsideBody)
    const { requestId } = ctx.state
    return { ...bare, body: value, size, call, idempotencyKey: key, fingerprint, requestId }
  }

  for (const endpoint of endpoints) {
    router.register(endpoint.path, [endpoint.method], async (ctx) => {
      const admission = await admit(ctx as Context, endpoint.scope)
      // Live sending depends on the domains and suppressions of the organisation.
      if (endpoint.method === 'DELETE' && admission.mode === 'test') {
        throw new Refusal('insufficient_scope', null, { message: TEST_KEY_DELETES })
      }
      bodies.reserve(ctx as Context, admission.organisationId)
      // Postgres refuses text with a NUL, and no ID contains one.
      if (ctx.path.includes('%00')) throw new Refusal('not_found')
      const bare = { admission, params: ctx.params, query: ctx.query }
      if (endpoint.method !== 'POST' && !endpoint.query) {
        const fields = unknownParameters(ctx.query)
        if (Object.keys(fields).length > 0) throw new Refusal('validation_error', fields)
      }
      const request =
        endpoint.method === 'POST' ? await readPost(ctx as Context, endpoint, bare) : bare
      const handle = (signal: AbortSignal) => endpoint.handle({ ...request, signal } as never)
      const reply = endpoint.asksProvider
        ? await handle(new AbortController().signal)
        : await timeLimitOf(ctx as Context).wait(handle)
      ctx.status = reply.status
      ctx.set('Content-Type', 'application/json; charset=utf-8')
      if (reply.isReplay) ctx.set('Idempotent-Replayed', 'true')
      ctx.body = reply.body
    })
  }
  return router.routes() as unknown as Middleware
}

/** Returns the declared path with its parameters: the same for every spelling of the URL. */
function pathOf({ path }: Endpoint, params: Record<string, string>): string {
  return path.replace(/:(\w+)/g, (_, name: string) => params[name] ?? '')
}

const NO_PARAMETERS = v.strictObject({})

/** Returns a problem for each query parameter of an endpoint without parameters. */
function unknownParameters(query: ParsedUrlQuery): Fields {
  const parsed = parseBody(NO_PARAMETERS, query)
  return 'fields' in parsed ? parsed.fields : {}
}

function readIdempotencyKey(ctx: Context): { key: string | null; fields: Fields } {
  const parsed = parseIdempotencyKey(ctx.headers['idempotency-key'] as string | undefined)
  return 'fields' in parsed ? { key: null, ...parsed } : { ...parsed, fields: {} }
}
