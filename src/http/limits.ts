const MB = 1024 * 1024

/** The largest body of a request, unpacked; a single email has at most 2 MB of HTML. */
export const BODY_BYTES = 4 * MB

/** The largest body of a batch, unpacked: 1 000 messages of 16 KB each. */
export const BATCH_BYTES = 16 * MB

/** What bounds the requests and connections of one process. */
export type HttpLimits = {
  /** Bytes of requests in hand, unpacked; see shares.ts for what one organisation may have of them. */
  bytesInHand: number
  /** Open connections; see shares.ts for what one address may have of them. */
  connections: number
  /** A request's headers arrive within this time. */
  headersMs: number
  /** A body arrives within this time and one second more for each 32 KB that has arrived. */
  bodyMs: number
  /** A connection on which no byte moves for this long is closed, also while its response is not read. */
  silenceMs: number
}

export const HTTP_LIMITS: HttpLimits = {
  bytesInHand: 64 * MB,
  connections: 8192,
  headersMs: 10_000,
  bodyMs: 10_000,
  silenceMs: 60_000,
}
