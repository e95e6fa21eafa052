import { isIP } from 'node:net'

/** Ports from 1024 up whose protocols HTTP requests could be used against (WHATWG Fetch, "bad ports"). */
const BAD_PORTS = [
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080],
]

/** Which URLs may be posted to. */
export type Limits = {
  /** WEBHOOK_ALLOW_PRIVATE: http, any port and any address as well. */
  allowsPrivate: boolean
  /** Which addresses count as public. */
  isPublic(address: string): boolean
}

/**
 * Returns the URL to post to, or the reason why it is not allowed. core.webhook_url_problem refuses most
 * of these when an endpoint is created. Only this check sees the parsed URL: an address can be written
 * in many ways, and URL normalises them.
 */
export function readTarget(text: string, limits: Limits): { url: URL } | { problem: string } {
  if (!URL.canParse(text)) return { problem: 'the URL cannot be parsed' }
  const url = new URL(text)
  const problem = problemOf(url, limits)
  return problem ? { problem: `the URL ${problem}` } : { url }
}

function problemOf(url: URL, { allowsPrivate, isPublic }: Limits): string | undefined {
  const isHttp = url.protocol === 'http:' && allowsPrivate
  if (!isHttp && url.protocol !== 'https:') return 'is not an https URL'
  if (url.username !== '' || url.password !== '') return 'contains a user name or a password'
  if (allowsPrivate) return
  const address = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(address) !== 0 && !isPublic(address)) return 'has an address that is not public'
  const port = Number(url.port || 443)
  if ((port !== 443 && port < 1024) || BAD_PORTS.includes(port))
    return 'has a port that is not allowed'
}
