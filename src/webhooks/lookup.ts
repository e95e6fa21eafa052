import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { OwnFailure, WebhookFailure } from './failures.ts'

/** So many of each family are tried, lest a name sends us all over the Internet. */
const MAX_ADDRESSES = 4

/**
 * For the other family once one has led to a public address ("resolution delay", RFC 8305, 3): longer than
 * the 50 ms there, as nobody looks on, but not the seconds that a name server takes which is silent on AAAA.
 */
const RESOLUTION_DELAY_MS = 500

/** The name, or addresses of this family at it, are said not to exist. */
const ABSENT = ['ENOTFOUND', 'ENODATA', 'EBADNAME']

/** No name server of ours is there, which is also how a lack of sockets shows, or there is no memory. */
const OURS = ['ECONNREFUSED', 'ENOMEM']

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
  resolutionDelayMs = RESOLUTION_DELAY_MS,
}: {
  servers: readonly string[]
  isPublic(address: string): boolean
  /** For the whole exchange, of which a name server that is silent takes a fifth before the next is asked. */
  timeoutMs: number
  /** Ends what is still being asked. */
  signal: AbortSignal
  resolutionDelayMs?: number
}): LookupFunction {
  const dns = new Resolver({ timeout: Math.ceil(timeoutMs / 5), tries: 2 })
  if (servers.length > 0) dns.setServers(servers)
  signal.addEventListener('abort', () => dns.cancel())

  async function lookup(name: string): Promise<LookupAddress[]> {
    const answers: Answer[] = []
    const enough = Promise.withResolvers<void>()
    let timer: NodeJS.Timeout | undefined

    async function ask(family: 4 | 6): Promise<void> {
      const asked = family === 4 ? dns.resolve4(name) : dns.resolve6(name)
      const answer = await asked.then(
        (addresses): Answer => ({ family, addresses: addresses.filter(isPublic) }),
        (error): Answer => ({ family, addresses: [], code: String(error.code) }),
      )
      answers.push(answer)
      // Until there is a public address all is waited for. What comes too late is not connected to, so a
      // name server that is slow keeps addresses from us, but brings none past the rule.
      if (answer.addresses.length > 0) timer ??= setTimeout(enough.resolve, resolutionDelayMs)
    }

    await Promise.race([Promise.all([ask(4), ask(6)]), enough.promise])
    clearTimeout(timer)
    const found = answers
      .toSorted((one, other) => one.family - other.family)
      .flatMap(({ family, addresses }) =>
        addresses.slice(0, MAX_ADDRESSES).map((address) => ({ address, family })),
      )
    if (found.length === 0) throw failureOf(answers)
    return found
  }

  // All are answered, as is asked for when both families may be tried.
  return (name, _options, callback) => {
    lookup(name).then(
      (addresses) => callback(null, addresses),
      (error) => callback(error, []),
    )
  }
}

type Answer = {
  family: 4 | 6
  /** The public ones. */
  addresses: string[]
  /** Why there are none, public or not. */
  code?: string
}

function failureOf(answers: readonly Answer[]): WebhookFailure | OwnFailure {
  if (answers.some(({ code }) => code === undefined)) {
    return new WebhookFailure('its host name leads to no public address')
  }
  const { code } = answers.find(({ code = '' }) => !ABSENT.includes(code)) ?? {}
  if (code === undefined) return new WebhookFailure('its host name was not found')
  return OURS.includes(code)
    ? new OwnFailure(`no name server can be asked (${code})`)
    : new WebhookFailure(`its host name could not be looked up (${code})`)
}
