import type { Api, CallResponse } from '../db/api.gen.ts'
import { createBatcher } from '../db/batcher/index.ts'
import { LEFT_OUT } from '../db/batcher/run.ts'
import type { Call } from '../db/call.ts'
import type { Json } from '../db/json.ts'
import { type Code, catalogueJson, Refusal } from '../errors.ts'
import type { Fields } from '../schemas/fields.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Messages } from './body/post-body.ts'
import type { PostRequest, Reply } from './endpoint.ts'
import { callOf } from './idempotency.ts'

/** The SQL functions that accept messages; all have the same arguments and answers. */
export type AcceptFunction = {
  [Name in keyof Api]: Name extends `accept_${string}` ? Name : never
}[keyof Api]

/** A request whose body is messages. */
export type SendRequest = PostRequest & { body: Messages }

type Send = { request: SendRequest; isBatch: boolean }

export type AcceptOptions = { call: Call; publicUrl: string; metrics: Metrics }

/** What one transaction carries at most: beyond this its commit, not its overhead, is what costs. */
const MAX_ITEMS = 1000
const MAX_BYTES = 8 * 1024 * 1024
/** Accepting so many recipients of one email takes as long as an ordinary item. */
const RECIPIENTS_OF_ITEM = 2

/** An ordinary send weighs 1, and a transaction takes some 50 µs for it. */
const FAIRNESS = {
  ownerOf: ({ request }: Send) => request.admission.organisationId,
  share: 50,
  maxSharedWeight: 250,
}

/**
 * Accepts the messages of a request together with those of all requests that arrive meanwhile: one
 * function and one transaction for single and batch calls. Throws a Refusal for the call
 * as a whole.
 */
export function acceptor(name: AcceptFunction, { call, publicUrl, metrics }: AcceptOptions) {
  const catalogue = catalogueJson(publicUrl)
  const accept = createBatcher<Send, CallResponse>(
    async (sends, isShared) => {
      const bodies = sends.map(({ request }) => request.body)
      metrics.accepted(
        name,
        bodies.reduce((sum, { count }) => sum + count, 0),
      )
      const answers = await call(name, {
        calls: sends.map(describe),
        // src/http/body/post-body.ts checks the type of the items.
        items: concatenated(bodies.map(({ json }) => json)) as Json<never>,
        catalogue,
        is_shared: isShared,
      })
      const byCall = new Map(answers.map((answer) => [answer.n, answer]))
      return sends.map(({ request }) => byCall.get(request.call) ?? LEFT_OUT)
    },
    { maxWeight: MAX_ITEMS, weigh, fairness: FAIRNESS },
  )

  const acceptRequest = async (request: SendRequest, isBatch: boolean): Promise<Reply> => {
    const answer = await accept({ request, isBatch }, request.signal)
    const { code, fields, message, retryAfter, status, body, isReplayed } = answer
    if (code !== null)
      throw new Refusal(code as Code, fields as Fields | null, { words: message, retryAfter })
    // Without an Idempotency-Key only we can have repeated it, after a lost connection.
    return { status, body: body as string, isReplay: isReplayed && request.idempotencyKey !== null }
  }
  return Object.assign(acceptRequest, { idle: accept.idle })
}

/** One JSON array of several that are not empty, made in one pass: a bracket before many MB copies them. */
function concatenated(arrays: string[]): string {
  const [only] = arrays
  if (only !== undefined && arrays.length === 1) return only
  const pieces = arrays.map((array, n) => (n === 0 ? '[' : ',') + array.slice(1, -1))
  return [...pieces, ']'].join('')
}

/** What a call costs the database, in ordinary items. */
function weigh({ request: { body, size } }: Send): number {
  return Math.max(body.count, body.recipients / RECIPIENTS_OF_ITEM, (size / MAX_BYTES) * MAX_ITEMS)
}

function describe({ request, isBatch }: Send) {
  const { key, ...call } = callOf(request)
  // Every call has a key, the caller's or its own: an accept whose connection broke during commit
  // can then be repeated without accepting anything twice.
  return { n: request.call, ...call, key: key ?? `request:${request.requestId}`, batch: isBatch }
}
