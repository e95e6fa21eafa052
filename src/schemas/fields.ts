import * as v from 'valibot'
import type { Fields } from '../errors.ts'
import { storable } from '../text/storable.ts'
import { isLongerThan, tooLong, tooMany } from './limits.ts'

/** A valid value, or the problems of one that is not valid. */
export type Parsed<Value> = { value: Value } | { fields: Fields }

/** Reports a problem of a value, or of the part of it at `path`. */
export type Report = (problem: string, ...path: (string | number)[]) => void

export type BodySchema = v.GenericSchema & { readonly entries: Readonly<Record<string, unknown>> }

// A body can have very many problems, and the response to a batch is stored for replay.
export const MAX_FIELDS = 1000
const MAX_KEY_LENGTH = 200

const CONTROL = /\p{Cc}/u
const CONTROL_OTHER_THAN_TAB = /[^\P{Cc}\t]/u

/** Whether a JSON value is an object, and neither an array nor null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function keyOf(path: readonly { readonly key: unknown }[] | undefined): string {
  const key = path?.length ? path.map((item) => String(item.key)).join('.') : '_'
  return storable(key.length > MAX_KEY_LENGTH ? `${key.slice(0, MAX_KEY_LENGTH - 1)}…` : key)
}

// valibot has one message for three kinds of issue of a strict object; this distinguishes them for all schemas.
function messageOf(issue: v.BaseIssue<unknown>): string {
  if (issue.type !== 'strict_object') return issue.message
  if (issue.expected === 'Object') return 'must be an object'
  return issue.expected === 'never' ? 'unknown field' : 'is required'
}

/**
 * Returns `fields` for valibot issues: every problem once, in the order found, with at most 1 000 keys of at most
 * 200 characters that jsonb can store. `unknownKeys` of the body come last.
 */
function toFields(
  issues: readonly v.BaseIssue<unknown>[],
  unknownKeys: readonly string[] = [],
): Fields {
  // A Map, because `fields['__proto__'] = …` on an object would set its prototype.
  const fields = new Map<string, string[]>()
  const add = (key: string, problem: string) => {
    const problems = fields.get(key)
    if (!problems) fields.set(key, [problem])
    else if (!problems.includes(problem)) problems.push(problem)
  }
  for (const issue of issues) {
    if (fields.size >= MAX_FIELDS) break
    add(keyOf(issue.path), storable(messageOf(issue)))
  }
  for (const key of unknownKeys) {
    if (fields.size >= MAX_FIELDS) break
    add(keyOf([{ key }]), 'unknown field')
  }
  return Object.fromEntries(fields)
}

/** Merges problems; those of `first` come before those of `second`. */
export function mergeFields(first: Fields, second: Fields): Fields {
  const merged = new Map(Object.entries(first))
  for (const [key, problems] of Object.entries(second)) {
    merged.set(key, [...(merged.get(key) ?? []), ...problems])
  }
  return Object.fromEntries(merged)
}

/**
 * Checks a body or a query by a `v.strictObject`, which may be piped into cross-field checks. Reports every
 * problem and every unknown key, of which valibot itself reports only the first.
 */
export function parseBody<const S extends BodySchema>(
  schema: S,
  input: unknown,
): Parsed<v.InferOutput<S>> {
  if (!isObject(input)) return { fields: { _: ['must be a JSON object'] } }
  const result = v.safeParse(schema, input)
  if (result.success) return { value: result.output }
  const unknownKeys = Object.keys(input).filter((key) => !Object.hasOwn(schema.entries, key))
  return { fields: toFields(result.issues, unknownKeys) }
}

/**
 * Returns a schema that OpenAPI describes as `shape`, and that checks values by `check` instead of `shape`.
 * valibot's own schemas do not fit lists and records: they check every item of a list that is far too long, so
 * that one large body makes gigabytes of issues; unions hide the path of a bad item; records silently drop the
 * keys `__proto__`, `constructor` and `prototype`. `check` reports a problem whenever it returns undefined.
 */
export function checkedBy<const S extends v.GenericSchema, Output>(
  shape: S,
  check: (value: unknown, report: Report) => Output | undefined,
): v.GenericSchema<v.InferInput<S>, Output> {
  const action = v.rawTransform<unknown, Output>(
    ({ dataset, addIssue, NEVER }) => check(dataset.value, reportTo(addIssue)) ?? NEVER,
  )
  const documented: v.GenericSchema = shape
  const run: (typeof documented)['~run'] = (dataset, config) =>
    action['~run']({ typed: true, value: dataset.value }, config)
  return { ...documented, '~run': run } as v.GenericSchema<v.InferInput<S>, Output>
}

/**
 * Returns a cross-field check for the pipe after a `v.strictObject`. The check receives the body even if some
 * fields are not valid, so that it reports its problems as well.
 */
export function crossFieldCheck<Body>(
  check: (body: Record<string, unknown>, report: Report) => void,
) {
  return v.rawCheck<Body>(({ dataset, addIssue }) => {
    if (isObject(dataset.value)) check(dataset.value, reportTo(addIssue))
  })
}

type AddIssue = (issue: { message: string; path?: [v.IssuePathItem, ...v.IssuePathItem[]] }) => void

function reportTo(addIssue: AddIssue): Report {
  return (message, ...path) => {
    const [first, ...rest] = path.map(pathItem)
    addIssue(first ? { message, path: [first, ...rest] } : { message })
  }
}

// Only the key of a path item is ever read.
function pathItem(key: string | number): v.IssuePathItem {
  return { type: 'unknown', origin: 'value', input: null, key, value: null }
}

/** A non-empty string of limited length on one line, without control characters. */
export function line(maxLength: number, { tabs = false } = {}) {
  const control = tabs ? CONTROL_OTHER_THAN_TAB : CONTROL
  return v.pipe(
    v.string('must be a string'),
    v.minLength(1, 'must not be empty'),
    atMost(maxLength),
    v.check((value) => !control.test(value), 'must not contain control characters'),
    v.check((value) => value.isWellFormed(), 'must not contain lone surrogates'),
  )
}

/** At most `max` code points, which JSON Schema (validation, 6.3.1) and Postgres count as the length. */
export function atMost(max: number): v.GenericValidation<string> {
  const check = v.check<string, (issue: v.CheckIssue<string>) => string>(
    (value) => !isLongerThan(value, max),
    ({ input }) => tooLong(max, input),
  )
  // OpenAPI describes it as maxLength; valibot's own maxLength counts UTF-16 units.
  const documented: v.GenericValidation<string> = v.maxLength(max)
  return { ...documented, '~run': (dataset, config) => check['~run'](dataset, config) }
}

/** A string of any length that Postgres can store. */
export function text() {
  return v.pipe(
    v.string('must be a string'),
    v.check((value) => !value.includes('\0'), 'must not contain NUL characters'),
    v.check((value) => value.isWellFormed(), 'must not contain lone surrogates'),
  )
}

/** A list of at most `max` items, unchanged. Only the first `max` items of a longer list are checked by `item`. */
export function list<const S extends v.GenericSchema>(item: S, max: number, noun: string) {
  const shape = v.pipe(v.array(item), v.maxLength(max))
  return checkedBy(shape, (value, report): v.InferOutput<S>[] | undefined => {
    if (!Array.isArray(value)) {
      report('must be an array')
      return
    }
    if (value.length > max) report(tooMany(max, noun, value.length))
    for (const [index, one] of value.slice(0, max).entries()) reportAll(item, one, report, index)
    return value
  })
}

/** Reports every problem that a schema finds in a value under `key`. */
export function reportAll(
  schema: v.GenericSchema,
  value: unknown,
  report: Report,
  key: string | number,
): void {
  for (const issue of v.safeParse(schema, value).issues ?? []) report(issue.message, key)
}

/** Refuses the name `__proto__`: code that copies a record with `copy[name] = value` loses it silently. */
export function reportPrototype(name: string, report: Report): void {
  if (name === '__proto__') report('must not be named __proto__', name)
}
