import type { Config } from '../../config/index.ts'
import { addressProblem } from '../../db/address.ts'
import { connect, type Sql } from '../../db/client.ts'
import { connectionProblem } from '../../db/connection-problem.ts'
import { SetupError } from '../../errors.ts'
import { asOwner } from '../database.ts'
import { USAGE } from '../usage.ts'
import { type Cell, checkCanJoin, readCell } from './cell.ts'
import { addReports } from './everywhere.ts'
import { LISTS, linkTo, PUBLICATION, publishLists } from './lists.ts'

/**
 * Brings the lists of another cell, whose owner's address is given, into this one and keeps them in step, and makes
 * its reports readable here. May be repeated. Throws SetupError.
 */
export async function runJoin(config: Config, args: string[]): Promise<void> {
  const [address, ...rest] = args
  if (!address || rest.length > 0) throw new SetupError(USAGE)
  const problem = addressProblem(address)
  if (problem !== null) throw new SetupError(`The address of the other cell ${problem}.`)
  const { cell, missing } = await asOwner(config, async (sql) => {
    const other = connect(address, { max: 1 })
    try {
      const cell = await join(sql, other, address)
      return { cell, missing: await addReports(sql, cell.number, address) }
    } finally {
      await other.end()
    }
  })
  console.log(
    `Joined cell ${cell.number} (${cell.name}). Run join there with the address of this cell within 5 minutes; after that marketing waits here until its first heartbeat.`,
  )
  if (missing !== null) console.log(missing)
}

async function join(sql: Sql, other: Sql, address: string): Promise<Cell> {
  const own = await readCell(sql)
  const theirs = await readCell(other).catch((error) => {
    const problem = connectionProblem(error)
    throw problem === null ? error : new SetupError(`The other cell: ${problem}.`)
  })
  checkCanJoin(own, theirs)
  await shareSalt(sql, own, theirs)
  await publishLists(sql, own.number)
  await publishLists(other, theirs.number)
  await sql`
    insert into app.cells as c (number, name, subscription, joined_at)
    values (${theirs.number}, ${theirs.name}, ${linkTo(theirs.number)}, now())
    on conflict (number) do update set name = excluded.name`
  await subscribe(sql, other, { address, own, theirs })
  return theirs
}

/** Gives this cell the salt of the other one, without which neither would know the other's erased people. */
async function shareSalt(sql: Sql, own: Cell, theirs: Cell): Promise<void> {
  if (own.salt === theirs.salt) return
  await sql.begin(async (tx) => {
    await tx`lock table app.suppression_hashes, app.global_suppression_hashes in share row exclusive mode`
    const [hashed] = await tx`
      select from app.suppression_hashes union all select from app.global_suppression_hashes limit 1`
    if (hashed) {
      throw new SetupError(
        theirs.hasHashes
          ? 'Both cells have erased people, by hashes of different salts: these cells cannot be joined.'
          : 'This cell has erased people, the other has none: run join in the other cell first, which takes over the salt.',
      )
    }
    await tx`update app.person_salt set salt = decode(${theirs.salt}, 'hex')`
  })
}

async function subscribe(
  sql: Sql,
  other: Sql,
  { address, own, theirs }: { address: string; own: Cell; theirs: Cell },
): Promise<void> {
  const subscription = linkTo(theirs.number)
  const slot = linkTo(own.number)
  const [connection] = await sql<{ literal: string }[]>`select quote_literal(${address}) as literal`
  const [known] = await sql`
    select from pg_subscription s join pg_database d on d.oid = s.subdbid
    where s.subname = ${subscription} and d.datname = current_database()`
  if (known) {
    await sql.unsafe(`alter subscription ${subscription} connection ${connection?.literal}`)
    await sql.unsafe(`alter subscription ${subscription} enable`)
    await sql.unsafe(`alter subscription ${subscription} refresh publication`)
    return
  }
  // What an earlier subscription brought or kept would be in the way of the first copy.
  for (const list of LISTS)
    await sql`delete from ${sql(`app.${list}`)} where cell = ${theirs.number}`
  await other`
    select pg_drop_replication_slot(s.slot_name) from pg_replication_slots s
    where s.slot_name = ${slot} and s.database = current_database() and not s.active`
  await sql.unsafe(
    `create subscription ${subscription} connection ${connection?.literal} publication ${PUBLICATION} with (slot_name = ${slot})`,
  )
}
