import type { Context } from 'koa'
import { koaBody } from 'koa-body'
import { Refusal } from '../errors.ts'

/** A batch of 1 000 ordinary emails is 2 MB; this leaves room for large ones (design section 8). */
const LIMIT_BYTES = 32 * 1024 * 1024

/**
 * Reads a request's body as text, whatever its content type says: curl calls JSON a form unless told
 * otherwise. Empty text when there is none; throws when it is longer, unpacked, than the limit.
 */
export function bodyReader(limitBytes: number): (ctx: Context) => Promise<string> {
  const read = koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: ['*/*'],
    textLimit: limitBytes,
  })
  return async (ctx) => {
    // The reader passes over a body without a type, or with one that it cannot parse.
    ctx.req.headers['content-type'] = 'application/json'
    const reading = read(ctx as never, async () => undefined)
    await Promise.race([reading, brokenOff(ctx)]).catch((error) => {
      // Its own errors have a status; the decompressor's have none.
      throw error.status === undefined ? new Refusal('invalid_json') : error
    })
    const { body } = ctx.request as { body?: unknown }
    return typeof body === 'string' ? body : ''
  }
}

/** The body of a call of the interface. */
export const readBody = bodyReader(LIMIT_BYTES)

/** Rejects when the caller goes away: a decompressor would wait for the rest of its input forever. */
function brokenOff({ req }: Context): Promise<never> {
  return new Promise((_, reject) => {
    req.once('close', () => req.complete || reject(new Refusal('invalid_json')))
  })
}

/** A body's JSON value; throws invalid_json for an empty body or anything else. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal('invalid_json')
  }
}
