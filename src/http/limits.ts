export const MB = 1024 * 1024

/** The largest body of a single request, decompressed; an email has at most 2 MB of HTML. */
export const BODY_BYTES = 4 * MB

/** The largest body of a batch, decompressed: 1 000 messages of 16 KB each. */
export const BATCH_BYTES = 16 * MB

/** Each organisation may always have this much in progress, whatever others have: a few small requests. */
export const GUARANTEED_BYTES = 256 * 1024

/** The limits on requests and connections of one process. */
export type HttpLimits = {
  /** Decompressed bytes of all requests in progress; body/quota.ts divides them between organisations. */
  bytesInProgress: number
  /** Open connections; a further one closes the connection that has waited longest for its client. */
  connections: number
  /** Time within which the headers of a request must arrive. */
  headersMs: number
  /** Time within which a body must arrive, plus one second for each 32 KB that has arrived. */
  bodyMs: number
  /** Time for which an idle connection is kept open for the next request. */
  keepAliveMs: number
  /** A connection without a byte sent or received for this time is closed, also if a response is unread. */
  silenceMs: number
}

export const HTTP_LIMITS: HttpLimits = {
  // One organisation alone gets a quarter of this: a full batch and sixty small requests. With this limit the
  // process stays below 600 MB while it parses bodies and sends them to Postgres.
  bytesInProgress: 68 * MB,
  connections: 4096,
  headersMs: 10_000,
  bodyMs: 10_000,
  keepAliveMs: 5000,
  silenceMs: 60_000,
}
