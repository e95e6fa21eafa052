import { isIP } from 'node:net'
import type { SMTPPoolOptions } from 'nodemailer'
import * as v from 'valibot'
import { isLoopback } from '../../net/loopback.ts'

/** The content of SMTP_URL. */
export type Relay = {
  connection: SMTPPoolOptions
  /** The relay's public name, for the MX and SPF records of domains. */
  publicHost: string
}

const HOST_NAME = /^(?=.{1,253}$)(?:(?!-)[a-z0-9-]{1,63}\.)*(?!-)[a-z0-9-]{1,63}$/
// Excludes IPv4 addresses and names that only resolve locally.
const PUBLIC_END = /\.(?!(?:\d+|localhost|local|internal)$)[a-z0-9-]+$/

/** This port uses implicit TLS (RFC 8314 3.3), whatever the scheme: without TLS a relay sends nothing. */
const IMPLICIT_TLS_PORT = '465'

const flag = v.pipe(
  v.picklist(['true', 'false']),
  v.transform((text) => text === 'true'),
)

const parameters = v.strictObject({
  /** Whether to require STARTTLS; defaults to true if a password is sent to another machine. */
  requireTLS: v.optional(flag),
  /** false accepts a self-signed certificate. */
  'tls.rejectUnauthorized': v.optional(flag, 'true'),
  /** The default is within the limits of most relays. */
  maxConnections: v.optional(
    v.pipe(v.string(), v.regex(/^[1-9]\d{0,2}$/), v.transform(Number)),
    '10',
  ),
  /** The name in the EHLO command. */
  name: v.optional(v.pipe(v.string(), v.toLowerCase(), v.check(isPublicName))),
})

/**
 * Reads `smtp[s]://[user:password@]host[:port][?parameters]`. Problems do not quote it, because it contains a
 * password.
 */
export function readRelay(text: string): Relay | { problem: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const host = url?.hostname.replace(/^\[|\]$/g, '').toLowerCase() ?? ''
  const auth = url && authOf(url)
  // A path or fragment is most likely a part of the password that needs escaping.
  const hasOnlyHost = /^\/?$/.test(url?.pathname ?? '') && !url?.hash
  if (!url || !hasOnlyHost || !auth || !/^smtps?:$/.test(url.protocol) || !isHost(host)) {
    return { problem: 'must be an smtp:// or smtps:// URL; write special characters as %XX' }
  }
  const given = v.safeParse(parameters, Object.fromEntries(url.searchParams))
  if (!given.success) {
    return { problem: `accepts only the parameters ${Object.keys(parameters.entries).join(', ')}` }
  }
  const { name, maxConnections, ...tls } = given.output
  const requireTLS = tls.requireTLS ?? (auth.user !== '' && !isLoopback(host))
  // An MX record needs a public name (RFC 5321 5.1). The host of a local relay is none, so ?name= is used.
  const publicHost = isPublicName(host) ? host : name
  if (!publicHost) {
    return { problem: 'needs ?name= with a public host name, because its host is not one' }
  }
  const connection: SMTPPoolOptions = {
    host,
    secure: url.protocol === 'smtps:' || url.port === IMPLICIT_TLS_PORT,
    requireTLS,
    tls: { rejectUnauthorized: tls['tls.rejectUnauthorized'] },
    maxConnections,
  }
  if (url.port) connection.port = Number(url.port)
  if (name) connection.name = name
  if (auth.user) connection.auth = auth
  return { connection, publicHost }
}

/** Returns user and password, both empty if the URL has neither; undefined if it has only one. */
function authOf({ username, password }: URL): { user: string; pass: string } | undefined {
  if ((username === '') !== (password === '')) return
  try {
    return { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
  } catch {
    return
  }
}

function isHost(host: string): boolean {
  return isIP(host) !== 0 || HOST_NAME.test(host)
}

function isPublicName(host: string): boolean {
  return HOST_NAME.test(host) && PUBLIC_END.test(host)
}
