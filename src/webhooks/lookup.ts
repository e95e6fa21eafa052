import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { WebhookFailure } from './failures.ts'

/** So many of each family are tried, lest a name sends us all over the Internet. */
const MAX_ADDRESSES = 4

/** The name, or addresses of this family at it, are said not to exist. */
const ABSENT = ['ENOTFOUND', 'ENODATA', 'EBADNAME']

/**
 * How a connection finds the addresses of a name: public ones only, and as it is made to what is
 * answered here and the name is not asked again, no change of the name gets in between. It asks over
 * `servers` (`host[:port]`), or the system's when there are none, in a resolver of its own: the system's
 * call would block a thread for as long as a name server is silent, of which there are four for all.
 */
export function createLookup({
  servers,
  isPublic,
  timeoutMs,
  signal,
}: {
  servers: readonly string[]
  isPublic(address: string): boolean
  /** For the whole exchange, of which a name server that is silent takes a fifth before the next is asked. */
  timeoutMs: number
  /** Ends what is still being asked. */
  signal: AbortSignal
}): LookupFunction {
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 5), tries: 2 })
  if (servers.length > 0) dns.setServers(servers)
  signal.addEventListener('abort', () => dns.cancel())

  async function lookup(name: string): Promise<LookupAddress[]> {
    const answers = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)])
    const found = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (found.flat().length === 0) throw failureOf(answers)
    const [ipv4 = [], ipv6 = []] = found.map((addresses) =>
      addresses.filter(isPublic).slice(0, MAX_ADDRESSES),
    )
    const addresses = [
      ...ipv4.map((address) => ({ address, family: 4 })),
      ...ipv6.map((address) => ({ address, family: 6 })),
    ]
    if (addresses.length === 0) throw new WebhookFailure('its host name leads to no public address')
    return addresses
  }

  // All are answered, as is asked for when both families may be tried.
  return (name, _options, callback) => {
    lookup(name).then(
      (addresses) => callback(null, addresses),
      (error) => callback(error, []),
    )
  }
}

function failureOf(answers: PromiseSettledResult<unknown>[]): WebhookFailure {
  const codes = answers.map((answer) => (answer.status === 'rejected' ? answer.reason.code : ''))
  const code = codes.find((code) => !ABSENT.includes(code))
  return new WebhookFailure(
    code ? `its host name could not be looked up (${code})` : 'its host name was not found',
  )
}
