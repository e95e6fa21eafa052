import { Agent, request } from 'undici'

/** What is posted to an endpoint. */
export type Post = {
  url: string
  headers: Record<string, string>
  body: string
}

/** What came of it, as api.finish_deliveries keeps it. */
export type PostOutcome = {
  /** HTTP status; null when no answer came. */
  status: number | null
  /** Why it failed, in words for the endpoint's owner; null when it succeeded. */
  error: string | null
  /** The first characters of the answer's body, without what Postgres cannot store. */
  answer: string | null
}

export type Poster = {
  /** Never throws. */
  post(post: Post, signal?: AbortSignal): Promise<PostOutcome>
  close(): Promise<void>
}

export type PosterOptions = {
  /** WEBHOOK_ALLOW_PRIVATE: http and private addresses as well. */
  allowsPrivate: boolean
  /** Resolvers, `host[:port]`; empty: the system's. */
  dnsServers: readonly string[]
  /** For the whole exchange. */
  timeoutMs?: number
}

/** Posts events to endpoints, and to public addresses only. */
export function createPoster({ timeoutMs = 10_000 }: PosterOptions): Poster {
  const agent = new Agent()
  return {
    async post({ url, headers, body }, signal) {
      const limits = [AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]
      try {
        const response = await request(url, {
          method: 'POST',
          headers,
          body,
          dispatcher: agent,
          signal: AbortSignal.any(limits),
        })
        const answer = await response.body.text()
        const isSuccess = response.statusCode >= 200 && response.statusCode < 300
        return {
          status: response.statusCode,
          error: isSuccess ? null : `answered ${response.statusCode}`,
          answer: answer.slice(0, 1000),
        }
      } catch (error) {
        return { status: null, error: String(error), answer: null }
      }
    },
    close: () => agent.close(),
  }
}
