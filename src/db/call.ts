import postgres, { type TransactionSql } from 'postgres'
import { type Code, Refusal } from '../errors.ts'
import { type Api, signatures } from './api.gen.ts'
import type { Sql } from './client.ts'
import type { Pool, UseOptions } from './pool.ts'

type Argument = string | number | boolean | readonly unknown[] | object | Date | null | undefined

/**
 * Calls a function of schema api and returns its result. Throws a Refusal if the function refuses. A jsonb
 * argument is a value or its JSON text. The only place in src that builds a query.
 */
export type Call = <Name extends keyof Api>(
  name: Name,
  args: Api[Name]['args'],
  options?: UseOptions,
) => Promise<Api[Name]['result']>

const SQLSTATE_REFUSED = 'MSREF'

/** The advisory lock that migrate holds while it replaces the code. */
export const CODE_LOCK = 5_402_118

/**
 * Errors of a statement that runs while migrate replaces the code: objects have another shape or OID than a moment
 * before (class 42, XX000 "cache lookup failed"), or a plan has other result columns (0A000). Other connections get
 * the invalidation after the new objects are visible, but before migrate's locks are released.
 */
const SQLSTATE_REPLACED = /^(0A000|3F000|42...|XX000)$/

/** Longer arguments are sent in parts: the driver blocks the event loop for some 5 ms for each MB of a statement. */
const PART_LENGTH = 1024 * 1024

/** Whether an error says that migrate replaced the code while the statement ran. */
export const isReplaced = (error: unknown) =>
  error instanceof postgres.PostgresError && SQLSTATE_REPLACED.test(error.code)

/**
 * Returns a Call that uses these connections. It repeats a call during which migrate replaced the code, but not with
 * `isPipelined`, for calls that are sent before the one before them has ended: see sendOnce().
 */
export function caller(
  connections: Sql | Pool,
  { isPipelined = false }: { isPipelined?: boolean } = {},
): Call {
  const use: Pool['use'] =
    'use' in connections ? connections.use : (work) => work(connections as Sql)
  return async (name, args, options) => {
    const { types, returns } = signatures[name]
    const given = Object.entries(args as Record<string, Argument>).filter(
      ([, value]) => value !== undefined,
    )
    // Every argument is sent as text and cast by the server, so that the driver guesses no type.
    const values: (string | null)[] = []
    const parts: string[] = []
    const list = given.map(([key, value]) => {
      const type = (types as Record<string, string>)[key]
      const text = asText(value, type)
      if (text !== null && text.length > PART_LENGTH) {
        const names = partsOf(text).map(
          (part) => `current_setting('${partName(parts.push(part))}')`,
        )
        return `${key} => (${names.join(' || ')})::${type}`
      }
      return `${key} => ($${values.push(text)}::text)::${type}`
    })
    const invocation = `api.${String(name)}(${list.join(', ')})`
    const text =
      returns === 'rows' ? `select * from ${invocation}` : `select ${invocation} as value`
    const runWhole = (sql: Sql) => query(sql, text, values, isPipelined)
    const runInParts = (sql: Sql) =>
      sql.begin(async (tx) => {
        for (const [n, part] of parts.entries()) {
          // The setting lasts until the end of the transaction. "is null" keeps the value out of the result.
          const keep = `select set_config('${partName(n + 1)}', $1::text, true) is null`
          await query(tx, keep, [part])
        }
        return query(tx, text, values)
      })
    const run = (sql: Sql) => (parts.length > 0 ? runInParts(sql) : runWhole(sql))
    try {
      const rows = await use(
        (sql) =>
          run(sql).catch(async (error) => {
            if (isPipelined || !isReplaced(error)) throw error
            // The statement was rolled back. Wait until migrate has replaced the code, then repeat it.
            await sql`select pg_advisory_xact_lock_shared(${CODE_LOCK})`
            return run(sql)
          }),
        options,
      )
      if (returns === 'rows') return rows as never
      if (returns === 'values') return rows.map((row) => row.value) as never
      return rows[0]?.value as never
    } catch (error) {
      throw asRefusal(error) ?? error
    }
  }
}

/**
 * Runs a query, and frees its arguments and rows. A query of the driver stays in memory until the next full garbage
 * collection, and with it all that it refers to: collecting that took 8 % of the CPU of a send.
 */
async function query(
  sql: Sql | TransactionSql,
  text: string,
  values: (string | null)[],
  isPipelined = false,
) {
  const sent = isPipelined
    ? sendOnce(sql, text, values)
    : sql.unsafe(text, values, { prepare: true })
  const result = await sent
  Object.assign(sent, { args: [], parameters: [] })
  return result.splice(0)
}

/**
 * Sends a query that the driver does not repeat itself when its plan has other result columns. It would prepare the
 * statement again, and with another query in progress behind it wait for ever for responses that it has given to the
 * wrong one. The driver repeats only what it knows as prepared.
 */
function sendOnce(sql: Sql | TransactionSql, text: string, values: (string | null)[]) {
  const onexecute = () => {
    Object.assign(sent, { prepared: false })
    return true
  }
  const sent = sql.unsafe(text, values, { prepare: true, onexecute } as { prepare: true })
  return sent
}

const partName = (n: number) => `postgram.part_${n}`

/** Splits a text, but never within a surrogate pair, half of which cannot be sent. */
function partsOf(text: string): string[] {
  const parts: string[] = []
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PART_LENGTH, text.length)
    const code = text.charCodeAt(end - 1)
    if (code >= 0xd800 && code <= 0xdbff && end < text.length) end--
    parts.push(text.slice(start, end))
    start = end
  }
  return parts
}

function asText(value: Argument, type: string | undefined): string | null {
  if (value === null || value === undefined) return null
  if (type === 'jsonb') return typeof value === 'string' ? value : JSON.stringify(value)
  if (Array.isArray(value)) {
    return `{${value.map((item: string) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`
  }
  return value instanceof Date ? value.toISOString() : String(value)
}

function asRefusal(error: unknown): Refusal | undefined {
  if (!(error instanceof postgres.PostgresError) || error.code !== SQLSTATE_REFUSED) {
    return undefined
  }
  const { fields, message, retryAfter } = JSON.parse(error.detail ?? '{}')
  return new Refusal(error.message as Code, fields, { message, retryAfter })
}
