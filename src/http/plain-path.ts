import type { Middleware } from 'koa'

const UNRESERVED = /%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/gi

/** Decodes percent-encoded letters, digits and `-._~` in the path: both forms are equivalent (RFC 3986, 2.3). */
export function plainPath(): Middleware {
  return (ctx, next) => {
    const { path } = ctx
    if (path.includes('%')) ctx.path = path.replace(UNRESERVED, decodeURIComponent)
    return next()
  }
}
