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
  /** For `npm run sql`: columns keep their names in SQL, and schema public is in the search path. */
  hasSqlNames?: boolean
  applicationName?: string
  /** Transactions are read-only by default. */
  isReadOnly?: boolean
  /** The driver never closes the connection for its age: it holds a lock, or a Pool decides. */
  isKept?: boolean
  /** Further settings for its connections, such as statement_timeout. */
  settings?: Record<string, string>
  /** Opens the socket of a connection, instead of openSocket(). */
  socket?: () => Promise<Socket>
  /** Called when a connection has closed. */
  onClose?: () => void
}

/** The settings that core.now() reads, one of them at most; without them it returns the server's time. */
export type ClockSettings = { 'postgram.now'?: string; 'postgram.shift'?: string }

/**
 * Planner settings of the service's connections. Its statements are short, reach rows by their keys and are always
 * the same, so planning them again or compiling them would cost more than running them.
 */
export const planSettings = { plan_cache_mode: 'force_generic_plan', jit: 'off' }

/**
 * Unqualified names are those of Postgres; objects in public, or temporary objects, never replace them. Statements
 * name our objects with their schema.
 */
export const SEARCH_PATH = 'pg_catalog,pg_temp'

/** For `npm run sql`: Postgres searches pg_catalog before these. */
const PEOPLES_SEARCH_PATH = 'public,pg_temp'

/** For the statements of graphile-worker and pg-boss, which are short. */
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
 * The only array type that functions of schema api return. By default the driver queries all types on each new
 * connection; if that connection is lost, nothing catches the error and the process ends.
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
 * Returns the address with settings as command-line options for the server: only so can pg, the driver of the
 * queues, combine them with the options of the address. These settings override those of the address.
 */
export function withSettings(url: string, values: Record<string, string>): string {
  if (Object.keys(values).length === 0) return url
  // Not parsed as a URL: an address with several hosts is none.
  const [address, query = ''] = url.split(/\?(.*)/s, 2)
  const parameters = new URLSearchParams(query)
  const given = parameters.get('options')
  const options = Object.entries(values).map(([name, value]) => `-c ${name}=${value}`)
  // The server uses the last of two values.
  parameters.set('options', [...(given ? [given] : []), ...options].join(' '))
  return `${address}?${parameters}`
}

/** Returns the options with which pg, the driver of the queues, connects to the same server as connect(). */
export function pgOptions(url: string, settings: Record<string, string> = {}) {
  const { pgUrl, tls, target } = readAddress(url)
  return {
    connectionString: withSettings(pgUrl, { search_path: SEARCH_PATH, ...settings }),
    ssl: tls,
    // pg's pool creates its connections with this class.
    ...(target !== null && { Client: searchingClient(url) }),
  }
}

/** Returns pg's Client with a search for the host that takes writes before each connection. */
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
  const { url: address, hosts, ports } = readAddress(url)
  return postgres(address, {
    // A list of one: the driver would split a text at its commas and colons.
    host: hosts.slice(0, 1) as unknown as string,
    port: ports.slice(0, 1) as unknown as number,
    // openSocket() starts TLS.
    ssl: false,
    max: options.max ?? 10,
    onnotice: () => undefined,
    connect_timeout: 5,
    // By default the driver, and with it requests, would wait for up to 20 s before it reconnects.
    backoff: () => RECONNECT_AFTER_SECONDS,
    ...(options.role || options.socket ? arrayTypes : {}),
    // Missing in the driver's types.
    ...({ socket: options.socket ?? socketMaker(() => openSocket(url)) } as object),
    ...(options.onClose ? { onclose: options.onClose } : {}),
    ...(options.isKept ? { max_lifetime: null, idle_timeout: 0 } : {}),
    connection: {
      application_name: options.applicationName ?? 'postgram',
      search_path: options.hasSqlNames ? PEOPLES_SEARCH_PATH : SEARCH_PATH,
      ...planSettings,
      // If this machine is lost, the server would hold its locks for two hours without keepalives.
      ...(options.isKept ? keepalives : {}),
      ...options.clock,
      ...options.settings,
      ...(options.role ? { role: options.role } : {}),
      ...(options.isReadOnly ? { default_transaction_read_only: 'on' } : {}),
    } as Record<string, string>,
    // Only columns: a transformation of values would rename the keys in callers' JSON.
    ...(options.hasSqlNames ? {} : { transform: { column: { from: postgres.toCamel } } }),
  })
}
