import type postgres from 'postgres'
import { readAddress } from '../../db/address.ts'
import { CODE_LOCK } from '../../db/call.ts'
import type { Sql } from '../../db/client.ts'
import { codeOf } from '../../db/connection-errors.ts'
import { connectionProblem } from '../../db/connection-problem.ts'
import { linkTo } from './lists.ts'

/** The server lacks postgres_fdw, or the login may not create it or use it. */
const NO_WRAPPER = /^(0A000|58P01|42501)$/

/**
 * Options of a foreign server:
 * - a query fails after 5 s if the cell does not respond;
 * - a connection ends with its transaction, so that an idle session holds none in another cell;
 * - 10,000 rows for each round trip: with 5 ms each, 200,000 rows take 0.4 s, by the 100 of the default 15 s;
 * - the foreign tables refuse writes.
 */
const OPTIONS = {
  connect_timeout: '5',
  keep_connections: 'off',
  fetch_size: '10000',
  updatable: 'false',
}

/**
 * Creates the foreign server of a cell at this address and the views of schema everywhere, again if they exist. Returns
 * what an operator has to do if this login may not, else null.
 */
export async function addReports(
  sql: Sql,
  number: number,
  address: string,
): Promise<string | null> {
  const { user, password, ...place } = readAddress(address).libpq
  const server = linkTo(number)
  try {
    await changeReports(sql, async (tx, owner) => {
      await tx.unsafe('create extension if not exists postgres_fdw schema public')
      await tx.unsafe(`drop server if exists ${server} cascade`)
      const options = await optionList(tx, { ...OPTIONS, ...place })
      await tx.unsafe(
        `create server ${server} foreign data wrapper postgres_fdw options (${options})`,
      )
      await tx.unsafe(`grant usage on foreign server ${server} to ${owner}`)
      const trust = password === undefined ? await trustOf(tx) : {}
      const login = await optionList(tx, { user, password, ...trust })
      await tx.unsafe(`create user mapping for ${owner} server ${server} options (${login})`)
    })
    return null
  } catch (error) {
    if (!NO_WRAPPER.test(codeOf(error))) throw error
    const problem = connectionProblem(error) ?? (error as Error).message
    return `Reports over all cells are missing (${problem}). As a superuser run "create extension postgres_fdw" and "grant usage on foreign data wrapper postgres_fdw to …" for this login, then join again.`
  }
}

/**
 * Changes foreign servers of cells in a transaction, and creates the views of schema everywhere again, as those of the
 * owner of ops.
 */
export async function changeReports(
  sql: Sql,
  change: (tx: postgres.TransactionSql, owner: string) => Promise<void>,
): Promise<void> {
  await sql.begin(async (tx) => {
    // While migrate replaces ops, its views come and go.
    await tx`select pg_advisory_xact_lock(${CODE_LOCK})`
    const [{ owner }] = await tx<[{ owner: string }]>`
      select quote_ident(pg_get_userbyid(n.nspowner)) as owner from pg_namespace n where n.nspname = 'ops'`
    await tx`select core.drop_everywhere()`
    await change(tx, owner)
    // A superuser may join in place of the owner, and a later migrate must be able to drop the views.
    await tx.unsafe(`set local role ${owner}`)
    await tx`select core.make_everywhere()`
  })
}

/** Postgres requires a password of owners who are no superuser, unless a superuser says otherwise. */
async function trustOf(tx: postgres.TransactionSql): Promise<Record<string, string>> {
  const [{ isSuperuser }] = await tx<[{ isSuperuser: boolean }]>`
    select r.rolsuper as is_superuser from pg_roles r where r.rolname = current_user`
  return isSuperuser ? { password_required: 'false' } : {}
}

/** Returns options as they stand in a statement; those without a value are left out. */
async function optionList(
  tx: postgres.TransactionSql,
  options: Record<string, string | undefined>,
): Promise<string> {
  const [{ list }] = await tx<[{ list: string }]>`
    select string_agg(format('%I %L', o.key, o.value), ', ') as list
    from jsonb_each_text(${JSON.stringify(options)}::text::jsonb) o`
  return list
}
