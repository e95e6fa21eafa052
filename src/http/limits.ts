const MB = 1024 * 1024

/** The largest body of a request, unpacked; a single email has at most 2 MB of HTML. */
export const BODY_BYTES = 4 * MB

/** The largest body of a batch, unpacked: 1 000 messages of 16 KB each. */
export const BATCH_BYTES = 16 * MB

/** What each organisation may have in hand however much others have: a few small requests. */
export const GUARANTEED_BYTES = 256 * 1024

/** What bounds the requests and connections of one process. */
export type HttpLimits = {
  /** Bytes of requests in hand, unpacked; see shares.ts for what one organisation may have of them. */
  bytesInHand: number
  /** Open connections; one more closes the one that has waited longest for its client. */
  connections: number
  /** A request's headers arrive within this time. */
  headersMs: number
  /** A body arrives within this time and one second more for each 32 KB that has arrived. */
  bodyMs: number
  /** A connection is kept open for the next request for this time. */
  keepAliveMs: number
  /** A connection on which no byte moves for this long is closed, also while its response is not read. */
  silenceMs: number
}

export const HTTP_LIMITS: HttpLimits = {
  // One organisation's share is a quarter of this: a full batch and sixty small requests. While the service
  // parses bodies and sends them to Postgres, the process stays below 600 MB.
  bytesInHand: 68 * MB,
  connections: 4096,
  headersMs: 10_000,
  bodyMs: 10_000,
  keepAliveMs: 5000,
  silenceMs: 60_000,
}
