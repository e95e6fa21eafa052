import type { Context } from 'koa'
import { Refusal } from '../../errors.ts'
import { UNKNOWN_OWNER } from '../fair-start.ts'
import type { Yield } from '../yield.ts'

type ReceiveOptions = {
  /** Decides when the next chunk arrives. */
  pacing: Yield
  /** Bytes that arrive without pacing. */
  atOnceBytes: number
  /** Time within which the body must arrive, plus one second for each 32 KB that has arrived. */
  bodyMs: number
}

/** A slower body times out after the first seconds. */
const BYTES_PER_MS = 32

/** The message for a client that closed its side within a body. */
export const BROKEN_OFF = 'The body broke off before its end.'
const LATE = 'The body did not arrive in time: 10 s, and 1 s more for each 32 KB. Send it again.'

/**
 * Passes each chunk of a body to `take`. Chunks after the first `atOnceBytes` arrive round-robin by owner:
 * otherwise Node reads up to 2 MB of each connection before it accepts the next connection, one at a time.
 * Throws what `take` throws, and a Refusal if the body ends early or late.
 */
export async function receive(
  { req, state }: Context,
  { pacing, atOnceBytes, bodyMs }: ReceiveOptions,
  take: (chunk: Buffer) => void,
) {
  // Most bodies have arrived together with their headers.
  if (req.complete && req.readableLength <= atOnceBytes && !req.readableEnded) {
    const whole: Buffer | null = req.read()
    if (whole) take(whole)
    return
  }
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
