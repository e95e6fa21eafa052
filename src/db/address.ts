/** Reads a postgres:// address once for both drivers, which differ in the parameters they know. */
import { readFileSync } from 'node:fs'
import { type ConnectionOptions, checkServerIdentity, getCACertificates } from 'node:tls'
import { isLoopback } from '../loopback.ts'
import { SetupError } from '../setup-error.ts'

export type Address = {
  /** The address without what is said apart here, for postgres.js. */
  url: string
  /** The same for pg, which takes a host that is no part of a URL as a parameter. */
  pgUrl: string
  user: string
  password: string
  database: string
  hosts: string[]
  ports: number[]
  /** What both drivers take as `ssl`. */
  tls: false | ConnectionOptions
}

const DEFAULT_PORT = 5432
const MODES = ['disable', 'require', 'verify-ca', 'verify-full']
const TLS_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'uselibpqcompat']

/** Says what is wrong with an address, without quoting it; null when nothing is. */
export function addressProblem(text: string): string | null {
  const parts = partsOf(text)
  if (!parts) return 'must be a postgres:// URL; write special characters in it as %XX'
  const { parameters } = parts
  const mode = parameters.get('sslmode')
  if (parameters.has('ssl')) return 'takes sslmode, not ssl'
  if (mode !== null && !MODES.includes(mode)) return `sslmode must be one of ${MODES.join(', ')}`
  if (mode === 'verify-ca' && !parameters.has('sslrootcert')) {
    return 'sslmode=verify-ca needs sslrootcert'
  }
  return null
}

/** Reads an address; throws SetupError when it is none, or a file that it names cannot be read. */
export function readAddress(text: string): Address {
  const problem = addressProblem(text)
  const parts = partsOf(text)
  if (problem !== null || !parts) throw new SetupError(`the database's address ${problem}`)
  const { start, url, parameters } = parts
  const socket = parameters.get('host')
  const authorities = socket === null ? parts.authorities : [{ host: socket, port: url.port }]
  const hosts = authorities.map(({ host }) => host || 'localhost')
  const tls = tlsOf(parameters, hosts)
  for (const name of [...TLS_PARAMETERS, 'host']) parameters.delete(name)
  const rest = parameters.size > 0 ? `${start}?${parameters}` : start
  const isInUrl = socket === null && authorities[0]?.host !== ''
  const host = new URLSearchParams({ host: hosts[0] ?? '' })
  const user = parameters.get('user') ?? decodeURIComponent(url.username)
  return {
    url: rest,
    pgUrl: isInUrl ? rest : `${rest}${parameters.size > 0 ? '&' : '?'}${host}`,
    user,
    password: parameters.get('password') ?? decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)) || user,
    hosts,
    ports: authorities.map(({ port }) => Number(port || url.port || DEFAULT_PORT)),
    tls,
  }
}

/** Says where an address leads, without its password. */
export function describeAddress(text: string): string {
  const { database, hosts, ports, user } = readAddress(text)
  const places = hosts.map(
    (host, place) => `${host.includes(':') ? `[${host}]` : host}:${ports[place]}`,
  )
  return `${database} on ${places.join(', ')} as ${user}`
}

/** Of several hosts URLs allow one: the rest are read apart. */
function partsOf(text: string) {
  const [, start = '', scheme = '', names = '', path = '', query = ''] =
    /^((postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?]*)([^?]*))(?:\?(.*))?$/s.exec(text) ?? []
  const [first = '', ...others] = names.split(',')
  const authorities = [first, ...others].map((name) => {
    const [, six, other = '', port = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(name) ?? []
    return { host: decoded(six ?? other) ?? '', port }
  })
  const whole = `${scheme}${first}${path}`
  if (!URL.canParse(whole) || [scheme, names, path].some((part) => decoded(part) === null)) return
  return { start, url: new URL(whole), authorities, parameters: new URLSearchParams(query) }
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/**
 * As libpq has it, but for an address without sslmode: then a server elsewhere must prove who it is, and
 * one on this machine is spoken to in the clear.
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
    // The driver knows which of several hosts it speaks to only while that is a name.
    checkServerIdentity: (_, certificate) => {
      if (mode !== 'verify-full' && root !== 'system') return undefined
      const problems = hosts.map((host) => checkServerIdentity(host, certificate))
      return problems.includes(undefined) ? undefined : problems[0]
    },
  }
}

function fileOf(parameters: URLSearchParams, name: string): string {
  const file = parameters.get(name) ?? ''
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SetupError(`${name}: ${file} cannot be read (${code})`)
  }
}
