import type { ParsedUrlQuery } from 'node:querystring'
import { Router, type RouterContext } from '@koa/router'
import type { Context, Middleware } from 'koa'
import type * as v from 'valibot'
import type { Admission } from '../db/api.gen.ts'
import { type Code, type Fields, Refusal } from '../errors.ts'
import { mergeFields, type Parsed, parseBody } from '../schemas/fields.ts'
import type { Admit, Scope } from './admit.ts'
import type { Bodies } from './body/index.ts'
import {
  isBatch,
  nothingSchema,
  type PostBody,
  type PostKind,
  type PostValues,
} from './body/post-body.ts'
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
type BareRequest = {
  admission: Admission
  /** The ID in the path; empty if the endpoint has none. */
  id: string
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
  requestId: string
} & Pick<PostBody, 'fingerprint'>

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

/** Returns the middleware of all endpoints, which admits each request before its endpoint handles it. */
export function mount(
  endpoints: Endpoint[],
  { admit, bodies, reader }: { admit: Admit; bodies: Bodies; reader: PostReader },
): Middleware {
  const router = new Router()
  const direct = new Map<string, Route>()
  let calls = 0

  async function readPost(
    ctx: Context,
    endpoint: PostEndpoint,
    bare: Omit<BareRequest, 'signal'>,
  ): Promise<Omit<PostRequest, 'signal'>> {
    const { kind, path } = endpoint
    const bytes = await bodies.read(ctx, isBatch(kind) ? BATCH_BYTES : BODY_BYTES)
    const size = bytes.length
    calls = (calls + 1) % MAX_CALLS
    const call = calls
    // The declared path with its ID: the same for every spelling of the URL.
    const methodAndPath = `${ctx.method} ${path.replace(':id', () => bare.id)}`
    const posted = { kind, bytes, methodAndPath, call }
    const key = parseIdempotencyKey(ctx.headers['idempotency-key'] as string | undefined)
    const outsideBody = mergeFields(problemsOf(key), unknownParameters(bare.query))
    const reading = reader.read(posted, bare.admission.organisationId)
    const { value, fingerprint } = await reading.catch((error) => {
      if (!(error instanceof Refusal) || error.code !== 'validation_error') throw error
      throw new Refusal('validation_error', mergeFields(error.fields ?? {}, outsideBody))
    })
    refuseIfAny(outsideBody)
    const { requestId } = ctx.state
    const idempotencyKey = 'value' in key ? key.value : null
    return { ...bare, body: value, size, call, idempotencyKey, fingerprint, requestId }
  }

  for (const endpoint of endpoints) {
    const { path, method } = endpoint
    const respond = async (ctx: Context) => {
      const admission = await admit(ctx, endpoint.scope)
      // Live sending depends on the domains and suppressions of the organisation.
      if (endpoint.method === 'DELETE' && admission.mode === 'test') {
        const message = 'Test keys delete nothing; use a live key.'
        throw new Refusal('insufficient_scope', null, { message })
      }
      bodies.reserve(ctx, admission.organisationId)
      // Postgres refuses text with a NUL, and no ID contains one.
      if (ctx.path.includes('%00')) throw new Refusal('not_found')
      const query = ctx.querystring === '' ? NO_QUERY : ctx.query
      const bare = { admission, id: ctx.params.id ?? '', query }
      if (endpoint.method !== 'POST' && !endpoint.query) refuseIfAny(unknownParameters(query))
      const request = endpoint.method === 'POST' ? await readPost(ctx, endpoint, bare) : bare
      const handle = (signal: AbortSignal) => endpoint.handle({ ...request, signal } as never)
      const reply = endpoint.asksProvider
        ? await handle(new AbortController().signal)
        : await timeLimitOf(ctx).wait(handle)
      ctx.status = reply.status
      ctx.res.setHeader('Content-Type', 'application/json; charset=utf-8')
      if (reply.isReplay) ctx.set('Idempotent-Replayed', 'true')
      ctx.body = reply.body
    }
    router.register(path, [method], respond)
    if (!path.includes(':')) direct.set(`${method} ${path}`, { path, respond })
  }
  const routes = router.routes()
  return (ctx, next) => {
    // The router compares the path with every endpoint; it also knows other spellings.
    const route = direct.get(`${ctx.method} ${ctx.path}`)
    if (!route) return routes(ctx as RouterContext, next)
    ctx._matchedRoute = route.path
    ctx.params = {}
    return route.respond(ctx)
  }
}

type Route = { path: string; respond(ctx: Context): Promise<void> }

/** The query of most requests, which needs no check. */
const NO_QUERY: ParsedUrlQuery = {}

/** Returns a problem for each query parameter of an endpoint without parameters. */
function unknownParameters(query: ParsedUrlQuery): Fields {
  return query === NO_QUERY ? {} : problemsOf(parseBody(nothingSchema, query))
}

const problemsOf = (parsed: Parsed<unknown>): Fields => ('fields' in parsed ? parsed.fields : {})

function refuseIfAny(problems: Fields): void {
  if (Object.keys(problems).length > 0) throw new Refusal('validation_error', problems)
}
