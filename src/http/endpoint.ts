import { hash } from 'node:crypto'
import type { ParsedUrlQuery } from 'node:querystring'
import { Router } from '@koa/router'
import type { Context, Middleware } from 'koa'
import * as v from 'valibot'
import type { Admission } from '../db/api.gen.ts'
import { type Code, Refusal } from '../errors.ts'
import { parseBody } from '../schemas/fields.ts'
import { parseIdempotencyKey } from '../schemas/idempotency-key.ts'
import type { Admit, Scope } from './admit.ts'
import type { answers, successes } from './answers.ts'
import { type Bodies, parseJson, type ReadBody } from './body.ts'
import { BODY_BYTES } from './limits.ts'

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
}
export type PostRequest = BareRequest & {
  /** The body's JSON value. */
  body: unknown
  /** Length of the body as text. */
  size: number
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
  | (Common & {
      method: 'POST'
      /** What OpenAPI says of the body; `handle` judges it. */
      request: v.GenericSchema
      /** No body counts as an empty object. */
      isBodyOptional?: true
      /** The largest body, unpacked; BODY_BYTES when absent. */
      maxBodyBytes?: number
      handle(request: PostRequest): Promise<Reply>
    })

const TEST_KEY_DELETES = 'Test keys delete nothing; use a live key.'

/** Serves endpoints behind admission. */
export function mount(
  endpoints: Endpoint[],
  { admit, bodies }: { admit: Admit; bodies: Bodies },
): Middleware {
  const router = new Router()
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
      if (endpoint.method !== 'POST' && !endpoint.query) refuseParameters(ctx.query)
      const reply =
        endpoint.method === 'POST'
          ? await endpoint.handle({
              ...bare,
              ...(await readPost(ctx as Context, endpoint, bodies.read)),
            })
          : await endpoint.handle(bare)
      ctx.status = reply.status
      ctx.set('Content-Type', 'application/json; charset=utf-8')
      if (reply.isReplay) ctx.set('Idempotent-Replayed', 'true')
      ctx.body = reply.body
    })
  }
  return router.routes() as unknown as Middleware
}

async function readPost(
  ctx: Context,
  endpoint: Endpoint & { method: 'POST' },
  read: ReadBody,
): Promise<Omit<PostRequest, keyof BareRequest>> {
  const bytes = await read(ctx, endpoint.maxBodyBytes ?? BODY_BYTES)
  const text = bytes.toString() || (endpoint.isBodyOptional ? '{}' : '')
  const body = parseJson(text)
  const idempotency = parseIdempotencyKey(ctx.headers['idempotency-key'] as string | undefined)
  if ('fields' in idempotency) throw new Refusal('validation_error', idempotency.fields)
  refuseParameters(ctx.query)
  return {
    body,
    size: bytes.length,
    idempotencyKey: idempotency.key,
    fingerprint: hash('sha256', `${ctx.method} ${pathOf(endpoint, ctx.params)}\n${text}`, 'hex'),
    requestId: ctx.state.requestId,
  }
}

/** The path as it is declared, with its parameters: the same however a caller spells it. */
function pathOf({ path }: Endpoint, params: Record<string, string>): string {
  return path.replace(/:(\w+)/g, (_, name: string) => params[name] ?? '')
}

const NO_PARAMETERS = v.strictObject({})

/** Refuses query parameters where an endpoint has none. */
function refuseParameters(query: ParsedUrlQuery): void {
  const parsed = parseBody(NO_PARAMETERS, query)
  if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
}
