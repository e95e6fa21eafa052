import type { Middleware } from 'koa'

const UNRESERVED = /%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/gi

/** Decodes percent-encoded letters, digits and `-._~` in the path: both forms are equivalent (RFC 3986, 2.3). */
export const plainPath: Middleware = (ctx, next) => {
  if (ctx.path.includes('%')) ctx.path = ctx.path.replace(UNRESERVED, decodeURIComponent)
  return next()
}
