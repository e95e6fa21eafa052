/** Reads a postgres:// address for both drivers, which know different parameters. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type ConnectionOptions, checkServerIdentity, getCACertificates } from 'node:tls'
import { SetupError } from '../errors.ts'
import { isLoopback } from '../net/loopback.ts'

export type Address = {
  /** The address for postgres.js, without the parameters that the other fields hold. */
  url: string
  /** The same for pg: with the first host only, as a parameter if it cannot stand in a URL. */
  pgUrl: string
  /** The same for libpq: its parameters by name. */
  libpq: Record<string, string>
  user: string
  password: string
  database: string
  hosts: string[]
  ports: number[]
  /** What findHost() requires of a host; null: the only host is used without a check. */
  target: 'read-write' | 'primary' | null
  /** What both drivers take as `ssl`. */
  tls: false | ConnectionOptions
}

const DEFAULT_PORT = 5432
const MODES = ['disable', 'require', 'verify-ca', 'verify-full']
const TLS_FILES = ['sslrootcert', 'sslcert', 'sslkey'] as const
const TLS_PARAMETERS = [...TLS_FILES, 'sslmode', 'uselibpqcompat']
const OWN_PARAMETERS = [...TLS_PARAMETERS, 'host', 'port', 'target_session_attrs']
const MAX_PORT = 65_535

/** Says what is wrong with an address or the files that it names, without quoting it; null when it is valid. */
export function addressProblem(text: string): string | null {
  const parts = partsOf(text)
  if (typeof parts === 'string') return parts
  const files = TLS_FILES.map((name) => fileProblem(parts.parameters, name))
  return files.find((found) => found !== null) ?? null
}

/** Reads an address. Throws SetupError if it is invalid, or a file that it names cannot be read. */
export function readAddress(text: string): Address {
  const parts = partsOf(text)
  if (typeof parts === 'string') throw new SetupError(`the database's address ${parts}`)
  const { whole, url, parameters, hosts, ports, target } = parts
  const tls = tlsOf(parameters, hosts)
  const isInUrl = url.hostname !== '' && !parameters.has('host')
  const hasPort = parameters.has('port')
  const given = Object.fromEntries(parameters)
  for (const name of OWN_PARAMETERS) parameters.delete(name)
  const user = parameters.get('user') ?? decodeURIComponent(url.username)
  const password = parameters.get('password') ?? decodeURIComponent(url.password)
  const database = decodeURIComponent(url.pathname.slice(1)) || user
  const rest = withParameters(whole, parameters)
  if (!isInUrl) parameters.set('host', hosts[0] ?? '')
  if (hasPort) parameters.set('port', `${ports[0]}`)
  const pgUrl = withParameters(whole, parameters)
  const libpq = {
    ...given,
    host: hosts.join(','),
    port: ports.join(','),
    dbname: database,
    user,
    ...(password !== '' && { password }),
  }
  return { url: rest, pgUrl, libpq, user, password, database, hosts, ports, target, tls }
}

/** Returns database, hosts and user of an address as a text, without the password. */
export function describeAddress(text: string): string {
  const { database, hosts, ports, user } = readAddress(text)
  const places = hosts.map((host, n) => `${host.includes(':') ? `[${host}]` : host}:${ports[n]}`)
  return `${database} on ${places.join(', ')} as ${user}`
}

function withParameters(url: string, parameters: URLSearchParams): string {
  return parameters.size > 0 ? `${url}?${parameters}` : url
}

/**
 * Returns the parts of an address, or what is wrong with it. A URL has one host, so further hosts are read
 * separately, also from the parameters host and port, as libpq does.
 */
function partsOf(text: string) {
  const invalid = 'must be a postgres:// URL; write special characters in it as %XX'
  const [, scheme = '', names = '', path = '', query = ''] =
    /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?]*)([^?]*)(?:\?(.*))?$/s.exec(text) ?? []
  const named = names.split(',')
  const whole = `${scheme}${named[0]}${path}`
  const url = URL.parse(whole)
  if (!url || [scheme, names, path].some((part) => decoded(part) === null)) return invalid
  const authorities = named.map(authorityOf)
  if (!authorities.every((authority) => authority !== null)) return invalid
  const parameters = new URLSearchParams(query)
  const hosts = parameters.get('host')?.split(',') ?? authorities.map(({ host }) => host)
  const ports = parameters.get('port')?.split(',') ?? authorities.map(({ port }) => port)
  if (ports.length !== 1 && ports.length !== hosts.length) {
    return 'port must be one port, or one for each host'
  }
  if (ports.some((port) => port !== '' && !(Number(port) > 0 && Number(port) <= MAX_PORT))) {
    return `takes ports from 1 to ${MAX_PORT}`
  }
  const target = targetOf(parameters, hosts.length)
  if (target === undefined) {
    return 'target_session_attrs must be read-write or primary: Postgram writes to its database'
  }
  const mode = parameters.get('sslmode')
  if (parameters.has('ssl')) return 'takes sslmode, not ssl'
  if (mode !== null && !MODES.includes(mode)) return `sslmode must be one of ${MODES.join(', ')}`
  if (mode === 'verify-ca' && !parameters.has('sslrootcert')) {
    return 'sslmode=verify-ca needs sslrootcert'
  }
  return {
    whole,
    url,
    parameters,
    target,
    hosts: hosts.map((host) => host || 'localhost'),
    ports: hosts.map((_, n) => Number(ports[ports.length === 1 ? 0 : n] || DEFAULT_PORT)),
  }
}

/** Returns a host and its port, '' if there is none; null if the text is invalid. */
function authorityOf(text: string): { host: string; port: string } | null {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(text)
  if (!match) return null
  const [, six, other = '', port = ''] = match
  return { host: decoded(six ?? other) ?? '', port }
}

/** Returns what hosts must be: several are a primary and its standbys. Undefined for a target that is not supported. */
function targetOf(parameters: URLSearchParams, hosts: number): Address['target'] | undefined {
  const target = parameters.get('target_session_attrs')
  if (target === 'read-write' || target === 'primary') return target
  if (target === null) return hosts > 1 ? 'read-write' : null
  return target === 'any' && hosts === 1 ? null : undefined
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/**
 * Returns the TLS options, as libpq reads them, with one difference: without sslmode, the certificate of a server on
 * another machine is verified in full, and connections on this machine have no TLS.
 */
function tlsOf(parameters: URLSearchParams, hosts: string[]): false | ConnectionOptions {
  const root = parameters.get('sslrootcert')
  const isElsewhere = hosts.some((host) => !host.startsWith('/') && !isLoopback(host))
  const mode =
    parameters.get('sslmode') ?? (isElsewhere || root !== null ? 'verify-full' : 'disable')
  if (mode === 'disable') return false
  const own = {
    ...(parameters.has('sslcert') && { cert: fileOf(parameters, 'sslcert') }),
    ...(parameters.has('sslkey') && { key: fileOf(parameters, 'sslkey') }),
  }
  if (root === null && mode === 'require') return { ...own, rejectUnauthorized: false }
  const ca =
    root === 'system'
      ? [...getCACertificates('default'), ...getCACertificates('system')]
      : root === null
        ? undefined
        : fileOf(parameters, 'sslrootcert')
  return {
    ...own,
    ...(ca && { ca }),
    // With several hosts, the driver does not know by which name it connected, if that host is an IP address.
    checkServerIdentity: (_, certificate) => {
      if (mode !== 'verify-full' && root !== 'system') return undefined
      const problems = hosts.map((host) => checkServerIdentity(host, certificate))
      return problems.includes(undefined) ? undefined : problems[0]
    },
  }
}

/** Says what is wrong with a TLS file; null when it is valid. A driver would throw where nothing catches it. */
function fileProblem(parameters: URLSearchParams, name: string): string | null {
  const file = parameters.get(name)
  if (file === null || (name === 'sslrootcert' && file === 'system')) return null
  try {
    const text = fileOf(parameters, name)
    if (name === 'sslkey') createPrivateKey(text)
    else new X509Certificate(text)
    return null
  } catch (error) {
    if (error instanceof SetupError) return error.message
    return `${name} ${file} holds no ${name === 'sslkey' ? 'private key' : 'certificate'}`
  }
}

function fileOf(parameters: URLSearchParams, name: string): string {
  const file = parameters.get(name) ?? ''
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SetupError(`${name} ${file} cannot be read (${code})`)
  }
}
