import { hash, randomBytes } from 'node:crypto'
import type { Context } from 'koa'

const TOKEN_BYTES = 32

/** The longest life of a session (core.session_of). */
const LIFETIME_MS = 30 * 24 * 3600 * 1000

/** Returns a new token for a link or a session. The database has only its hash. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

/** Returns the SHA-256 of a token in hex, as the functions of schema api take it. */
export function hashOf(token: string): string {
  return hash('sha256', token, 'hex')
}

/**
 * Keeps the token of the session in a cookie. With https its name begins with __Host-, so that no other host of the
 * domain can set it (RFC 6265bis, 4.1.3.2).
 */
export function sessionCookie(publicUrl: string) {
  const isSecure = publicUrl.startsWith('https:')
  const name = isSecure ? '__Host-postgram' : 'postgram'
  const options = {
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure,
    path: '/',
    overwrite: true,
  } as const

  /** A proxy ends TLS, so Koa sees http. */
  const cookiesOf = (ctx: Context) => Object.assign(ctx.cookies, { secure: isSecure })

  /** A cookie with a text that is read once. */
  const textCookie = (suffix: string, maxAge: number) => ({
    write(ctx: Context, text: string): void {
      cookiesOf(ctx).set(`${name}-${suffix}`, encodeURIComponent(text), { ...options, maxAge })
    },
    /** Returns the text and forgets it; null if there is none. */
    take(ctx: Context): string | null {
      const text = ctx.cookies.get(`${name}-${suffix}`)
      if (!text) return null
      cookiesOf(ctx).set(`${name}-${suffix}`, null, options)
      try {
        return decodeURIComponent(text)
      } catch {
        return null
      }
    },
  })

  return {
    /** Returns the hash of the request's session token; null if it has none. */
    read(ctx: Context): string | null {
      const token = ctx.cookies.get(name)
      return token ? hashOf(token) : null
    },
    write(ctx: Context, token: string): void {
      cookiesOf(ctx).set(name, token, { ...options, maxAge: LIFETIME_MS })
    },
    clear(ctx: Context): void {
      cookiesOf(ctx).set(name, null, options)
    },
    /** A sentence for the next page, such as "The key is revoked." */
    notice: textCookie('notice', 60_000),
    /** The path and query of the page that was asked for before the sign-in; as long as a link works. */
    destination: textCookie('destination', 15 * 60_000),
  }
}

export type SessionCookie = ReturnType<typeof sessionCookie>
