import type { Socket } from 'node:net'
import pg from 'pg'
import postgres from 'postgres'
import { parse as parseArray } from 'postgres-array'
import { readAddress } from './address.ts'
import { findHost, openSocket, socketMaker } from './hosts.ts'

export type Sql = postgres.Sql

/** The role of the service, which may execute the functions of schema api. */
export const SERVICE_ROLE = 'postgram_service'

export type ClientOptions = {
  /** The role that its connections take on; the login's own when absent. */
  role?: typeof SERVICE_ROLE | undefined
  /** Settings of POSTGRAM_NOW for core.now(). */
  clock?: ClockSettings | undefined
  max?: number
  /** For people in `npm run sql`: columns by their names in SQL, and tables of public found. */
  hasSqlNames?: boolean
  applicationName?: string
  /** Transactions may not write, unless they ask to. */
  isReadOnly?: boolean
  /** The driver never closes a connection for its age: it holds a lock, or belongs to a Pool. */
  isKept?: boolean
  /** Further settings for its connections, such as statement_timeout. */
  settings?: Record<string, string>
  /** Opens the socket of a connection, in place of openSocket(). */
  socket?: () => Promise<Socket>
  /** Called when a connection has closed. */
  onClose?: () => void
}

/** One of the two settings that core.now() reads; both absent, time is the server's. */
export type ClockSettings = { 'postgram.now'?: string; 'postgram.shift'?: string }

/**
 * How the server plans for the service: its statements are short, reach everything by its key and are
 * the same each time, so planning them anew or compiling them would cost more than running them.
 */
export const planSettings = { plan_cache_mode: 'force_generic_plan', jit: 'off' }

/**
 * Whatever a statement leaves unqualified is Postgres's own; objects in public or temporary ones never take
 * its place. Ours are always named with their schema.
 */
export const SEARCH_PATH = 'pg_catalog,pg_temp'

/** People may leave names in public unqualified; Postgres looks in pg_catalog before. */
const PEOPLES_SEARCH_PATH = 'public,pg_temp'

/** For the queues' own statements, which are short. */
export const queueLimits = {
  statement_timeout: '60s',
  idle_in_transaction_session_timeout: '60s',
}

const keepalives = {
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
}

const RECONNECT_AFTER_SECONDS = 0.2

/**
 * The one type of arrays that functions of schema api answer with. The library would ask each new
 * connection for all types there are, and a connection that is lost meanwhile would end the process:
 * nobody waits for that question's answer.
 */
const TEXT_ARRAY = 1009
const arrayTypes = {
  fetch_types: false,
  types: {
    texts: {
      to: TEXT_ARRAY,
      from: [TEXT_ARRAY],
      serialize: (value: string) => value,
      parse: (text: string) => parseArray(text),
    },
  },
}

/**
 * The address with settings, as command-line options for the server: the queues' own driver takes them in
 * no other way that those of the address itself would not replace. Where both set the same, these hold.
 */
export function withSettings(url: string, values: Record<string, string>): string {
  if (Object.keys(values).length === 0) return url
  // Not as a URL, which an address of several hosts is not.
  const [address, query = ''] = url.split(/\?(.*)/s, 2)
  const parameters = new URLSearchParams(query)
  const given = parameters.get('options')
  const options = Object.entries(values).map(([name, value]) => `-c ${name}=${value}`)
  // The server takes the last of two.
  parameters.set('options', [...(given ? [given] : []), ...options].join(' '))
  return `${address}?${parameters}`
}

/** What pg, the queues' own driver, is given to connect with: the same server and TLS as connect() has. */
export function pgOptions(url: string, settings: Record<string, string> = {}) {
  const { pgUrl, tls, target } = readAddress(url)
  return {
    connectionString: withSettings(pgUrl, { search_path: SEARCH_PATH, ...settings }),
    ssl: tls,
    // Its pool, and so pg-boss's, makes connections with this.
    ...(target !== null && { Client: searchingClient(url) }),
  }
}

/** pg's client, for an address whose host has to be found before each connection. */
function searchingClient(url: string): typeof pg.Client {
  type Callback = ((error: Error) => void) | ((error: null, client: pg.Client) => void)
  return class extends pg.Client {
    override connect(): Promise<pg.Client>
    override connect(callback: Callback): void
    override connect(callback?: Callback): Promise<pg.Client> | undefined {
      const connecting = findHost(url).then((host) => {
        Object.assign(this, host)
        return super.connect()
      })
      if (!callback) return connecting
      const done = callback as (error: Error | null, client?: pg.Client) => void
      connecting.then(() => done(null, this), done)
    }
  }
}

/** A pool of connections to the database at `url`. */
export function connect(url: string, options: ClientOptions = {}): Sql {
  const { url: address, hosts, ports, tls } = readAddress(url)
  return postgres(address, {
    // As a list of one: the driver splits a text at its commas and colons, and has its own way with several.
    host: hosts.slice(0, 1) as unknown as string,
    port: ports.slice(0, 1) as unknown as number,
    ssl: tls as boolean | object,
    max: options.max ?? 10,
    onnotice: () => undefined,
    connect_timeout: 5,
    // The library would wait for up to 20 seconds before it tries again, and requests with it.
    backoff: () => RECONNECT_AFTER_SECONDS,
    ...(options.role || options.socket ? arrayTypes : {}),
    // It is not in its types.
    ...({ socket: options.socket ?? socketMaker(() => openSocket(url)) } as object),
    ...(options.onClose ? { onclose: options.onClose } : {}),
    ...(options.isKept ? { max_lifetime: null, idle_timeout: 0 } : {}),
    connection: {
      application_name: options.applicationName ?? 'postgram',
      search_path: options.hasSqlNames ? PEOPLES_SEARCH_PATH : SEARCH_PATH,
      ...planSettings,
      // A machine that is lost says no goodbye; the server would hold its lock for two hours.
      ...(options.isKept ? keepalives : {}),
      ...options.clock,
      ...options.settings,
      ...(options.role ? { role: options.role } : {}),
      ...(options.isReadOnly ? { default_transaction_read_only: 'on' } : {}),
    } as Record<string, string>,
    // Only columns: transforming values would rename the keys inside callers' JSON.
    ...(options.hasSqlNames ? {} : { transform: { column: { from: postgres.toCamel } } }),
  })
}
