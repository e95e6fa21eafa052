import type { Context, Middleware } from 'koa'

const UNRESERVED = /%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/gi

/** Writes letters, digits and `-._~` of the path plainly: percent-encoded they mean the same (RFC 3986). */
export function plainPath(): Middleware {
  return (ctx, next) => {
    const { path } = ctx as Context
    if (path.includes('%')) ctx.path = path.replace(UNRESERVED, decodeURIComponent)
    return next()
  }
}
