import { Resolver as NodeResolver } from 'node:dns/promises'
import { settledWithin } from '../time/index.ts'
import { hostOf, type RecordType } from './records.ts'

/** Looks up records in DNS. */
export type Resolver = ReturnType<typeof createResolver>

/** No response, or one that neither has records nor says that there are none. */
export class LookupFailed extends Error {
  /** `code` is one of node:dns: ETIMEOUT, ESERVFAIL, EREFUSED, ECONNREFUSED and so on. */
  constructor(host: string, type: RecordType, code: string) {
    super(`the ${type} records of ${host} could not be looked up: ${code}`)
  }
}

/** The response says that the name, or its records of this type, do not exist. */
const ABSENT = ['ENOTFOUND', 'ENODATA']

/**
 * Creates a resolver that asks `servers` (`host[:port]`), or those of the system if there are none. A lookup
 * takes at most `timeoutMs`, however many servers do not respond.
 */
export function createResolver({
  servers,
  hasSandbox,
  timeoutMs = 6000,
}: {
  servers: readonly string[]
  hasSandbox: boolean
  timeoutMs?: number
}) {
  // The second try waits twice as long as the first; together they take `timeoutMs`.
  const dns = new NodeResolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 })
  if (servers.length > 0) dns.setServers(servers)
  return {
    /**
     * Returns the records of a name: hosts in lower case without a final dot, MX as `preference host` with
     * the lowest first, TXT with its strings joined. Empty if there are none; throws LookupFailed if
     * the lookup fails.
     */
    async look(name: string, type: RecordType): Promise<string[]> {
      const asking = ask[type](dns, name).catch(({ code = 'EUNKNOWN' }: NodeJS.ErrnoException) => {
        if (ABSENT.includes(code)) return []
        throw new LookupFailed(name, type, code)
      })
      const found = await settledWithin(timeoutMs, asking, () => {
        throw new LookupFailed(name, type, 'ETIMEOUT')
      })
      // Postgres cannot store NUL, and a terminal executes other control characters.
      return found.map((text) => text.replace(/[^\P{Cc}\t]/gu, '\uFFFD'))
    },
    /** Whether the sandbox simulates the records of this name. RFC 2606 reserves them, so nobody can own one. */
    isSandbox: (name: string) => hasSandbox && /\.(test|example)$/.test(name),
  }
}

const ask: Record<RecordType, (dns: NodeResolver, name: string) => Promise<string[]>> = {
  CNAME: async (dns, name) => (await dns.resolveCname(name)).map(hostOf),
  MX: async (dns, name) => {
    const exchanges = await dns.resolveMx(name)
    return exchanges
      .sort((one, other) => one.priority - other.priority)
      .map(({ priority, exchange }) => `${priority} ${hostOf(exchange)}`)
  },
  TXT: async (dns, name) => (await dns.resolveTxt(name)).map((strings) => strings.join('')),
}
