import type { ParsedUrlQuery } from 'node:querystring'
import { Router } from '@koa/router'
import type { Context, Middleware } from 'koa'
import * as v from 'valibot'
import type { Admission } from '../db/api.gen.ts'
import { type Code, Refusal } from '../errors.ts'
import { type Fields, mergeFields, parseBody } from '../schemas/fields.ts'
import { parseIdempotencyKey } from '../schemas/idempotency-key.ts'
import type { Admit, Scope } from './admit.ts'
import type { Bodies } from './body/index.ts'
import { isBatch, type PostKind, type PostValues } from './body/post-body.ts'
import type { PostReader } from './body/post-reader.ts'
import { BATCH_BYTES, BODY_BYTES } from './limits.ts'
import type { answers, successes } from './responses.ts'
import { timeLimitOf } from './time-limit.ts'

/** Numbers of calls are integers in SQL; long before they start over, the first calls have ended. */
const MAX_CALLS = 2 ** 31

export type Reply = {
  status: number
  /** JSON text. */
  body: string
  isReplay?: boolean
}

/** A request as far as its body does not matter. */
export type BareRequest = {
  admission: Admission
  params: Record<string, string>
  /** The parameters behind the path, each a text, or several where it was repeated. */
  query: ParsedUrlQuery
  /** Aborted when the request has waited too long; an accept that has not begun then never begins. */
  signal: AbortSignal
}

export type PostRequest<Kind extends PostKind = PostKind> = BareRequest & {
  /** The body, parsed and validated. */
  body: PostValues[Kind]
  /** Length of the body in bytes. */
  size: number
  /** The number by which SQL knows the call; two at once have different ones. */
  call: number
  /** The caller's Idempotency-Key; null when the call has none. */
  idempotencyKey: string | null
  /** SHA-256 of method, path and body: what must be the same for a key to be replayed. */
  fingerprint: string
  requestId: string
}

export type AnswerName = keyof typeof answers

type Common = {
  path: string
  scope: Scope
  summary: string
  answer: AnswerName
  /** The statuses of that answer; 200 unless they are named. */
  statuses?: readonly (keyof typeof successes)[]
  /** Whether it waits for the email provider, which has limits of its own. */
  asksProvider?: true
  /** The codes with which it refuses, beyond those of every endpoint. */
  refusals: readonly Code[]
}

/** One declaration per route: all that is needed to serve it, in the order of design section 5. */
export type Endpoint =
  | (Common & {
      method: 'GET' | 'DELETE'
      /** What OpenAPI says of the query; `handle` judges it. */
      query?: v.GenericSchema
      handle(request: BareRequest): Promise<Reply>
    })
  | PostEndpoint

/** A POST of any kind, whose `handle` is given a body of that kind. */
type PostEndpoint = {
  [Kind in PostKind]: Common & {
    method: 'POST'
    kind: Kind
    /** What OpenAPI says of the body; post-body.ts judges it. */
    request: v.GenericSchema
    handle(request: PostRequest<Kind>): Promise<Reply>
  }
}[PostKind]

const TEST_KEY_DELETES = 'Test keys delete nothing; use a live key.'

/** Serves endpoints behind admission. */
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
    const posted = { kind, bytes, address: `${ctx.method} ${pathOf(endpoint, bare.params)}`, call }
    const { key, fields } = readIdempotencyKey(ctx)
    const around = mergeFields(fields, unknownParameters(bare.query))
    const reading = reader.read(posted, bare.admission.organisationId)
    const { value, fingerprint } = await reading.catch((error) => {
      if (!(error instanceof Refusal) || error.code !== 'validation_error') throw error
      throw new Refusal('validation_error', mergeFields(error.fields ?? {}, around))
    })
    if (Object.keys(around).length > 0) throw new Refusal('validation_error', around)
    const { requestId } = ctx.state
    return { ...bare, body: value, size, call, idempotencyKey: key, fingerprint, requestId }
  }

  for (const endpoint of endpoints) {
    router.register(endpoint.path, [endpoint.method], async (ctx) => {
      const admission = await admit(ctx as Context, endpoint.scope)
      // Domains and suppressions belong to the organisation, and live sending depends on them.
      if (endpoint.method === 'DELETE' && admission.mode === 'test') {
        throw new Refusal('insufficient_scope', null, { words: TEST_KEY_DELETES })
      }
      bodies.hold(ctx as Context, admission.organisationId)
      // Postgres takes no NUL, and nothing has one in its id.
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

/** The path as it is declared, with its parameters: the same however a caller spells it. */
function pathOf({ path }: Endpoint, params: Record<string, string>): string {
  return path.replace(/:(\w+)/g, (_, name: string) => params[name] ?? '')
}

const NO_PARAMETERS = v.strictObject({})

/** The problems of query parameters where an endpoint has none. */
function unknownParameters(query: ParsedUrlQuery): Fields {
  const parsed = parseBody(NO_PARAMETERS, query)
  return 'fields' in parsed ? parsed.fields : {}
}

function readIdempotencyKey(ctx: Context): { key: string | null; fields: Fields } {
  const parsed = parseIdempotencyKey(ctx.headers['idempotency-key'] as string | undefined)
  return 'fields' in parsed ? { key: null, ...parsed } : { ...parsed, fields: {} }
}
