import type { Socket } from 'node:net'
import postgres from 'postgres'
import { parse as parseArray } from 'postgres-array'
import { readAddress } from './address.ts'

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
  /** Makes the socket of a connection; the driver's own when absent. */
  socket?: (target: Target) => Promise<Socket>
  /** Called when a connection has closed. */
  onClose?: () => void
}

/** Where to connect to, as the driver has read it from the address. */
export type Target = { host: string[]; port: number[]; path: string | false }

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
  const { pgUrl, tls } = readAddress(url)
  return {
    connectionString: withSettings(pgUrl, { search_path: SEARCH_PATH, ...settings }),
    ssl: tls,
  }
}

/** A pool of connections to the database at `url`. */
export function connect(url: string, options: ClientOptions = {}): Sql {
  const { url: address, hosts, ports, tls } = readAddress(url)
  const [host = ''] = hosts
  return postgres(address, {
    // Lists, which its types do not know: it would take an IPv6 address apart at its colons.
    host: hosts as unknown as string,
    port: ports as unknown as number,
    ...(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${ports[0]}` } : {}),
    ssl: tls as boolean | object,
    max: options.max ?? 10,
    onnotice: () => undefined,
    connect_timeout: 5,
    // The library would wait for up to 20 seconds before it tries again, and requests with it.
    backoff: () => RECONNECT_AFTER_SECONDS,
    ...(options.role || options.socket ? arrayTypes : {}),
    // `socket` is not in its types.
    ...(options.socket ? ({ socket: options.socket } as object) : {}),
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
