/**
 * Finds the host of an address that takes writes, for both drivers: pg knows one host only, and postgres.js
 * tries several for ever while none can be reached.
 */
import { once } from 'node:events'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import postgres from 'postgres'
import { type Address, readAddress } from './address.ts'
import { messageOf, NoAnswer } from './connection-errors.ts'
import { readServerState, STANDBY } from './read-only.ts'

export type Host = { host: string; port: number }

const CONNECTS_WITHIN_MS = 5000
const LEAVES_WITHIN_MS = 1000

/** A host may log a client in and then say nothing. Nobody else bounds the question that follows. */
const SEARCHES_WITHIN_MS = 2 * CONNECTS_WITHIN_MS

/** Of the protocol: a request to log in, an error, yes or no to TLS, another version of the protocol. */
const FIRST_BYTES = /[RESNv]/

/** What a server that wants TLS answers before its first message. */
const TLS_ANSWER_BYTES = 1

const searches = new Map<string, Promise<Host>>()

/**
 * The host to connect to: the only one, or, where the address asks for it, the first that says it takes
 * writes. All hosts are asked at the same time, so one that is gone delays nothing. Searches for the same
 * address that overlap share one result. A search takes at most `withinMs`; then it fails.
 */
export function findHost(url: string, withinMs = SEARCHES_WITHIN_MS): Promise<Host> {
  const address = readAddress(url)
  const [first] = hostsOf(address)
  if (first && address.target === null) return Promise.resolve(first)
  const search =
    searches.get(url) ?? searchIn(address, withinMs).finally(() => searches.delete(url))
  searches.set(url, search)
  return search
}

/** A connected socket to the host that findHost() returns; `signal` destroys it. */
export async function openSocket(url: string, signal?: AbortSignal): Promise<Socket> {
  return dial(await findHost(url), signal)
}

/**
 * The sockets of a client of postgres.js, which learns of a failure from a socket only. It would connect
 * again for ever to a server that accepts and closes, as a proxy does that has none behind it.
 */
export function socketMaker(open: () => Promise<Socket>): () => Promise<Duplex> {
  let last: Socket | undefined
  return async () => {
    const wasClosed = last?.closed && last.bytesRead <= TLS_ANSWER_BYTES
    last = undefined
    try {
      if (wasClosed) throw coded('ECONNRESET', 'the connection is accepted and closed')
      last = await open()
      last.once('data', refuseOthers)
      return last
    } catch (error) {
      return new Duplex({ read() {}, write: (_chunk, _encoding, done) => done(error as Error) })
    }
  }
}

/** Anything else than a server of Postgres would be connected to for ever as well. */
function refuseOthers(this: Socket, data: Buffer): void {
  if (!FIRST_BYTES.test(data.toString('latin1', 0, 1))) {
    this.destroy(coded('EPROTO', 'something other than Postgres listens there'))
  }
}

async function searchIn(address: Address, withinMs: number): Promise<Host> {
  const over = new AbortController()
  const hosts = hostsOf(address)
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new NoAnswer(withinMs)), withinMs)
  try {
    const answers = hosts.map((host) => Promise.race([ask(address, host, over.signal), late]))
    return await Promise.any(answers)
  } catch (error) {
    const { errors } = error as AggregateError
    if (errors.length === 1) throw errors[0]
    const codes = new Set(errors.map(({ code }) => code))
    const problems = errors.map((problem, n) => `${nameOf(hosts[n])}: ${messageOf(problem)}`)
    throw coded(
      codes.size === 1 ? errors[0].code : 'ENOHOST',
      `no host takes writes; ${problems.join('; ')}`,
    )
  } finally {
    clearTimeout(timer)
    // By then, healthy hosts have closed their connections.
    setTimeout(() => over.abort(), LEAVES_WITHIN_MS).unref()
  }
}

/** Resolves to the host when it takes writes. */
async function ask(address: Address, host: Host, over: AbortSignal): Promise<Host> {
  const sql = postgres(address.url, {
    host: [host.host] as unknown as string,
    port: [host.port] as unknown as number,
    ssl: address.tls as boolean | object,
    max: 1,
    fetch_types: false,
    onnotice: () => undefined,
    connect_timeout: CONNECTS_WITHIN_MS / 1000,
    ...({ socket: socketMaker(() => dial(host, over)) } as object),
    connection: { application_name: 'postgram' },
  })
  try {
    const { isStandby, isReadOnly } = await readServerState(sql)
    if (isStandby) throw coded(STANDBY, 'the server is a standby')
    if (isReadOnly && address.target === 'read-write') {
      throw coded(STANDBY, 'the server is read-only')
    }
    return host
  } finally {
    void sql.end({ timeout: 0 })
  }
}

async function dial(host: Host, signal?: AbortSignal): Promise<Socket> {
  // The driver checks a certificate against `host`.
  const socket = Object.assign(new Socket(signal ? { signal } : {}), { host: host.host })
  const limit = AbortSignal.timeout(CONNECTS_WITHIN_MS)
  try {
    if (host.host.startsWith('/')) socket.connect(`${host.host}/.s.PGSQL.${host.port}`)
    else socket.connect(host.port, host.host)
    await once(socket, 'connect', { signal: limit })
    return socket
  } catch (error) {
    socket.destroy()
    throw limit.aborted ? coded('ETIMEDOUT', `connect ETIMEDOUT ${nameOf(host)}`) : error
  }
}

function hostsOf({ hosts, ports }: Address): Host[] {
  return hosts.map((host, n) => ({ host, port: ports[n] ?? 0 }))
}

function nameOf(host: Host | undefined): string {
  return `${host?.host}:${host?.port}`
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
