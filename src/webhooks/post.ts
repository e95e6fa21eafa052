import { isPublicAddress } from './addresses.ts'
import { createConnections } from './connections.ts'
import { exchange, type PostOutcome } from './exchange.ts'
import { OwnFailure, STOPPED } from './failures.ts'
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
   * it early. Throws OwnFailure alone, when it could not be posted for a lack of ours.
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
  /** For how long a connection is kept that has nothing to do. */
  idleMs?: number
  /** Which addresses count as public. */
  isPublic?(address: string): boolean
}

/**
 * Posts events to endpoints (interface 6): to public addresses only, by https, past any proxy of the
 * environment. How many posts go on at once, and so how many connections there are, is its caller's
 * business; each has one to itself.
 */
export function createPoster({
  allowsPrivate,
  dnsServers,
  timeoutMs = 10_000,
  idleMs,
  isPublic = isPublicAddress,
}: PosterOptions): Poster {
  const closing = new AbortController()
  const options = {
    // Also when NODE_TLS_REJECT_UNAUTHORIZED says otherwise.
    rejectUnauthorized: true,
    autoSelectFamily: true,
    // An address that is silent leaves time for others; of Node's own 250 ms distant ones need more.
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
      if ('problem' in target) return { status: null, error: target.problem, answer: null }
      if (closing.signal.aborted) return { status: null, error: STOPPED, answer: null }
      const { origin, pathname, search } = target.url
      const connection = connections.take(origin)
      const { outcome, isWhole } = await exchange(
        connection,
        { path: pathname + search, method: 'POST', headers, body },
        { timeoutMs, signal },
      )
      if (isWhole) connections.keep(origin, connection)
      else void connection.destroy()
      if (outcome instanceof OwnFailure) throw outcome
      return outcome
    },
    async close() {
      closing.abort()
      connections.close()
    },
  }
}
