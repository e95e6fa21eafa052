import type { Config } from '../../config/index.ts'
import type { Sql } from '../../db/client.ts'
import { SetupError } from '../../errors.ts'
import { asOwner } from '../database.ts'
import { USAGE } from '../usage.ts'
import { changeReports } from './everywhere.ts'
import { linkTo, PUBLICATION } from './lists.ts'

/**
 * Ends what join began with the cell of this number, and drops its reports. The bounces, blocked numbers and erased
 * people of that cell stay in the lists. With --force the other cell need not be reached. Throws SetupError.
 */
export async function runLeave(config: Config, args: string[]): Promise<void> {
  const [text = '', flag, ...rest] = args
  const isForced = flag === '--force'
  if (!/^\d{1,2}$/.test(text) || (flag !== undefined && !isForced) || rest.length > 0) {
    throw new SetupError(USAGE)
  }
  await asOwner(config, (sql) => leave(sql, Number(text), isForced))
}

async function leave(sql: Sql, number: number, isForced: boolean): Promise<void> {
  const [own] = await sql<{ number: number }[]>`select number from app.cell`
  const [cell] = await sql`select from app.cells where number = ${number}`
  if (!own || !cell) throw new SetupError(`This cell has not joined cell ${number}.`)
  await unsubscribe(sql, { number, slot: linkTo(own.number), isForced })
  await changeReports(sql, async (tx) => {
    await tx.unsafe(`drop server if exists ${linkTo(number)} cascade`)
    // A claim or a heartbeat that never changes again would block a domain, or marketing, for ever.
    await tx`delete from app.name_claims where cell = ${number}`
    await tx`delete from app.cell_heartbeats where cell = ${number}`
    await tx`delete from app.forwarded_receipts where cell = ${number}`
    await tx`delete from app.cells where number = ${number}`
  })
  const [isUsed] = await sql`
    select from app.cells
    union all
    select from pg_replication_slots s
    where s.slot_name like 'postgram\_cell\_%' and s.database = current_database()
    limit 1`
  if (isUsed) return
  await sql.unsafe(`drop publication if exists ${PUBLICATION}`)
  await sql`delete from app.cell_heartbeats where cell = ${own.number}`
}

async function unsubscribe(
  sql: Sql,
  { number, slot, isForced }: { number: number; slot: string; isForced: boolean },
): Promise<void> {
  const subscription = linkTo(number)
  const [known] = await sql`
    select from pg_subscription s join pg_database d on d.oid = s.subdbid
    where s.subname = ${subscription} and d.datname = current_database()`
  if (!known) return
  await sql.unsafe(`alter subscription ${subscription} disable`)
  if (isForced) await sql.unsafe(`alter subscription ${subscription} set (slot_name = none)`)
  try {
    await sql.unsafe(`drop subscription ${subscription}`)
  } catch (error) {
    await sql.unsafe(`alter subscription ${subscription} enable`)
    throw new SetupError(
      `Cell ${number} cannot be asked to drop its slot (${(error as Error).message}): start its server, or add --force.`,
    )
  }
  if (isForced) {
    console.log(
      `If cell ${number} comes back, run there: select pg_drop_replication_slot('${slot}'). Until then its server keeps all WAL.`,
    )
  }
}
