import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { LocalFailure, WebhookFailure } from './failures.ts'

/** At most so many addresses of each family are tried, so that one name cannot cause hundreds of connections. */
const MAX_ADDRESSES = 4

/**
 * How long to wait for the other address family once one has a public address ("Resolution Delay",
 * RFC 8305 section 3). Longer than the 50 ms of the RFC, because no person waits for a delivery; far shorter
 * than the seconds lost to a name server that does not respond to AAAA.
 */
const RESOLUTION_DELAY_MS = 500

/** The name does not exist, or has no address of this family. */
const ABSENT = ['ENOTFOUND', 'ENODATA', 'EBADNAME']

/** Our name server is down, no socket is left (which shows as ECONNREFUSED too), or no memory. */
const LOCAL = ['ECONNREFUSED', 'ENOMEM']

/**
 * Returns the lookup of a connection: it resolves a name to its public addresses only. The connection is
 * made to exactly these addresses, so a change of DNS in between has no effect. It asks `servers`
 * (`host[:port]`; empty: the system's) through its own resolver: getaddrinfo would block one of the four
 * threads of the pool for as long as a name server does not respond.
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
  /** For the whole exchange. A name server gets a fifth of it before the next one is asked. */
  timeoutMs: number
  /** Cancels open queries. */
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
      const query = family === 4 ? dns.resolve4(name) : dns.resolve6(name)
      const answer = await query.then(
        (addresses): Answer => ({ family, addresses: addresses.filter(isPublic) }),
        (error): Answer => ({ family, addresses: [], code: String(error.code) }),
      )
      answers.push(answer)
      // Until a public address is known, both families are awaited. A late answer is ignored: a slow name
      // server can hide addresses, but cannot bring in one that is not public.
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

  // All addresses are returned, as `autoSelectFamily` tries several.
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

function failureOf(answers: readonly Answer[]): WebhookFailure | LocalFailure {
  if (answers.some(({ code }) => code === undefined)) {
    return new WebhookFailure('the host name has no public address')
  }
  const { code } = answers.find(({ code = '' }) => !ABSENT.includes(code)) ?? {}
  if (code === undefined) return new WebhookFailure('the host name was not found')
  return LOCAL.includes(code)
    ? new LocalFailure(`no name server can be reached (${code})`)
    : new WebhookFailure(`the host name could not be looked up (${code})`)
}
