import { isIP } from 'node:net'
import type { SMTPPoolOptions } from 'nodemailer'
import * as v from 'valibot'
import { isLoopback } from '../../net/loopback.ts'
import { flag, readServerUrl } from '../server-url.ts'

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
  const url = readServerUrl(text)
  // User and password, or neither.
  const hasLogin = url && (url.user === '') === (url.password === '')
  if (!url || !hasLogin || !/^smtps?:$/.test(url.protocol) || !isHost(url.host)) {
    return { problem: 'must be an smtp:// or smtps:// URL; write special characters as %XX' }
  }
  const { host, port, user, password } = url
  const given = v.safeParse(parameters, url.parameters)
  if (!given.success) {
    return { problem: `accepts only the parameters ${Object.keys(parameters.entries).join(', ')}` }
  }
  const { name, maxConnections, ...tls } = given.output
  const requireTLS = tls.requireTLS ?? (user !== '' && !isLoopback(host))
  // An MX record needs a public name (RFC 5321 5.1). The host of a local relay is none, so ?name= is used.
  const publicHost = isPublicName(host) ? host : name
  if (!publicHost) {
    return { problem: 'needs ?name= with a public host name, because its host is not one' }
  }
  const connection: SMTPPoolOptions = {
    host,
    secure: url.protocol === 'smtps:' || port === IMPLICIT_TLS_PORT,
    requireTLS,
    tls: { rejectUnauthorized: tls['tls.rejectUnauthorized'] },
    maxConnections,
  }
  if (port) connection.port = Number(port)
  if (name) connection.name = name
  if (user) connection.auth = { user, pass: password }
  return { connection, publicHost }
}

function isHost(host: string): boolean {
  return isIP(host) !== 0 || HOST_NAME.test(host)
}

function isPublicName(host: string): boolean {
  return HOST_NAME.test(host) && PUBLIC_END.test(host)
}
