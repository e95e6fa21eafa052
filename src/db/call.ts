import postgres from 'postgres'
import { type Code, Refusal } from '../errors.ts'
import { type Api, signatures } from './api.gen.ts'
import type { Sql } from './client.ts'
import type { Pool, UseOptions } from './pool.ts'

type Argument = string | number | boolean | string[] | Date | null | undefined

/**
 * Call a function of schema api: its result, or a Refusal when it says no. jsonb arguments are JSON
 * text. The only place in src that builds a query.
 */
export type Call = <Name extends keyof Api>(
  name: Name,
  args: Api[Name]['args'],
  options?: UseOptions,
) => Promise<Api[Name]['result']>

const SQLSTATE_REFUSED = 'MSREF'

/** Held by migrate while it replaces the code; any number will do. */
export const CODE_LOCK = 5_402_118

/**
 * What a statement can meet at the moment at which the code is replaced: schemas, tables, columns, types
 * or functions that had another shape or number just before (class 42, XX000 "cache lookup failed"), or a
 * plan whose result has columns that it had not (0A000). Postgres tells its other connections of the new
 * ones a moment after it makes them visible, but before it gives back the locks of who made them.
 */
const SQLSTATE_REPLACED = /^(0A000|3F000|42...|XX000)$/

/** A Call over these connections. */
export function caller(connections: Sql | Pool): Call {
  const use: Pool['use'] =
    'use' in connections ? connections.use : (work) => work(connections as Sql)
  return async (name, args, options) => {
    const { types, returns } = signatures[name]
    const given = Object.entries(args as Record<string, Argument>).filter(
      ([, value]) => value !== undefined,
    )
    // Every argument travels as text and is cast by the server, so that no type is guessed here.
    const list = given.map(
      ([key], place) =>
        `${key} => ($${place + 1}::text)::${(types as Record<string, string>)[key]}`,
    )
    const invocation = `api.${String(name)}(${list.join(', ')})`
    const text =
      returns === 'rows' ? `select * from ${invocation}` : `select ${invocation} as value`
    const values = given.map(([, value]) => asText(value))
    const ask = (sql: Sql) => sql.unsafe(text, values, { prepare: true })
    try {
      const rows = await use(
        (sql) =>
          ask(sql).catch(async (error) => {
            if (!SQLSTATE_REPLACED.test(error.code)) throw error
            // The statement was rolled back.
            await sql`select pg_advisory_xact_lock_shared(${CODE_LOCK})`
            return ask(sql)
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

function asText(value: Argument): string | null {
  if (value === null || value === undefined) return null
  if (Array.isArray(value)) {
    return `{${value.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`
  }
  return value instanceof Date ? value.toISOString() : String(value)
}

function asRefusal(error: unknown): Refusal | undefined {
  if (!(error instanceof postgres.PostgresError) || error.code !== SQLSTATE_REFUSED) {
    return undefined
  }
  const { fields, message, retryAfter } = JSON.parse(error.detail ?? '{}')
  return new Refusal(error.message as Code, fields, { words: message, retryAfter })
}
