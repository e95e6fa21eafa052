import type { Context } from 'koa'
import * as v from 'valibot'
import { type Fields, Refusal } from '../errors.ts'
import { parseBareAddress } from '../schemas/address.ts'
import { type BodySchema, parseBody } from '../schemas/fields.ts'
import { storable } from '../text/storable.ts'

/** What a form sent, by field. A field that is sent several times, such as checkboxes, has several values. */
export type Form = ReadonlyMap<string, readonly string[]>

/** Reads the body of a request within a limit on its bytes. They count for the owner; absent: for strangers. */
export type ReadBody = (ctx: Context, maxBytes: number, owner?: string) => Promise<Buffer>

/** Larger than any list that is uploaded: 100 000 addresses are some 3 MB. */
const MAX_BYTES = 8 * 1024 * 1024

/** More than any page has. Each takes some microseconds of the event loop, and 8 MB could hold millions. */
const MAX_FIELDS = 1000

/** Reads a form, urlencoded or multipart. The value of a file is its text. The owner is that of its bytes. */
export async function readForm(
  ctx: Context,
  readBody: ReadBody,
  { maxBytes = MAX_BYTES, owner }: { maxBytes?: number; owner?: string } = {},
): Promise<Form> {
  const bytes = await readBody(ctx, maxBytes, owner)
  if (bytes.length === 0) return new Map()
  if (hasManyFields(ctx, bytes)) {
    throw new Refusal('validation_error', { _: [`the form has more than ${MAX_FIELDS} fields`] })
  }
  const headers = { 'Content-Type': ctx.get('Content-Type') }
  const data = await new Response(new Uint8Array(bytes), { headers }).formData().catch(() => {
    throw new Refusal('validation_error', { _: ['the form cannot be read'] })
  })
  const form = new Map<string, string[]>()
  for (const [name, sent] of data) {
    const text = typeof sent === 'string' ? sent : await sent.text()
    // Browsers send line breaks as CRLF.
    const value = storable(text).replaceAll('\r\n', '\n')
    const values = form.get(name)
    if (values) values.push(value)
    else form.set(name, [value])
  }
  return form
}

/** Returns whether a form has more fields than may be parsed. */
function hasManyFields(ctx: Context, bytes: Buffer): boolean {
  const type = ctx.get('Content-Type')
  const boundary =
    /^\s*multipart\//i.test(type) && /;\s*boundary=(?:"([^"]+)"|([^\s";]+))/i.exec(type)
  // The parts of a multipart form stand between boundaries, the fields of another one between ampersands.
  const [separator, others] = boundary ? [`--${boundary[1] ?? boundary[2]}`, -1] : ['&', 1]
  let fields = others
  for (let at = bytes.indexOf(separator); at >= 0; at = bytes.indexOf(separator, at + 1)) {
    fields += 1
    if (fields > MAX_FIELDS) return true
  }
  return false
}

/** Returns the first value of a field; empty if it was not sent. */
export function textOf(form: Form, name: string): string {
  return form.get(name)?.[0] ?? ''
}

/**
 * Validates a form: fields named in `lists` are arrays, the others texts without space around them. Throws a
 * Refusal with the problems by field.
 */
export function parseForm<const Schema extends BodySchema>(
  schema: Schema,
  form: Form,
  lists: readonly string[] = [],
): v.InferOutput<Schema> {
  const values: Record<string, unknown> = Object.fromEntries(lists.map((name) => [name, []]))
  for (const [name, sent] of form) values[name] = lists.includes(name) ? sent : sent[0]?.trim()
  const parsed = parseBody(schema, values)
  if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
  return parsed.value
}

/** The address of a user, as it was typed. */
export const emailAddress = v.pipe(
  v.string(),
  v.check((text) => !('problem' in parseBareAddress(text)), 'must be an email address'),
)

/** What a form showed when it was refused: the values that were typed, and the problems by field. */
export type Refused = { form: Form; problems: Fields; message: string }

/** SQLSTATE of an error that a function of ops raises: one sentence for people. */
const RAISED = 'P0001'

/** Returns what to show of an error that the user can fix; undefined for other errors. */
export function refusedBy(error: unknown, form: Form): Refused | undefined {
  if (error instanceof Refusal) {
    const { code, status, fields: problems = {}, message } = error
    if (code === 'unauthorized' || code === 'not_found') return undefined
    // The user can try again; other errors of the service are faults.
    if (status >= 500 && code !== 'email_provider_unavailable') return undefined
    if (code !== 'validation_error') return { form, problems, message }
    return { form, problems, message: problems._?.join('; ') ?? 'Correct the marked fields.' }
  }
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  return code === RAISED ? { form, problems: {}, message: sentence(String(message)) } : undefined
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
