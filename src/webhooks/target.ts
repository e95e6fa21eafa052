import { isIP } from 'node:net'

/** Those from 1024 up which belong to protocols that could be talked to in HTTP (WHATWG fetch, "bad ports"). */
const BAD_PORTS = [
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080],
]

/** What may be posted to. */
export type Limits = {
  /** WEBHOOK_ALLOW_PRIVATE: http, any port and any address as well. */
  allowsPrivate: boolean
  /** Which addresses count as public. */
  isPublic(address: string): boolean
}

/**
 * A URL to post to, or why nothing is posted there. core.webhook_url_problem says the same of most when
 * an endpoint is made, but only this sees what the URL is once it is read: an address may be written in
 * many ways, and URL makes one of them.
 */
export function readTarget(text: string, limits: Limits): { url: URL } | { problem: string } {
  if (!URL.canParse(text)) return { problem: 'its URL cannot be read' }
  const url = new URL(text)
  const problem = problemOf(url, limits)
  return problem ? { problem: `its URL ${problem}` } : { url }
}

function problemOf(url: URL, { allowsPrivate, isPublic }: Limits): string | undefined {
  const isHttp = url.protocol === 'http:' && allowsPrivate
  if (!isHttp && url.protocol !== 'https:') return 'is not an https URL'
  if (url.username !== '' || url.password !== '') return 'has a user or a password in it'
  if (allowsPrivate) return
  const address = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(address) !== 0 && !isPublic(address)) return 'has an address that is not public'
  if (!isAllowedPort(Number(url.port || 443))) return 'has a port that may not be used'
}

function isAllowedPort(port: number): boolean {
  return port === 443 || (port >= 1024 && !BAD_PORTS.includes(port))
}
