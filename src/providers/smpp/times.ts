/**
 * Time limits and delays. An attempt ends after submitTimeoutMs and responseTimeoutMs at the latest. That is shorter
 * than the worker's limit for an attempt, so that no part is submitted after its attempt is over.
 */
export const TIMES = {
  /** TCP and TLS. */
  connectTimeoutMs: 10_000,
  /** The response to each PDU. */
  responseTimeoutMs: 30_000,
  enquireLinkIntervalMs: 30_000,
  /** How long a message waits for a link that is down. */
  linkTimeoutMs: 5000,
  /** How long after the start of an attempt a part may still be submitted. */
  submitTimeoutMs: 20_000,
  /** The delay before a part that was refused temporarily is submitted again; it doubles each time. */
  retryDelayMs: 500,
  /** The delay before a new link; it doubles with each failure up to the maximum. */
  reconnectDelayMs: 500,
  maxReconnectDelayMs: 30_000,
  /** The delay after a wrong user or password: networks lock accounts after repeated attempts. */
  wrongLoginDelayMs: 60_000,
  /** How long requests in progress may take while the link closes. */
  closeTimeoutMs: 8000,
}

export type SmppTimes = typeof TIMES
