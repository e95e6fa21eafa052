import { isUtf8 } from 'node:buffer'
import type { Context, Middleware } from 'koa'
import { createBatcher } from '../../db/batcher/index.ts'
import { Refusal } from '../../errors.ts'
import { type HttpLimits, MB } from '../limits.ts'
import { createYield } from '../yield.ts'
import { receive } from './receive.ts'
import { createReservations, inMb } from './reservations.ts'
import { type Encoding, isEncoding, isTooLarge, unpack } from './unpack.ts'

/** Node reads at most this of a connection at once; most bodies are smaller. */
const CHUNK_BYTES = 64 * 1024

/** The rest of a refused body is read up to this: many clients read the response only after they have sent all. */
const DISCARDED_BYTES = 64 * MB

const BYTE_ORDER_MARK = Buffer.from('\uFEFF')

export type Bodies = ReturnType<typeof createBodies>

/**
 * Reads request bodies. Libraries (koa-body, raw-body) limit one body, but not the memory of all bodies
 * together, and they decompress all that arrive at the same time.
 */
export function createBodies({ bytesInProgress, bodyMs }: HttpLimits) {
  const reservations = createReservations(bytesInProgress)
  const { reserve } = reservations
  // Each iteration of the event loop reads one chunk of a body, and discards one of a refused body.
  const reads = createYield(0)
  const discards = createYield(0)
  // Two bodies at a time, round-robin by owner: decompressed, a body may have a thousand times its bytes.
  const unpackFairly = createBatcher<Packed, Buffer>(
    (bodies) => Promise.all(bodies.map(unpackWithin)),
    { maxWeight: 1, fairness: { ownerOf: ({ owner }) => owner, share: 1, maxSharedWeight: 1 } },
  )

  /**
   * Returns the decompressed body of a request, which must be UTF-8 of at most `maxBytes`; empty if there is none. It
   * counts for `owner`.
   */
  async function read(
    ctx: Context,
    maxBytes: number,
    owner = reservations.ownerOf(ctx),
  ): Promise<Buffer> {
    const encoding = encodingOf(ctx)
    refuseOtherCharsets(ctx)
    if (Number(ctx.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
    reserve(ctx, owner)
    const chunks: Buffer[] = []
    let length = 0
    await receive(ctx, { pacing: reads, atOnceBytes: CHUNK_BYTES, bodyMs }, (chunk) => {
      length += chunk.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      reserve(ctx, owner, length)
      chunks.push(chunk)
    })
    const [first] = chunks
    const received = first && chunks.length === 1 ? first : Buffer.concat(chunks, length)
    const body = encoding
      ? await unpackFairly({ ctx, owner, bytes: received, encoding, maxBytes })
      : received
    if (!isUtf8(body)) throw new Refusal('invalid_json', null, { message: NOT_UTF8 })
    const hasMark = body.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    return hasMark ? body.subarray(BYTE_ORDER_MARK.length) : body
  }

  /** Unpacks a body up to `maxBytes` and the quota of its owner. */
  async function unpackWithin({ ctx, owner, bytes, encoding, maxBytes }: Packed): Promise<Buffer> {
    const quotaBytes = reservations.limitOf(ctx, owner)
    const body = await unpack(bytes, encoding, Math.min(maxBytes, quotaBytes)).catch((error) => {
      if (!isTooLarge(error)) throw new Refusal('invalid_json', null, { message: CORRUPT })
      throw maxBytes <= quotaBytes ? tooLarge(maxBytes) : reservations.overLimit(owner)
    })
    reserve(ctx, owner, body.length)
    return body
  }

  /** Receives or discards the rest of a request before the response, and releases its reservation. */
  const drain: Middleware = async (ctx, next) => {
    try {
      await next()
    } finally {
      reservations.reserveResponse(ctx)
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
    const isWhole = receive(ctx, { pacing: discards, atOnceBytes: 0, bodyMs }, (chunk) => {
      discarded += chunk.length
      if (discarded > DISCARDED_BYTES) throw new Error('too much to discard')
    })
    req.resume()
    return isWhole.then(
      () => true,
      () => false,
    )
  }

  return {
    drain,
    reserve,
    read,
    /** Returns the bytes of all requests in progress. */
    inProgress: reservations.total,
  }
}

/** A compressed body, and how large it may be decompressed. */
type Packed = { ctx: Context; owner: string; bytes: Buffer; encoding: Encoding; maxBytes: number }

const CORRUPT = 'The body cannot be decompressed by its Content-Encoding.'
const NOT_UTF8 = 'The body is not UTF-8.'

const tooLarge = (maxBytes: number) =>
  new Refusal('validation_error', { _: [`the body is larger than ${inMb(maxBytes)}`] })

function encodingOf(ctx: Context): Encoding | null {
  const name = ctx.headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return null
  if (isEncoding(name)) return name
  const message = 'The Content-Encoding must be gzip, deflate or br.'
  throw new Refusal('invalid_json', null, { message })
}

/** JSON is UTF-8 (RFC 8259), of which US-ASCII is a subset. */
function refuseOtherCharsets(ctx: Context): void {
  const [, charset] =
    /;\s*charset\s*=\s*["']?([^\s"';]*)/i.exec(ctx.headers['content-type'] ?? '') ?? []
  if (charset !== undefined && !/^(utf-?8|us-ascii)?$/i.test(charset)) {
    throw new Refusal('invalid_json', null, { message: `${NOT_UTF8} Its charset must be utf-8.` })
  }
}
