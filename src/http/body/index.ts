import { isUtf8 } from 'node:buffer'
import type { Context, Middleware } from 'koa'
import { createBatcher } from '../../db/batcher/index.ts'
import { Refusal } from '../../errors.ts'
import { OTHERS } from '../fair-start.ts'
import { GUARANTEED_BYTES, type HttpLimits } from '../limits.ts'
import { createYield, type Yield } from '../yield.ts'
import { createShares, largestShare } from './shares.ts'
import { type Encoding, isEncoding, TooLarge, unpack } from './unpack.ts'

/** Reads the body of a request, unpacked and at most so long, as UTF-8; empty when there is none. */
export type ReadBody = (ctx: Context, maxBytes: number) => Promise<Buffer>

export type Bodies = {
  /** Receives or discards the whole request before it is answered, and gives back what it held. */
  whole: Middleware
  /** Counts a request among those in hand; `party` is the organisation that it belongs to. */
  hold(ctx: Context, party: string): void
  read: ReadBody
  /** Bytes of all requests in progress. */
  inProgress(): number
}

const MB = 1024 * 1024

/** What a request in hand counts at least: its connection, headers and objects. */
const REQUEST_BYTES = 16 * 1024

/** Node reads so much of a connection at once; most bodies have less. */
const CHUNK_BYTES = 64 * 1024

/** The slowest body beyond the first seconds: 32 KB/s. */
const BYTES_PER_MS = 32

/** How much of a body that was refused is read and thrown away, as many clients send all before they read. */
const DISCARDED_BYTES = 64 * MB

const BYTE_ORDER_MARK = Buffer.from('\uFEFF')

/**
 * A reader of our own, because the libraries (koa-body, raw-body) bound one body but not what all of
 * them hold together, and unpack as many at a time as arrive.
 */
export function createBodies({ bytesInHand, bodyMs }: HttpLimits): Bodies {
  const shares = createShares(bytesInHand, GUARANTEED_BYTES)
  /** In each iteration of the event loop one chunk of bodies, and one of refused ones, of organisations in turn. */
  const reads = createYield(0)
  const discards = createYield(0)
  /** Two at a time, of organisations in turn: unpacked, a body may have a thousand times its bytes. */
  const unpackFairly = createBatcher<Packed, Buffer>(
    (bodies) => Promise.all(bodies.map(unpackWithin)),
    { maxWeight: 1, fairness: { ownerOf: ({ party }) => party, share: 1, maxSharedWeight: 1 } },
  )

  /** What each request in hand counts. */
  const holds = new WeakMap<Context['req'], { party: string; bytes: number }>()

  /** Counts a request with so many bytes; throws when they exceed the share of its party. */
  function hold({ req }: Context, party: string, bytes = 0) {
    const counted = holds.get(req)?.bytes ?? 0
    const needed = Math.max(REQUEST_BYTES, bytes)
    if (needed <= counted) return
    if (!shares.take(party, needed - counted)) throw full(shares.held(party) + needed - counted)
    holds.set(req, { party, bytes: needed })
  }

  function full(needed: number) {
    const most = largestShare(bytesInHand)
    const words =
      needed > most
        ? `This organisation has more than ${inMb(most)} of requests in progress, unpacked. Wait for their responses before sending more.`
        : `The requests in progress of all organisations come close to ${inMb(bytesInHand)}, unpacked. Try again in a second.`
    return new Refusal('rate_limited', null, { words, retryAfter: 1 })
  }

  /** From now on a request counts as its response, until that has been sent or cannot be. */
  function release({ req, res, response }: Context) {
    const held = holds.get(req)
    if (!held) return
    holds.delete(req)
    const bytes = Math.max(REQUEST_BYTES, response.length ?? 0)
    shares.giveBack(held.party, held.bytes - bytes)
    const giveBack = () => shares.giveBack(held.party, bytes)
    // A response without a socket waits behind another of its connection, and may never be closed.
    if (res.closed || !res.socket) giveBack()
    else res.once('close', giveBack)
  }

  /**
   * Feeds a body to `take` as it arrives, beyond `atOnceBytes` in turn; throws what `take` throws, and when the
   * body stops short. Without turns Node would read up to 2 MB of each connection before it accepts the next
   * connection, and it accepts one at a time.
   */
  async function receive(
    { req, state }: Context,
    { turns, atOnceBytes }: { turns: Yield; atOnceBytes: number },
    take: (chunk: Buffer) => void,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const startedAt = performance.now()
    let received = 0
    let isStopped = false
    const onData = (chunk: Buffer) => {
      received += chunk.length
      try {
        take(chunk)
      } catch (error) {
        // At once, and not when the promise settles: more would arrive.
        stop()
        return reject(error)
      }
      if (received <= atOnceBytes) return
      req.pause()
      void turns.run(state.organisationId ?? OTHERS, () => {
        if (!isStopped) req.resume()
      })
    }
    const onBroken = () => {
      if (!req.readableEnded) reject(new Refusal('invalid_json', null, { words: BROKEN_OFF }))
    }
    const checkProgress = () => {
      const leftMs = startedAt + bodyMs + received / BYTES_PER_MS - performance.now()
      if (leftMs > 0) timer = setTimeout(checkProgress, leftMs)
      else reject(new Refusal('invalid_json', null, { words: LATE, status: 408 }))
    }
    let timer = setTimeout(checkProgress, bodyMs)
    const stop = () => {
      isStopped = true
      clearTimeout(timer)
      req.off('data', onData).off('end', resolve).off('error', onBroken).off('close', onBroken)
      // The rest waits for "whole" to discard it; the connection carries the response.
      req.pause()
    }
    req.on('data', onData).once('end', resolve).once('error', onBroken).once('close', onBroken)
    // The client went away before anybody listened.
    if (req.destroyed) onBroken()
    try {
      await promise
    } finally {
      stop()
    }
  }

  async function read(ctx: Context, maxBytes: number): Promise<Buffer> {
    const encoding = encodingOf(ctx)
    refuseOtherCharsets(ctx)
    if (Number(ctx.get('Content-Length')) > maxBytes) throw tooLarge(maxBytes)
    const party = holds.get(ctx.req)?.party ?? OTHERS
    hold(ctx, party)
    const chunks: Buffer[] = []
    let length = 0
    await receive(ctx, { turns: reads, atOnceBytes: CHUNK_BYTES }, (chunk) => {
      length += chunk.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      hold(ctx, party, length)
      chunks.push(chunk)
    })
    const received = Buffer.concat(chunks, length)
    const body = encoding
      ? await unpackFairly({ ctx, party, bytes: received, encoding, maxBytes })
      : received
    if (!isUtf8(body)) throw new Refusal('invalid_json', null, { words: NOT_UTF8 })
    const isMarked = body.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    return isMarked ? body.subarray(BYTE_ORDER_MARK.length) : body
  }

  /** Unpacks as much as the share of its party allows. */
  async function unpackWithin({ ctx, party, bytes, encoding, maxBytes }: Packed): Promise<Buffer> {
    const share = (holds.get(ctx.req)?.bytes ?? 0) + shares.room(party)
    try {
      const body = await unpack(bytes, encoding, Math.min(maxBytes, share))
      hold(ctx, party, body.length)
      return body
    } catch (error) {
      if (error instanceof Refusal) throw error
      if (!(error instanceof TooLarge)) {
        throw new Refusal('invalid_json', null, { words: CORRUPT })
      }
      throw maxBytes <= share
        ? tooLarge(maxBytes)
        : full(shares.held(party) + shares.room(party) + 1)
    }
  }

  async function whole(ctx: Context, next: () => Promise<unknown>) {
    try {
      await next()
    } finally {
      release(ctx)
    }
    const { req } = ctx
    const isWhole = req.complete || req.destroyed || (ctx.status !== 408 && (await discard(ctx)))
    // Without its end it would be taken for the next request, so the connection ends with the response.
    if (!isWhole) ctx.set('Connection', 'close')
    // What is left of it in memory would block its connection.
    req.resume()
  }

  /** Reads the rest of a body that nobody wants; whether it ended in time and in bounds. */
  async function discard(ctx: Context): Promise<boolean> {
    const { req } = ctx
    let discarded = 0
    const isWhole = receive(ctx, { turns: discards, atOnceBytes: 0 }, (chunk) => {
      discarded += chunk.length
      if (discarded > DISCARDED_BYTES) throw new Error('too much to discard')
    })
    req.resume()
    return isWhole.then(
      () => true,
      () => false,
    )
  }

  return { whole: whole as Middleware, hold, read, inProgress: shares.all }
}

/** A body as it arrived, and what it may become. */
type Packed = { ctx: Context; party: string; bytes: Buffer; encoding: Encoding; maxBytes: number }

/** Says that the client closed its side within a body. */
export const BROKEN_OFF = 'The body broke off before its end.'
const LATE = 'The body did not arrive in time: 10 s, and 1 s more for each 32 KB. Send it again.'
const CORRUPT = 'The body cannot be unpacked by its Content-Encoding.'
const NOT_UTF8 = 'The body is not UTF-8.'

const inMb = (bytes: number) => `${bytes / MB} MB`

const tooLarge = (maxBytes: number) =>
  new Refusal('validation_error', { _: [`the body is larger than ${inMb(maxBytes)}`] })

function encodingOf(ctx: Context): Encoding | null {
  const name = ctx.get('Content-Encoding').trim().toLowerCase()
  if (name === '' || name === 'identity') return null
  if (isEncoding(name)) return name
  const words = 'The Content-Encoding is none of gzip, deflate and br.'
  throw new Refusal('invalid_json', null, { words })
}

/** JSON is UTF-8 (RFC 8259), whatever else its Content-Type says; US-ASCII is a part of it. */
function refuseOtherCharsets(ctx: Context): void {
  const [, charset] = /;\s*charset\s*=\s*["']?([^\s"';]*)/i.exec(ctx.get('Content-Type')) ?? []
  if (charset !== undefined && !/^(utf-?8|us-ascii)?$/i.test(charset)) {
    throw new Refusal('invalid_json', null, { words: `${NOT_UTF8} Its charset must be utf-8.` })
  }
}
