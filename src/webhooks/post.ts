import { buildConnector } from 'undici'
import { isPublicAddress } from './addresses.ts'
import { createConnections } from './connections.ts'
import { exchange, type PostOutcome } from './exchange.ts'
import { createLookup } from './lookup.ts'
import { readTarget } from './target.ts'

/** What is posted to an endpoint. */
export type Post = {
  url: string
  headers: Record<string, string>
  body: string
}

export type { PostOutcome }

export type Poster = {
  /**
   * Any 2xx whose answer comes to an end in time is a success; a redirect is not followed. A signal ends
   * it early. Never throws.
   */
  post(post: Post, signal?: AbortSignal): Promise<PostOutcome>
  /** Also ends what is still under way. */
  close(): Promise<void>
}

export type PosterOptions = {
  /** WEBHOOK_ALLOW_PRIVATE: http and private addresses as well. */
  allowsPrivate: boolean
  /** Resolvers, `host[:port]`; empty: the system's. */
  dnsServers: readonly string[]
  /** For the whole exchange, from looking up the name to the end of the answer. */
  timeoutMs?: number
  /** Which addresses count as public. */
  isPublic?(address: string): boolean
}

/**
 * Shorter than servers keep a connection that is idle, lest one is used again while it is being closed;
 * and endpoints of which there is nothing to tell hold nothing of ours.
 */
const IDLE_MS = 1000

/**
 * Posts events to endpoints (interface 6): to public addresses only, by https, past any proxy of the
 * environment. How many posts go on at once, and so how many connections there are, is its caller's
 * business; each has one to itself.
 */
export function createPoster({
  allowsPrivate,
  dnsServers,
  timeoutMs = 10_000,
  isPublic = isPublicAddress,
}: PosterOptions): Poster {
  const closing = new AbortController()
  const connections = createConnections({
    connect: buildConnector({
      // Also when NODE_TLS_REJECT_UNAUTHORIZED says otherwise.
      rejectUnauthorized: true,
      autoSelectFamily: true,
      // An address that is silent leaves time for others; of Node's own 250 ms distant ones need more.
      autoSelectFamilyAttemptTimeout: Math.ceil(timeoutMs / 5),
      timeout: timeoutMs,
      signal: closing.signal,
      ...(!allowsPrivate && {
        lookup: createLookup({ servers: dnsServers, isPublic, timeoutMs, signal: closing.signal }),
      }),
    }),
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // The exchange has a limit of its own.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    async post({ url: text, headers, body }, signal) {
      const target = readTarget(text, { allowsPrivate, isPublic })
      if ('problem' in target) return { status: null, error: target.problem, answer: null }
      const { origin, pathname, search } = target.url
      const connection = connections.take(origin)
      const { outcome, isWhole } = await exchange(
        connection,
        { path: pathname + search, method: 'POST', headers, body },
        { timeoutMs, signal },
      )
      if (isWhole) connections.keep(origin, connection)
      else void connection.destroy()
      return outcome
    },
    async close() {
      closing.abort()
    },
  }
}
