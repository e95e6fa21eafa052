import type { Socket } from 'node:net'
import { WebhookFailure } from './failures.ts'

/** Of one answer. A flood of them would keep us busy until the exchange times out. */
const MAX_INTERIM_BYTES = 64 * 1024

/** What says whether an answer is an interim one: `HTTP/1.1 100`. */
const STATUS_BYTES = 12

/** 101 is none, nor is it asked for: what comes after it is no HTTP. */
const INTERIM = /^HTTP\/1\.[01] 1(?!01)\d\d/

const LF = 0x0a
const CR = 0x0d

/**
 * Keeps interim answers, such as 100 and 103, from the reader of a socket: a client has to pass over
 * them, asked for or not (RFC 9110, 15.2), but undici breaks the connection off at a 100. To be told of
 * each request by what it answers, as only the beginning of an answer is looked at.
 */
export function skipInterim(socket: Socket): () => void {
  /** The first bytes of an answer; null once it is known to be final. */
  let status: Buffer | null = Buffer.alloc(0)
  let isInterim = false
  /** Of the present line, without its end. */
  let lineBytes = 0
  let skipped = 0

  /** What is left for the reader; consumes one interim answer, or a part of it, in each round. */
  function finalIn(chunk: Buffer): Buffer {
    let rest = chunk
    while (rest.length > 0) {
      if (isInterim) rest = afterBlankLine(rest)
      else if (status === null) return rest
      else rest = readStatus(Buffer.concat([status, rest]))
    }
    return rest
  }

  function readStatus(bytes: Buffer): Buffer {
    const text = bytes.toString('latin1', 0, STATUS_BYTES)
    if (text.length < STATUS_BYTES && 'HTTP/1.'.startsWith(text.slice(0, 7))) {
      status = bytes
      return Buffer.alloc(0)
    }
    isInterim = INTERIM.test(text)
    status = isInterim ? Buffer.alloc(0) : null
    lineBytes = 0
    return bytes
  }

  function afterBlankLine(bytes: Buffer): Buffer {
    for (const [at, byte] of bytes.entries()) {
      skipped += 1
      if (skipped > MAX_INTERIM_BYTES) {
        socket.destroy(new WebhookFailure('its interim answers are longer than 64 KiB'))
        return Buffer.alloc(0)
      }
      if (byte === LF && lineBytes === 0) {
        isInterim = false
        return bytes.subarray(at + 1)
      }
      if (byte === LF) lineBytes = 0
      else if (byte !== CR) lineBytes += 1
    }
    return Buffer.alloc(0)
  }

  // The one way by which all that arrives comes to a stream; null is its end.
  const push = socket.push
  socket.push = (chunk, encoding) => push.call(socket, chunk && finalIn(chunk), encoding)

  return () => {
    status = Buffer.alloc(0)
    isInterim = false
    skipped = 0
  }
}
