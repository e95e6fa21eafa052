import { processTime, type Time } from '../time/index.ts'
import { isPublicAddress } from './addresses.ts'
import { createConnections } from './connections.ts'
import { exchange, type PostOutcome } from './exchange.ts'
import { LocalFailure, STOPPED } from './failures.ts'
import { createLookup } from './lookup.ts'
import { readTarget } from './target.ts'

/** A request to an endpoint. */
export type Post = {
  url: string
  headers: Record<string, string>
  body: string
}

export type Poster = {
  /**
   * Posts once. Any 2xx whose response ends in time is a success; redirects are not followed. The
   * signal ends the post early. Throws LocalFailure only.
   */
  post(post: Post, signal?: AbortSignal): Promise<PostOutcome>
  /** Ends the posts in progress too. */
  close(): Promise<void>
}

export type PosterOptions = {
  /** WEBHOOK_ALLOW_PRIVATE: http and private addresses as well. */
  allowsPrivate: boolean
  /** Resolvers, `host[:port]`; empty: the system's. */
  dnsServers: readonly string[]
  /** For the whole exchange, from the DNS lookup to the end of the response. */
  timeoutMs?: number
  time?: Time
  /** How long an idle connection is kept. */
  idleMs?: number
  /** Which addresses count as public. */
  isPublic?(address: string): boolean
}

/**
 * Posts events to endpoints: over https, to public addresses only, never through a proxy from the
 * environment. The caller limits how many posts, and so how many connections, are open at a time.
 */
export function createPoster({
  allowsPrivate,
  dnsServers,
  timeoutMs = 10_000,
  time = processTime,
  idleMs,
  isPublic = isPublicAddress,
}: PosterOptions): Poster {
  const closing = new AbortController()
  const options = {
    // Also when NODE_TLS_REJECT_UNAUTHORIZED says otherwise.
    rejectUnauthorized: true,
    autoSelectFamily: true,
    // Leaves time for other addresses when one does not respond. Node's 250 ms are too short for distant ones.
    autoSelectFamilyAttemptTimeout: Math.ceil(timeoutMs / 5),
    timeout: timeoutMs,
    ...(!allowsPrivate && {
      lookup: createLookup({ servers: dnsServers, isPublic, timeoutMs, signal: closing.signal }),
    }),
  }
  const connections = createConnections(options, idleMs)
  return {
    async post({ url: text, headers, body }, signal) {
      const target = readTarget(text, { allowsPrivate, isPublic })
      if ('problem' in target) return { status: null, error: target.problem, response: null }
      if (closing.signal.aborted) return { status: null, error: STOPPED, response: null }
      const { origin, pathname, search } = target.url
      const connection = connections.acquire(origin)
      const { outcome, isReusable } = await exchange(
        connection,
        { path: pathname + search, method: 'POST', headers, body },
        { timeoutMs, time, signal },
      )
      if (isReusable) connections.release(origin, connection)
      else void connection.destroy()
      if (outcome instanceof LocalFailure) throw outcome
      return outcome
    },
    async close() {
      closing.abort()
      connections.close()
    },
  }
}
