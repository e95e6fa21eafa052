import type { Answer, Api } from '../db/api.gen.ts'
import { createBatcher } from '../db/batcher.ts'
import type { Call } from '../db/call.ts'
import { type Code, catalogueJson, type ErrorBody, Refusal } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import type { Fields } from '../schemas/fields.ts'
import type { PostRequest, Reply } from './endpoint.ts'
import { callOf } from './idempotency.ts'

/** The SQL functions that accept messages; all have the same arguments and answers. */
export type AcceptFunction = {
  [Name in keyof Api]: Name extends `accept_${string}` ? Name : never
}[keyof Api]

/** A message as its schema left it, or why it is not one. */
type Item = object | { error: ErrorBody }

type Send = { request: PostRequest; items: Item[]; isBatch: boolean }

export type AcceptOptions = { call: Call; publicUrl: string; metrics: Metrics }

/** What one transaction carries at most: beyond this its commit, not its overhead, is what costs. */
const MAX_ITEMS = 1000
const MAX_BYTES = 8 * 1024 * 1024

/**
 * Accepts the messages of a request together with those of all requests that arrive meanwhile: one
 * function and one transaction for single and batch calls. Throws a Refusal for the call
 * as a whole.
 */
export function acceptor(name: AcceptFunction, { call, publicUrl, metrics }: AcceptOptions) {
  const catalogue = catalogueJson(publicUrl)
  const accept = createBatcher<Send, Answer>(
    async (sends) => {
      const items = sends.flatMap(({ items }, n) =>
        items.map((item, index) => ({ ...item, call: n, index })),
      )
      metrics.accepted(name, items.length)
      const answers = await call(name, {
        calls: JSON.stringify(sends.map(describe)),
        items: JSON.stringify(items),
        catalogue,
      })
      const byCall: Answer[] = []
      for (const answer of answers) byCall[answer.n] = answer
      return byCall
    },
    {
      maxWeight: MAX_ITEMS,
      weigh: ({ request, items }) => Math.max(items.length, (request.size / MAX_BYTES) * MAX_ITEMS),
    },
  )

  const acceptRequest = async (
    request: PostRequest,
    items: Item[],
    isBatch: boolean,
  ): Promise<Reply> => {
    const { code, fields, words, retryAfter, status, body, replayed } = await accept({
      request,
      items,
      isBatch,
    })
    if (code !== null)
      throw new Refusal(code as Code, fields as Fields | null, { words, retryAfter })
    // Without an Idempotency-Key only we can have repeated it, after a lost connection.
    return { status, body: body as string, isReplay: replayed && request.idempotencyKey !== null }
  }
  return Object.assign(acceptRequest, { idle: accept.idle })
}

function describe({ request, isBatch }: Send, n: number) {
  const { key, ...call } = callOf(request)
  // Every call has a key, the caller's or its own: an accept whose connection broke during commit
  // can then be repeated without accepting anything twice.
  return { n, ...call, key: key ?? `request:${request.requestId}`, batch: isBatch }
}
