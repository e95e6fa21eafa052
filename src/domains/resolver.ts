import { Resolver as NodeResolver } from 'node:dns/promises'
import { hostOf, type RecordType } from './records.ts'

/** Asks public DNS. */
export type Resolver = {
  /**
   * What is published at a name: hosts in lower case without a dot at their end, MX as `priority
   * host`, lowest number first, TXT with its strings joined. Empty when nothing is; throws
   * LookupFailed when nobody could say.
   */
  look(name: string, type: RecordType): Promise<string[]>
  /** Whether nobody is to be asked of this name: the sandbox plays the part of its holder. */
  isSandbox(name: string): boolean
}

/** No answer, or one that says neither what is there nor that nothing is. */
export class LookupFailed extends Error {
  readonly host: string
  readonly type: RecordType
  /** As node:dns names it: ETIMEOUT, ESERVFAIL, EREFUSED, ECONNREFUSED and so on. */
  readonly code: string

  constructor(host: string, type: RecordType, code: string) {
    super(`the ${type} records of ${host} could not be looked up: ${code}`)
    this.host = host
    this.type = type
    this.code = code
  }
}

/** The name, or records of this type at it, are said not to exist. */
const ABSENT = ['ENOTFOUND', 'ENODATA']

/**
 * A resolver of its own, over `servers` (`host[:port]`) or the system's when there are none. A look
 * is over within `timeoutMs`, however many servers are silent.
 */
export function createResolver({
  servers,
  hasSandbox,
  timeoutMs = 6000,
}: {
  servers: readonly string[]
  hasSandbox: boolean
  timeoutMs?: number
}): Resolver {
  // The second try of a server waits twice as long as the first: together they fill the time.
  const dns = new NodeResolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 })
  if (servers.length > 0) dns.setServers(servers)
  return {
    async look(name, type) {
      let timer: NodeJS.Timeout | undefined
      const deadline = new Promise<never>((_, reject) => {
        timer = setTimeout(reject, timeoutMs, new LookupFailed(name, type, 'ETIMEOUT'))
      })
      try {
        const found = await Promise.race([ask[type](dns, name), deadline])
        return found.map(withoutControls)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code && ABSENT.includes(code)) return []
        throw new LookupFailed(name, type, code ?? String(error))
      } finally {
        clearTimeout(timer)
      }
    },
    // RFC 2606 keeps these for tests and examples, so nobody can own one.
    isSandbox: (name) => hasSandbox && /\.(test|example)$/.test(name),
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

/** DNS carries any bytes, but Postgres keeps no NUL, and a terminal obeys others. */
function withoutControls(text: string): string {
  return text.replace(/[^\P{Cc}\t]/gu, '\uFFFD')
}
