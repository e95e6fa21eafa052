import { isUtf8 } from 'node:buffer'
import type { Context, Middleware } from 'koa'
import { createBatcher } from '../../db/batcher/index.ts'
import { Refusal } from '../../errors.ts'
import { UNKNOWN_OWNER } from '../fair-start.ts'
import { GUARANTEED_BYTES, type HttpLimits } from '../limits.ts'
import { createYield, type Yield } from '../yield.ts'
import { createQuota, largestReservation } from './quota.ts'
import { type Encoding, isEncoding, TooLarge, unpack } from './unpack.ts'

/** Returns the decompressed body of a request, which must be UTF-8 of at most `maxBytes`; empty if there is none. */
export type ReadBody = (ctx: Context, maxBytes: number) => Promise<Buffer>

export type Bodies = {
  /** Receives or discards the rest of a request before the response, and releases its reservation. */
  drain: Middleware
  /** Counts a request among those in progress of its organisation. */
  reserve(ctx: Context, organisationId: string): void
  read: ReadBody
  /** Returns the bytes of all requests in progress. */
  inProgress(): number
}

const MB = 1024 * 1024

/** Every request counts at least this: its connection, headers and objects. */
const REQUEST_BYTES = 16 * 1024

/** Node reads so much of a connection at once; most bodies are smaller. */
const CHUNK_BYTES = 64 * 1024

/** A slower body times out after the first seconds. */
const BYTES_PER_MS = 32

/** The rest of a refused body is read up to this: many clients read the response only after they have sent all. */
const DISCARDED_BYTES = 64 * MB

const BYTE_ORDER_MARK = Buffer.from('\uFEFF')

/**
 * Reads request bodies. Libraries (koa-body, raw-body) limit one body, but not the memory of all bodies
 * together, and they decompress all that arrive at the same time.
 */
export function createBodies({ bytesInProgress, bodyMs }: HttpLimits): Bodies {
  const quota = createQuota(bytesInProgress, GUARANTEED_BYTES)
  // Each iteration of the event loop reads one chunk of a body, and discards one of a refused body.
  const reads = createYield(0)
  const discards = createYield(0)
  // Two bodies at a time, round-robin by owner: decompressed, a body may have a thousand times its bytes.
  const unpackFairly = createBatcher<Packed, Buffer>(
    (bodies) => Promise.all(bodies.map(unpackWithin)),
    { maxWeight: 1, fairness: { ownerOf: ({ owner }) => owner, share: 1, maxSharedWeight: 1 } },
  )

  /** The reservation of each request in progress. */
  const reservations = new WeakMap<Context['req'], { owner: string; bytes: number }>()

  /** Raises the reservation of a request to `bytes`; throws a Refusal when its owner's quota is used up. */
  function reserve({ req }: Context, owner: string, bytes = 0) {
    const reserved = reservations.get(req)?.bytes ?? 0
    const needed = Math.max(REQUEST_BYTES, bytes)
    if (needed <= reserved) return
    if (!quota.reserve(owner, needed - reserved)) {
      throw overQuota(quota.reservedBy(owner) + needed - reserved)
    }
    reservations.set(req, { owner, bytes: needed })
  }

  /** `needed`: what the owner would have reserved. */
  function overQuota(needed: number) {
    const most = largestReservation(bytesInProgress)
    const message =
      needed > most
        ? `This organisation has more than ${inMb(most)} of requests in progress, decompressed. Wait for their responses before sending more.`
        : `The requests in progress of all organisations come close to ${inMb(bytesInProgress)}, decompressed. Try again in a second.`
    return new Refusal('rate_limited', null, { message, retryAfter: 1 })
  }

  /** Replaces the reservation of a request by one for its response, until that is sent or cannot be sent. */
  function reserveResponse({ req, res, response }: Context) {
    const reservation = reservations.get(req)
    if (!reservation) return
    reservations.delete(req)
    const { owner } = reservation
    const bytes = Math.max(REQUEST_BYTES, response.length ?? 0)
    quota.release(owner, reservation.bytes)
    quota.add(owner, bytes)
    const release = () => quota.release(owner, bytes)
    // A response without a socket waits behind another one of its connection, and may never close.
    if (res.closed || !res.socket) release()
    else res.once('close', release)
  }

  /**
   * Passes each chunk of a body to `take`. Chunks after the first `atOnceBytes` arrive round-robin by owner:
   * otherwise Node reads up to 2 MB of each connection before it accepts the next connection, one at a time.
   * Throws what `take` throws, and a Refusal if the body ends early or late.
   */
  async function receive(
    { req, state }: Context,
    { pacing, atOnceBytes }: { pacing: Yield; atOnceBytes: number },
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
        // Now, not when the promise settles: more chunks could arrive until then.
        stop()
        return reject(error)
      }
      if (received <= atOnceBytes) return
      req.pause()
      void pacing.run(state.organisationId ?? UNKNOWN_OWNER, () => {
        if (!isStopped) req.resume()
      })
    }
    const onBroken = () => {
      if (!req.readableEnded) reject(new Refusal('invalid_json', null, { message: BROKEN_OFF }))
    }
    const checkProgress = () => {
      const leftMs = startedAt + bodyMs + received / BYTES_PER_MS - performance.now()
      if (leftMs > 0) timer = setTimeout(checkProgress, leftMs)
      else reject(new Refusal('invalid_json', null, { message: LATE, status: 408 }))
    }
    let timer = setTimeout(checkProgress, bodyMs)
    const stop = () => {
      isStopped = true
      clearTimeout(timer)
      req.off('data', onData).off('end', resolve).off('error', onBroken).off('close', onBroken)
      // `drain` discards the rest; the response needs the connection.
      req.pause()
    }
    req.on('data', onData).once('end', resolve).once('error', onBroken).once('close', onBroken)
    // The connection may have closed before the listeners were added.
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
    const owner = reservations.get(ctx.req)?.owner ?? UNKNOWN_OWNER
    reserve(ctx, owner)
    const chunks: Buffer[] = []
    let length = 0
    await receive(ctx, { pacing: reads, atOnceBytes: CHUNK_BYTES }, (chunk) => {
      length += chunk.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      reserve(ctx, owner, length)
      chunks.push(chunk)
    })
    const received = Buffer.concat(chunks, length)
    const body = encoding
      ? await unpackFairly({ ctx, owner, bytes: received, encoding, maxBytes })
      : received
    if (!isUtf8(body)) throw new Refusal('invalid_json', null, { message: NOT_UTF8 })
    const hasMark = body.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    return hasMark ? body.subarray(BYTE_ORDER_MARK.length) : body
  }

  /** Unpacks a body up to `maxBytes` and the quota of its owner. */
  async function unpackWithin({ ctx, owner, bytes, encoding, maxBytes }: Packed): Promise<Buffer> {
    const quotaBytes = (reservations.get(ctx.req)?.bytes ?? 0) + quota.available(owner)
    try {
      const body = await unpack(bytes, encoding, Math.min(maxBytes, quotaBytes))
      reserve(ctx, owner, body.length)
      return body
    } catch (error) {
      if (error instanceof Refusal) throw error
      if (!(error instanceof TooLarge)) {
        throw new Refusal('invalid_json', null, { message: CORRUPT })
      }
      throw maxBytes <= quotaBytes
        ? tooLarge(maxBytes)
        : overQuota(quota.reservedBy(owner) + quota.available(owner) + 1)
    }
  }

  async function drain(ctx: Context, next: () => Promise<unknown>) {
    try {
      await next()
    } finally {
      reserveResponse(ctx)
    }
    const { req } = ctx
    const isWhole = req.complete || req.destroyed || (ctx.status !== 408 && (await discard(ctx)))
    // The rest of the body would be parsed as the next request, so the connection closes after the response.
    if (!isWhole) ctx.set('Connection', 'close')
    // Chunks left in memory would block the connection.
    req.resume()
  }

  /** Reads and discards the rest of a body; returns whether it ended within the limits on bytes and time. */
  async function discard(ctx: Context): Promise<boolean> {
    const { req } = ctx
    let discarded = 0
    const isWhole = receive(ctx, { pacing: discards, atOnceBytes: 0 }, (chunk) => {
      discarded += chunk.length
      if (discarded > DISCARDED_BYTES) throw new Error('too much to discard')
    })
    req.resume()
    return isWhole.then(
      () => true,
      () => false,
    )
  }

  return { drain: drain as Middleware, reserve, read, inProgress: quota.reserved }
}

/** A compressed body, and how large it may be decompressed. */
type Packed = { ctx: Context; owner: string; bytes: Buffer; encoding: Encoding; maxBytes: number }

/** The message for a client that closed its side within a body. */
export const BROKEN_OFF = 'The body broke off before its end.'
const LATE = 'The body did not arrive in time: 10 s, and 1 s more for each 32 KB. Send it again.'
const CORRUPT = 'The body cannot be decompressed by its Content-Encoding.'
const NOT_UTF8 = 'The body is not UTF-8.'

const inMb = (bytes: number) => `${bytes / MB} MB`

const tooLarge = (maxBytes: number) =>
  new Refusal('validation_error', { _: [`the body is larger than ${inMb(maxBytes)}`] })

function encodingOf(ctx: Context): Encoding | null {
  const name = ctx.get('Content-Encoding').trim().toLowerCase()
  if (name === '' || name === 'identity') return null
  if (isEncoding(name)) return name
  const message = 'The Content-Encoding must be gzip, deflate or br.'
  throw new Refusal('invalid_json', null, { message })
}

/** JSON is UTF-8 (RFC 8259), of which US-ASCII is a subset. */
function refuseOtherCharsets(ctx: Context): void {
  const [, charset] = /;\s*charset\s*=\s*["']?([^\s"';]*)/i.exec(ctx.get('Content-Type')) ?? []
  if (charset !== undefined && !/^(utf-?8|us-ascii)?$/i.test(charset)) {
    throw new Refusal('invalid_json', null, { message: `${NOT_UTF8} Its charset must be utf-8.` })
  }
}
