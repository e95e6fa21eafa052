import type { ParsedUrlQuery } from 'node:querystring'
import { Router, type RouterContext } from '@koa/router'
import type { Context, Middleware } from 'koa'
import type { Admission } from '../db/api.gen.ts'
import { OutcomeUnknown } from '../db/repeated-call.ts'
import { type Fields, Refusal } from '../errors.ts'
import { mergeFields, type Parsed, parseBody } from '../schemas/fields.ts'
import type { Admit, Question } from './admit.ts'
import type { Bodies } from './body/index.ts'
import { isBatch, nothingSchema, type PostKind } from './body/post-body.ts'
import { IN_LOOP_BYTES, type PostReader } from './body/post-reader.ts'
import type {
  AdmitAndHandle,
  BareRequest,
  Endpoint,
  PostEndpoint,
  PostRequest,
  Reply,
} from './endpoint.ts'
import type { KnownKey } from './fair-start.ts'
import { parseIdempotencyKey } from './idempotency.ts'
import { BATCH_BYTES, BODY_BYTES } from './limits.ts'
import { timeLimitOf } from './time-limit.ts'

/** Call numbers are integers in SQL; when they restart at 0, the calls with the same number have long ended. */
const MAX_CALLS = 2 ** 31

/** Returns the middleware of all endpoints, which admits each request before its endpoint handles it. */
export function mount(
  endpoints: Endpoint[],
  { admit, bodies, reader }: { admit: Admit; bodies: Bodies; reader: PostReader },
): Middleware {
  const router = new Router()
  const direct = new Map<string, Route>()
  let calls = 0

  async function readPost<Caller extends Pick<Admission, 'organisationId'>>(
    ctx: Context,
    endpoint: PostEndpoint,
    bare: Omit<BareRequest<Caller>, 'signal'>,
  ): Promise<Omit<PostRequest<PostKind, Caller>, 'signal'>> {
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

  /** Admits a request, then reads and handles it. */
  async function respond(ctx: Context, endpoint: Endpoint): Promise<Reply> {
    const admission = await admit(ctx, endpoint.scope)
    // Live sending depends on the domains and suppressions of the organisation.
    if (endpoint.method === 'DELETE' && admission.mode === 'test') {
      const message = 'Test keys delete nothing; use a live key.'
      throw new Refusal('insufficient_scope', null, { message })
    }
    bodies.reserve(ctx, admission.organisationId)
    // Postgres refuses text with a NUL, and no ID contains one.
    if (ctx.path.includes('%00')) throw new Refusal('not_found')
    const query = queryOf(ctx)
    const bare = { admission, id: ctx.params.id ?? '', query }
    if (endpoint.method !== 'POST' && !endpoint.query) refuseIfAny(unknownParameters(query))
    const request = endpoint.method === 'POST' ? await readPost(ctx, endpoint, bare) : bare
    const handle = (signal: AbortSignal) => endpoint.handle({ ...request, signal } as never)
    return endpoint.asksProvider
      ? await handle(new AbortController().signal)
      : await timeLimitOf(ctx).wait(handle)
  }

  /** Reads a request of a known key, then admits and handles it in one round trip to the database. */
  async function respondToKnown(
    ctx: Context,
    endpoint: PostEndpoint,
    known: KnownKey,
  ): Promise<Reply> {
    const admitAndHandle = endpoint.admitAndHandle as AdmitAndHandle
    const request = await readKnown(ctx, endpoint, known).catch(async (error) => {
      // A refusal of the key comes before those of the body.
      await admit(ctx, endpoint.scope)
      throw error
    })
    const question: Question = {}
    const { scope } = endpoint
    const reply = await timeLimitOf(ctx)
      .wait((signal) => admitAndHandle({ ...request, signal } as never, question))
      .catch((error) => {
        admit.admitKnown(ctx, scope, known, question)
        throw error
      })
    const admission =
      admit.admitKnown(ctx, scope, known, question) ??
      (await admit(ctx, scope).catch((error) => {
        // The request may have been admitted and handled before the connection was lost.
        throw new OutcomeUnknown(error)
      }))
    return (
      reply ??
      timeLimitOf(ctx).wait((signal) => endpoint.handle({ ...request, admission, signal } as never))
    )
  }

  async function readKnown(ctx: Context, endpoint: PostEndpoint, known: KnownKey) {
    bodies.reserve(ctx, known.organisationId)
    return readPost(ctx, endpoint, { admission: known, id: '', query: queryOf(ctx) })
  }

  for (const endpoint of endpoints) {
    const { path, method } = endpoint
    const handler = async (ctx: Context) => {
      const isTogether = endpoint.method === 'POST' && endpoint.admitAndHandle && hasSmallBody(ctx)
      const known = isTogether ? admit.knownKeyOf(ctx) : undefined
      const reply = known
        ? await respondToKnown(ctx, endpoint as PostEndpoint, known)
        : await respond(ctx, endpoint)
      ctx.status = reply.status
      ctx.res.setHeader('Content-Type', 'application/json; charset=utf-8')
      if (reply.isReplay) ctx.set('Idempotent-Replayed', 'true')
      ctx.body = reply.body
    }
    router.register(path, [method], handler)
    if (!path.includes(':')) direct.set(`${method} ${path}`, { path, handler })
  }
  const routes = router.routes()
  return (ctx, next) => {
    // The router compares the path with every endpoint; it also knows other spellings.
    const route = direct.get(`${ctx.method} ${ctx.path}`)
    if (!route) return routes(ctx as RouterContext, next)
    ctx._matchedRoute = route.path
    ctx.params = {}
    return route.handler(ctx)
  }
}

/**
 * Returns whether a request has arrived whole, with a body that is quick to parse. A client that is not admitted
 * could make the service wait for other bodies, at the expense of the organisation's quota.
 */
function hasSmallBody({ req }: Context): boolean {
  const isPlain = req.headers['content-encoding'] === undefined
  return req.complete && isPlain && req.readableLength <= IN_LOOP_BYTES
}

type Route = { path: string; handler(ctx: Context): Promise<void> }

/** The query of most requests, which needs no check. */
const NO_QUERY: ParsedUrlQuery = {}

const queryOf = (ctx: Context): ParsedUrlQuery => (ctx.querystring === '' ? NO_QUERY : ctx.query)

/** Returns a problem for each query parameter of an endpoint without parameters. */
function unknownParameters(query: ParsedUrlQuery): Fields {
  return query === NO_QUERY ? {} : problemsOf(parseBody(nothingSchema, query))
}

const problemsOf = (parsed: Parsed<unknown>): Fields => ('fields' in parsed ? parsed.fields : {})

function refuseIfAny(problems: Fields): void {
  if (Object.keys(problems).length > 0) throw new Refusal('validation_error', problems)
}
