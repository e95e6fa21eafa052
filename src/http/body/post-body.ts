import { createHash } from 'node:crypto'
import { setImmediate as nextSlice } from 'node:timers/promises'
import * as v from 'valibot'
import { errorBody, Refusal } from '../../errors.ts'
import { isSandbox } from '../../providers/sandbox/email.ts'
import { isSandboxNumber } from '../../providers/sandbox/sms.ts'
import { parseBatch } from '../../schemas/batch.ts'
import { domainSchema } from '../../schemas/domain.ts'
import { parseEmail } from '../../schemas/email.ts'
import { type Fields, MAX_FIELDS, parseBody } from '../../schemas/fields.ts'
import { parseJson } from '../../schemas/json.ts'
import { parseSms } from '../../schemas/sms.ts'
import { suppressionSchema } from '../../schemas/suppression.ts'

/** The body of a POST as it arrived, and what is needed to read it. */
export type Posted<Kind extends PostKind = PostKind> = {
  kind: Kind
  bytes: Uint8Array
  /** Method and path, which the fingerprint covers. */
  address: string
  /** The number by which SQL knows the call whose messages these are. */
  call: number
}

/** What the body of each kind of POST becomes. */
export type PostValues = {
  email: Messages
  'email batch': Messages
  sms: Messages
  'sms batch': Messages
  domain: v.InferOutput<typeof domainSchema>
  suppression: v.InferOutput<typeof suppressionSchema>
  /** No body counts as an empty object. */
  nothing: object
}

export type PostKind = keyof PostValues

export type Messages = {
  /**
   * A JSON array of messages, or of why one is not valid, in the form in which SQL takes them. One text: a
   * thousand would take twice the memory on their way from the thread to the database.
   */
  json: string
  count: number
  /** Of all messages together. */
  recipients: number
}

export type PostBody<Kind extends PostKind = PostKind> = {
  value: PostValues[Kind]
  /** SHA-256 of method, path and body: what must be the same for an Idempotency-Key to be replayed. */
  fingerprint: string
}

/** All of it can be sent to another thread. */
export type PostOptions = {
  publicUrl: string
  /** Whether what is for sandbox addresses alone goes there beside a real provider. */
  hasSandboxMessages: boolean
  /** Whether SMS to sandbox numbers go there beside a real provider. */
  hasSandboxSms: boolean
}

type Parsed<Value> = { value: Value } | { fields: Fields }
type Message = Record<string, unknown> & { recipients?: string[] }
type Parse<Value> = (
  input: unknown,
  options: PostOptions,
  call: number,
) => Parsed<Value> | Promise<Parsed<Value>>

/** An email has at most 424 values, if it has all its recipients, headers, variables and tags. */
const MAX_VALUES = 1000
const MAX_BATCH_VALUES = 500_000

const SLICE_MS = 20

export const nothingSchema = v.strictObject({})

const parsers: { [Kind in PostKind]: Parse<PostValues[Kind]> } = {
  email: single(email),
  'email batch': batch('emails', email),
  sms: single(sms),
  'sms batch': batch('messages', sms),
  domain: bySchema(domainSchema),
  suppression: bySchema(suppressionSchema),
  nothing: bySchema(nothingSchema),
}

/** Parses and validates a body, or throws the Refusal; the same in any thread. */
export async function readPostBody<Kind extends PostKind>(
  { kind, bytes, address, call }: Posted<Kind>,
  options: PostOptions,
): Promise<PostBody<Kind>> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  const json = text || (kind === 'nothing' ? '{}' : '')
  const input = parseJson(json, isBatch(kind) ? MAX_BATCH_VALUES : MAX_VALUES)
  const parsed = await parsers[kind](input, options, call)
  if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
  const hash = createHash('sha256').update(`${address}\n`)
  return { value: parsed.value, fingerprint: hash.update(json).digest('hex') }
}

export function isBatch(kind: PostKind): boolean {
  return kind === 'email batch' || kind === 'sms batch'
}

function bySchema<const S extends Parameters<typeof parseBody>[0]>(
  schema: S,
): Parse<v.InferOutput<S>> {
  return (input) => {
    const parsed = parseBody(schema, input)
    return 'fields' in parsed ? parsed : { value: parsed.output }
  }
}

function email(input: unknown, { hasSandboxMessages }: PostOptions): Parsed<Message> {
  const parsed = parseEmail(input)
  if ('fields' in parsed) return parsed
  const isMarked = hasSandboxMessages && isSandbox(parsed.email.recipients)
  return { value: isMarked ? { ...parsed.email, is_sandbox: true } : parsed.email }
}

function sms(input: unknown, { hasSandboxSms }: PostOptions): Parsed<Message> {
  const parsed = parseSms(input)
  if ('fields' in parsed) return parsed
  const isMarked = hasSandboxSms && isSandboxNumber(parsed.sms.recipient)
  return { value: isMarked ? { ...parsed.sms, is_sandbox: true } : parsed.sms }
}

function single(parse: (input: unknown, options: PostOptions) => Parsed<Message>): Parse<Messages> {
  return (input, options, call) => {
    const parsed = parse(input, options)
    if ('fields' in parsed) return parsed
    const json = JSON.stringify([{ ...parsed.value, call, index: 0 }])
    return { value: { json, count: 1, recipients: recipientsOf(parsed.value) } }
  }
}

/** Of the problems of all items 1 000 are reported, and the first of each further item. */
function batch(
  list: 'emails' | 'messages',
  parse: (input: unknown, options: PostOptions) => Parsed<Message>,
): Parse<Messages> {
  return async (input, options, call) => {
    const parsed = parseBatch(input, list)
    if ('fields' in parsed) return parsed
    let room = MAX_FIELDS
    let recipients = 0
    const texts = await mapInSlices(parsed.items, (item, index) => {
      const result = parse(item, options)
      if ('value' in result) {
        recipients += recipientsOf(result.value)
        return JSON.stringify({ ...result.value, call, index })
      }
      const fields = Object.entries(result.fields).slice(0, Math.max(1, room))
      room -= fields.length
      const { publicUrl } = options
      const error = errorBody(publicUrl, 'validation_error', Object.fromEntries(fields))
      return JSON.stringify({ error, call, index })
    })
    return { value: { json: `[${texts.join(',')}]`, count: texts.length, recipients } }
  }
}

/** An SMS has one. */
function recipientsOf(message: Message): number {
  return message.recipients?.length ?? 1
}

/** Like map, but lets other bodies in whenever it has run for a while. */
async function mapInSlices<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  let sliceEndsAt = performance.now() + SLICE_MS
  for (const [index, item] of items.entries()) {
    results.push(map(item, index))
    if (performance.now() < sliceEndsAt) continue
    await nextSlice()
    sliceEndsAt = performance.now() + SLICE_MS
  }
  return results
}
