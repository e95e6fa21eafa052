/**
 * Finds the host of an address that takes writes, for both drivers: pg supports one host only, and postgres.js
 * tries several without end while none can be reached.
 */
import { once } from 'node:events'
import { isIP, Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import postgres from 'postgres'
import { settledWithin } from '../time/index.ts'
import { type Address, readAddress } from './address.ts'
import { coded, codeOf, messageOf, NoResponse } from './connection-errors.ts'
import { readServerState, STANDBY } from './read-only.ts'

export type Host = { host: string; port: number }

const CONNECTS_WITHIN_MS = 5000
const CLOSES_WITHIN_MS = 1000

/** A host may accept a login and then not respond. No other limit bounds the query that follows. */
const SEARCHES_WITHIN_MS = 2 * CONNECTS_WITHIN_MS

/** How often a search asks a standby again while another host does not respond: the standby may be promoted. */
const RECHECK_AFTER_MS = 500

/** The first byte of a Postgres server: authentication, error, yes or no to TLS, protocol version. */
const FIRST_BYTES = /[RESNv]/
const NOT_POSTGRES = 'the server is not Postgres'

/** The message SSLRequest. */
const TLS_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

const searches = new Map<string, Promise<Host>>()

/**
 * Returns the host to connect to: the only one, or, if the address has a target, the first that takes writes. All
 * hosts are queried at the same time, so a host that is down delays nothing. Simultaneous searches for one address
 * share their result. Throws after `withinMs`.
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

/** Returns a connected socket to the host that findHost() returns. */
export async function openSocket(url: string, signal?: AbortSignal): Promise<Socket> {
  return dial(await findHost(url), readAddress(url).tls, signal)
}

/**
 * Returns the function that opens sockets for a client of postgres.js. An error reaches the client only through a
 * socket. Without this, the client would reconnect without end to a proxy that accepts connections and closes them.
 */
export function socketMaker(open: () => Promise<Socket>): () => Promise<Duplex> {
  let last: Socket | undefined
  return async () => {
    const wasClosed = last?.closed && last.bytesRead === 0
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

/** Closes the connection to a server that is not Postgres, to which the client would also reconnect without end. */
function refuseOthers(this: Socket, data: Buffer): void {
  if (!FIRST_BYTES.test(data.toString('latin1', 0, 1))) {
    this.destroy(coded('EPROTO', NOT_POSTGRES))
  }
}

async function searchIn(address: Address, withinMs: number): Promise<Host> {
  const over = new AbortController()
  const hosts = hostsOf(address)
  const responded = new Set<Host>()
  let isSettled = false

  async function untilWritable(host: Host): Promise<Host> {
    let problem: unknown
    for (;;) {
      try {
        return await settledWithin(withinMs, checkHost(address, host, over.signal), () => {
          throw new NoResponse(withinMs)
        })
      } catch (error) {
        problem ??= error
      }
      responded.add(host)
      const isLast = isSettled || responded.size === hosts.length
      if (isLast || codeOf(problem) !== STANDBY) throw problem
      await pause(RECHECK_AFTER_MS, undefined, { ref: false })
    }
  }

  try {
    return await Promise.any(hosts.map(untilWritable))
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
    isSettled = true
    // By then, the connections to healthy hosts are closed.
    setTimeout(() => over.abort(), CLOSES_WITHIN_MS).unref()
  }
}

/** Returns the host if it takes writes; throws otherwise. */
async function checkHost(address: Address, host: Host, over: AbortSignal): Promise<Host> {
  const sql = postgres(address.url, {
    host: [host.host] as unknown as string,
    port: [host.port] as unknown as number,
    // dial() starts TLS.
    ssl: false,
    max: 1,
    fetch_types: false,
    onnotice: () => undefined,
    connect_timeout: CONNECTS_WITHIN_MS / 1000,
    ...({ socket: socketMaker(() => dial(host, address.tls, over)) } as object),
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

/** Returns a connected socket, with TLS if the address has it; `signal` destroys it. */
async function dial(host: Host, tls: Address['tls'], signal?: AbortSignal): Promise<Socket> {
  const socket = new Socket(signal ? { signal } : {})
  const limit = AbortSignal.timeout(CONNECTS_WITHIN_MS)
  try {
    if (host.host.startsWith('/')) socket.connect(`${host.host}/.s.PGSQL.${host.port}`)
    else socket.connect(host.port, host.host)
    await once(socket, 'connect', { signal: limit })
    return tls ? await startTls(socket, host, { ...tls }, limit) : socket
  } catch (error) {
    socket.destroy()
    throw limit.aborted ? coded('ETIMEDOUT', `connect ETIMEDOUT ${nameOf(host)}`) : error
  }
}

/**
 * Starts TLS on a connected socket, so that the socket ignores errors after it has closed: postgres.js then removes all
 * listeners of a socket, and the error of a write that fails later would end the process.
 */
async function startTls(
  socket: Socket,
  { host }: Host,
  options: ConnectionOptions,
  limit: AbortSignal,
): Promise<Socket> {
  const closed = once(socket, 'close', { signal: limit }).then(() => {
    throw coded('ECONNRESET', 'the server closed the connection')
  })
  closed.catch(() => undefined)
  socket.write(TLS_REQUEST)
  const [response] = await Promise.race([once(socket, 'data', { signal: limit }), closed])
  const text: string = response.toString('latin1')
  if (!FIRST_BYTES.test(text.slice(0, 1))) throw coded('EPROTO', NOT_POSTGRES)
  // More bytes than one were not sent over TLS.
  if (text !== 'S') throw coded('ECONNRESET', 'the server offers no TLS connection')
  const secure = connectTls({ ...options, socket, ...(isIP(host) === 0 && { servername: host }) })
  const removeAll = secure.removeAllListeners.bind(secure)
  const ignoreErrors = () => secure.on('error', () => undefined)
  secure.removeAllListeners = (...names) => {
    removeAll(...names)
    return ignoreErrors()
  }
  ignoreErrors()
  await Promise.race([once(secure, 'secureConnect', { signal: limit }), closed])
  return secure
}

function hostsOf({ hosts, ports }: Address): Host[] {
  return hosts.map((host, n) => ({ host, port: ports[n] ?? 0 }))
}

function nameOf(host: Host | undefined): string {
  return `${host?.host}:${host?.port}`
}
