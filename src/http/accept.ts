import { randomUUID } from 'node:crypto'
import type { AcceptCall, Api, CallResponse } from '../db/api.gen.ts'
import { createBatcher } from '../db/batcher/index.ts'
import { LEFT_OUT } from '../db/batcher/run.ts'
import type { Call } from '../db/call.ts'
import type { CallPair } from '../db/call-pair.ts'
import { ConnectionLost } from '../db/connection-errors.ts'
import type { Json } from '../db/json.ts'
import type { Fields } from '../errors.ts'
import { type Code, catalogueJson, Refusal } from '../errors.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Question, Scope } from './admit.ts'
import type { Messages } from './body/post-body.ts'
import type { KnownRequest, PostRequest, Reply } from './endpoint.ts'
import { callOf } from './idempotency.ts'
import { MB } from './limits.ts'

/** The api functions that accept messages. */
export type AcceptFunction = keyof Api & `accept_${string}`

/** A request whose body has messages. */
export type SendRequest = PostRequest & { body: Messages }

/** The same before its key is admitted. */
type KnownSend = KnownRequest & { body: Messages }

type Send =
  | { request: SendRequest; isBatch: boolean; question?: never }
  | { request: KnownSend; isBatch: boolean; question: Question }

/** A call that was not accepted together with the admission of its key has no response. */
type Outcome = { response: CallResponse | undefined }

export type AcceptOptions = {
  call: Call
  callPair: CallPair
  publicUrl: string
  metrics: Metrics
}

/** The limits of one transaction: a larger one gains nothing, as its overhead is already small. */
const MAX_ITEMS = 1000
const MAX_BYTES = 8 * MB
/** This number of recipients of one email costs the database as much time as an ordinary item. */
const RECIPIENTS_PER_ITEM = 2

/** Two smaller transactions at a time take the database longer than one. */
const OVERLAP_WEIGHT = 16

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
export function acceptor(
  name: AcceptFunction,
  scope: Scope,
  { call, callPair, publicUrl, metrics }: AcceptOptions,
) {
  const catalogue = catalogueJson(publicUrl)
  const accept = createBatcher<Send, Outcome>(
    async (sends, isShared) => {
      // A request whose key was admitted in a run that then failed continues with that admission.
      const responses = await respond(
        sends.filter(({ question }) => !question?.asked),
        isShared,
      )
      return sends.map(({ request, question }) => {
        const response = responses.get(request.call)
        return response || question ? { response } : LEFT_OUT
      })
    },
    { maxWeight: MAX_ITEMS, weigh, fairness: FAIRNESS, overlapWeight: OVERLAP_WEIGHT },
  )

  /** Returns the responses to those calls that the database did not leave out, by number. */
  async function respond(sends: Send[], isShared: boolean): Promise<Map<number, CallResponse>> {
    if (sends.length === 0) return new Map()
    const bodies = sends.map(({ request }) => request.body)
    metrics.accepted(
      name,
      bodies.reduce((sum, { count }) => sum + count, 0),
    )
    const args = {
      calls: sends.map(acceptCall),
      // Of no type, as it fits either function: post-body.ts checked the items for the one that `name` names.
      items: concatenated(bodies.map(({ json }) => json)) as Json<never>,
      catalogue,
      is_shared: isShared,
    }
    const asking = sends.filter((send) => send.question !== undefined)
    if (asking.length === 0) return byCall(await call(name, args))

    const run = randomUUID()
    const askedAt = performance.now()
    const calls = asking.map(({ request: { call, admission } }) => ({
      n: call,
      api_key: admission.key,
      organisation_id: admission.organisationId,
      mode: admission.mode,
    }))
    const {
      first: admissions,
      second: responses,
      error,
    } = await callPair(['admit_calls', { run, scope, calls }], [name, { ...args, run }])
    const isLost = error instanceof ConnectionLost
    if (admissions) {
      const byPlace = new Map(admissions.map((admission) => [admission.n, admission]))
      for (const [place, { question }] of asking.entries()) {
        question.asked = { isLost: false, askedAt, admission: byPlace.get(place + 1) }
      }
    } else if (isLost) {
      for (const { question } of asking) question.asked = { isLost }
    }
    if (isLost)
      return respond(
        sends.filter(({ question }) => !question),
        isShared,
      )
    if (error) throw error
    return byCall(responses ?? [])
  }

  function replyTo(response: CallResponse, idempotencyKey: string | null): Reply {
    const { code, fields, message, retryAfter, status, body, isReplayed } = response
    if (code !== null)
      throw new Refusal(code as Code, fields as Fields | null, { message, retryAfter })
    // A replay without an Idempotency-Key is our own repetition after a lost connection.
    return { status, body: body as string, isReplay: isReplayed && idempotencyKey !== null }
  }

  const acceptRequest = async (request: SendRequest, isBatch: boolean): Promise<Reply> => {
    const { response } = await accept({ request, isBatch }, request.signal)
    return replyTo(response as CallResponse, request.idempotencyKey)
  }
  return Object.assign(acceptRequest, {
    /**
     * The same for a single send whose key is not admitted yet; sets the outcome of its admission in `question`.
     * Returns undefined if the call was not accepted; if its key is admitted, it still can be.
     */
    async withAdmission(request: KnownSend, question: Question): Promise<Reply | undefined> {
      const { response } = await accept({ request, isBatch: false, question }, request.signal)
      return response && replyTo(response, request.idempotencyKey)
    },
    idle: accept.idle,
  })
}

function byCall(responses: CallResponse[]): Map<number, CallResponse> {
  return new Map(responses.map((response) => [response.n, response]))
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
