import { isIP } from 'node:net'
import type { SMTPPoolOptions } from 'nodemailer'
import * as v from 'valibot'
import { isLoopback } from '../../net/loopback.ts'

/** What an SMTP_URL says. */
export type Relay = {
  connection: SMTPPoolOptions
  /** The name that the outside knows it by; bounces are addressed to it, and its addresses may send. */
  publicHost: string
}

const HOST_NAME = /^(?=.{1,253}$)(?:(?!-)[a-z0-9-]{1,63}\.)*(?!-)[a-z0-9-]{1,63}$/
// Not the end of an IPv4 address, nor of a name that means another host elsewhere.
const PUBLIC_END = /\.(?!(?:\d+|localhost|local|internal)$)[a-z0-9-]+$/

/** Relays speak TLS from the start there (RFC 8314 3.3): one that is addressed in the clear stays silent. */
const IMPLICIT_TLS_PORT = '465'

const flag = v.pipe(
  v.picklist(['true', 'false']),
  v.transform((text) => text === 'true'),
)

const parameters = v.strictObject({
  /** Whether a relay that offers no TLS is refused; by default where a password would pass a network. */
  requireTLS: v.optional(flag),
  /** false where the certificate is made by the relay itself. */
  'tls.rejectUnauthorized': v.optional(flag, 'true'),
  /** Few enough for what relays allow a client. */
  maxConnections: v.optional(
    v.pipe(v.string(), v.regex(/^[1-9]\d{0,2}$/), v.transform(Number)),
    '10',
  ),
  /** How we greet the relay. */
  name: v.optional(v.pipe(v.string(), v.toLowerCase(), v.check(isPublicName))),
})

/**
 * Read `smtp[s]://[user:password@]host[:port][?parameters]`. Problems do not quote it, as a password
 * stands in it.
 */
export function readRelay(text: string): Relay | { problem: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const host = url?.hostname.replace(/^\[|\]$/g, '').toLowerCase() ?? ''
  const auth = url && authOf(url)
  // What stands behind the host is most likely a part of the password.
  const isWhole = /^\/?$/.test(url?.pathname ?? '') && !url?.hash
  if (!url || !isWhole || !auth || !/^smtps?:$/.test(url.protocol) || !isHost(host)) {
    return { problem: 'must be an smtp:// or smtps:// URL; write special characters as %XX' }
  }
  const given = v.safeParse(parameters, Object.fromEntries(url.searchParams))
  if (!given.success) {
    return { problem: `takes ${Object.keys(parameters.entries).join(', ')} after its ?` }
  }
  const { name, maxConnections, ...tls } = given.output
  const requireTLS = tls.requireTLS ?? (auth.user !== '' && !isLoopback(host))
  // An MX record must have a name (RFC 5321 5.1), which a relay of this machine or of a private
  // network does not tell: it is then known by the name that we have.
  const publicHost = isPublicName(host) ? host : name
  if (!publicHost) {
    return { problem: 'needs ?name= with a public host name where its host is not one' }
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

/** Both of them or neither; undefined otherwise. */
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
