import type { AcceptCall, Api, CallResponse } from '../db/api.gen.ts'
import { createBatcher } from '../db/batcher/index.ts'
import { LEFT_OUT } from '../db/batcher/run.ts'
import type { Call } from '../db/call.ts'
import type { Json } from '../db/json.ts'
import type { Fields } from '../errors.ts'
import { type Code, catalogueJson, Refusal } from '../errors.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Messages } from './body/post-body.ts'
import type { PostRequest, Reply } from './endpoint.ts'
import { callOf } from './idempotency.ts'
import { MB } from './limits.ts'

/** The api functions that accept messages. */
export type AcceptFunction = keyof Api & `accept_${string}`

/** A request whose body has messages. */
export type SendRequest = PostRequest & { body: Messages }

type Send = { request: SendRequest; isBatch: boolean }

export type AcceptOptions = { call: Call; publicUrl: string; metrics: Metrics }

/** The limits of one transaction: a larger one gains nothing, as its overhead is already small. */
const MAX_ITEMS = 1000
const MAX_BYTES = 8 * MB
/** This number of recipients of one email costs the database as much time as an ordinary item. */
const RECIPIENTS_PER_ITEM = 2

/** An ordinary send has weight 1 and takes some 50 µs of its transaction. */
const FAIRNESS = {
  ownerOf: ({ request }: Send) => request.admission.organisationId,
  share: 50,
  maxSharedWeight: 250,
}

/**
 * Returns a function that accepts the messages of a request, single or batch, in one transaction with those of
 * other requests that arrive at the same time. It throws a Refusal if the whole call is refused.
 */
export function acceptor(name: AcceptFunction, { call, publicUrl, metrics }: AcceptOptions) {
  const catalogue = catalogueJson(publicUrl)
  const accept = createBatcher<Send, CallResponse>(
    async (sends, isShared) => {
      const bodies = sends.map(({ request }) => request.body)
      const messages = bodies.reduce((sum, { count }) => sum + count, 0)
      metrics.accepted(name, messages)
      const results = await call(name, {
        calls: sends.map(acceptCall),
        // Of no type, as it fits either function: post-body.ts checked the items for the one that `name` names.
        items: concatenated(bodies.map(({ json }) => json)) as Json<never>,
        catalogue,
        is_shared: isShared,
      })
      const byCall = new Map(results.map((result) => [result.n, result]))
      return sends.map(({ request }) => byCall.get(request.call) ?? LEFT_OUT)
    },
    { maxWeight: MAX_ITEMS, weigh, fairness: FAIRNESS },
  )

  const acceptRequest = async (request: SendRequest, isBatch: boolean): Promise<Reply> => {
    const result = await accept({ request, isBatch }, request.signal)
    const { code, fields, message, retryAfter, status, body, isReplayed } = result
    if (code !== null)
      throw new Refusal(code as Code, fields as Fields | null, { message, retryAfter })
    // A replay without an Idempotency-Key is our own repetition after a lost connection.
    return { status, body: body as string, isReplay: isReplayed && request.idempotencyKey !== null }
  }
  return Object.assign(acceptRequest, { idle: accept.idle })
}

/** Joins non-empty JSON arrays. One join() copies the text once; adding the brackets afterwards copies it again. */
function concatenated(arrays: string[]): string {
  const [only] = arrays
  if (only !== undefined && arrays.length === 1) return only
  const pieces = arrays.map((array, n) => (n === 0 ? '[' : ',') + array.slice(1, -1))
  return [...pieces, ']'].join('')
}

/** Estimates the database time of a call, in ordinary items. */
function weigh({ request: { body, size } }: Send): number {
  return Math.max(body.count, body.recipients / RECIPIENTS_PER_ITEM, (size / MAX_BYTES) * MAX_ITEMS)
}

function acceptCall({ request, isBatch }: Send): AcceptCall {
  const { key, ...call } = callOf(request)
  // Every call has a key, if need be its request ID, so that it can be repeated without accepting anything twice
  // after the connection broke during the commit.
  return { n: request.call, ...call, key: key ?? `request:${request.requestId}`, batch: isBatch }
}
