import { hash } from 'node:crypto'
import { setImmediate as nextSlice } from 'node:timers/promises'
import * as v from 'valibot'
import type { AcceptEmail, AcceptSms } from '../../db/api.gen.ts'
import { toJson } from '../../db/json.ts'
import { errorBody, Refusal } from '../../errors.ts'
import { isSandbox } from '../../providers/sandbox/email.ts'
import { isSandboxNumber } from '../../providers/sandbox/sms.ts'
import { parseBatch } from '../../schemas/batch.ts'
import { domainSchema } from '../../schemas/domain.ts'
import { type Email, parseEmail } from '../../schemas/email.ts'
import { MAX_FIELDS, type Parsed, parseBody } from '../../schemas/fields.ts'
import { parseJson } from '../../schemas/json.ts'
import { parseSms, type Sms } from '../../schemas/sms.ts'
import { suppressionSchema } from '../../schemas/suppression.ts'

/** The received body of a POST, with what is needed to parse it. */
export type Posted<Kind extends PostKind = PostKind> = {
  kind: Kind
  bytes: Uint8Array
  /** Method and path, which the fingerprint covers. */
  methodAndPath: string
  /** The number of the call in SQL; its messages refer to it. */
  call: number
}

/** The value of a valid body, by kind of POST. */
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
   * A JSON array in the form that SQL takes: the messages, and the errors of those that are not valid. One
   * string for all: a thousand strings would take twice the memory between the thread and the database.
   */
  json: string
  count: number
  /** The recipients of all messages together. */
  recipients: number
}

export type PostBody<Kind extends PostKind = PostKind> = {
  value: PostValues[Kind]
  /** SHA-256 of method, path and body; a request with the same Idempotency-Key must have the same. */
  fingerprint: string
}

/** Only values that can be sent to another thread. */
export type PostOptions = {
  publicUrl: string
  /** Whether emails to sandbox addresses alone go to the sandbox although a real provider is configured. */
  hasSandboxMessages: boolean
  /** Whether SMS to sandbox numbers go to the sandbox although a real provider is configured. */
  hasSandboxSms: boolean
}

/** A message as the accept functions receive it, and one that is not valid. */
type Item = AcceptEmail | AcceptSms
type InvalidItem = Pick<Item, 'call' | 'index' | 'error'>

type ParseMessage = (input: unknown, options: PostOptions) => Parsed<Email | Sms>
type Parse<Value> = (
  input: unknown,
  options: PostOptions,
  call: number,
) => Parsed<Value> | Promise<Parsed<Value>>

/** The largest valid email has 424 values: all its recipients, headers, variables and tags. */
const MAX_VALUES = 1000
const MAX_BATCH_VALUES = 500_000

/** A batch is validated in slices of this length, so that smaller bodies need not wait for its end. */
const SLICE_MS = 20

export const nothingSchema = v.strictObject({})

const parsers: { [Kind in PostKind]: Parse<PostValues[Kind]> } = {
  email: single(email),
  'email batch': batch('emails', email),
  sms: single(sms),
  'sms batch': batch('messages', sms),
  domain: (input) => parseBody(domainSchema, input),
  suppression: (input) => parseBody(suppressionSchema, input),
  nothing: (input) => parseBody(nothingSchema, input),
}

/** Parses and validates a body; throws a Refusal if it is not valid. Works the same in any thread. */
export async function readPostBody<Kind extends PostKind>(
  { kind, bytes, methodAndPath, call }: Posted<Kind>,
  options: PostOptions,
): Promise<PostBody<Kind>> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  const json = text || (kind === 'nothing' ? '{}' : '')
  const input = parseJson(json, isBatch(kind) ? MAX_BATCH_VALUES : MAX_VALUES)
  const parsed = await parsers[kind](input, options, call)
  if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
  return { value: parsed.value, fingerprint: hash('sha256', `${methodAndPath}\n${json}`, 'hex') }
}

export function isBatch(kind: PostKind): boolean {
  return kind === 'email batch' || kind === 'sms batch'
}

function email(input: unknown, { hasSandboxMessages }: PostOptions): Parsed<Email> {
  const parsed = parseEmail(input)
  if ('value' in parsed && hasSandboxMessages && isSandbox(parsed.value.recipients)) {
    parsed.value.is_sandbox = true
  }
  return parsed
}

function sms(input: unknown, { hasSandboxSms }: PostOptions): Parsed<Sms> {
  const parsed = parseSms(input)
  if ('value' in parsed && hasSandboxSms && isSandboxNumber(parsed.value.recipient)) {
    parsed.value.is_sandbox = true
  }
  return parsed
}

function single(parse: ParseMessage): Parse<Messages> {
  return (input, options, call) => {
    const parsed = parse(input, options)
    if ('fields' in parsed) return parsed
    const json = toJson<Item[]>([{ ...parsed.value, call, index: 0 }])
    return { value: { json, count: 1, recipients: recipientsOf(parsed.value) } }
  }
}

/** Reports 1 000 problems of all items together, and after them one problem of each further item. */
function batch(list: 'emails' | 'messages', parse: ParseMessage): Parse<Messages> {
  return async (input, options, call) => {
    const parsed = parseBatch(input, list)
    if ('fields' in parsed) return parsed
    let fieldsLeft = MAX_FIELDS
    let recipients = 0
    const texts = await mapInSlices(parsed.value, (item, index) => {
      const result = parse(item, options)
      if ('value' in result) {
        recipients += recipientsOf(result.value)
        return toJson<Item>({ ...result.value, call, index })
      }
      const fields = Object.entries(result.fields).slice(0, Math.max(1, fieldsLeft))
      fieldsLeft -= fields.length
      const problems = Object.fromEntries(fields)
      const error = errorBody(options.publicUrl, 'validation_error', problems)
      return toJson<InvalidItem>({ error, call, index })
    })
    return { value: { json: `[${texts.join(',')}]`, count: texts.length, recipients } }
  }
}

/** Returns the number of recipients; an SMS has one. */
function recipientsOf(message: Email | Sms): number {
  return 'recipients' in message ? message.recipients.length : 1
}

/** Maps items, and yields to the event loop after each SLICE_MS if an item is left. */
async function mapInSlices<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  let sliceEndsAt = performance.now() + SLICE_MS
  for (const [index, item] of items.entries()) {
    if (performance.now() >= sliceEndsAt) {
      await nextSlice()
      sliceEndsAt = performance.now() + SLICE_MS
    }
    results.push(map(item, index))
  }
  return results
}
