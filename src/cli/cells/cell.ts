import type { Sql } from '../../db/client.ts'
import { SetupError } from '../../errors.ts'

export type Cell = {
  number: number
  name: string
  /** The server and the database, the same for two addresses of one database, and another one for a copy of it. */
  place: string
  walLevel: string
  canSubscribe: boolean
  canReplicate: boolean
  /** The salt of the hashes of erased people, and whether there are any. */
  salt: string
  hasHashes: boolean
}

/** Returns what a join has to know of a cell. `sql` is its owner's. Throws SetupError if it is of an older version. */
export async function readCell(sql: Sql): Promise<Cell> {
  const [found] = await sql`select where to_regclass('app.cell') is not null`
  if (!found) throw new SetupError('The database has no cell yet: run npm run migrate there first.')
  const [cell] = await sql<Cell[]>`
    select c.number, c.name, current_setting('wal_level') as wal_level,
      concat_ws('/', (select s.system_identifier from pg_control_system() s), pg_postmaster_start_time(),
        current_database()) as place,
      r.rolsuper or coalesce((
        select pg_has_role(p.oid, 'member') from pg_roles p where p.rolname = 'pg_create_subscription'), false
      ) as can_subscribe,
      r.rolsuper or r.rolreplication as can_replicate,
      encode((select s.salt from app.person_salt s), 'hex') as salt,
      exists (select from app.suppression_hashes) or exists (select from app.global_suppression_hashes) as has_hashes
    from app.cell c, pg_roles r
    where r.rolname = current_user`
  if (!cell) throw new SetupError('The database has lost its row of app.cell.')
  return cell
}

/** Throws SetupError if a cell cannot receive the lists of another. */
export function checkCanJoin(own: Cell, other: Cell): void {
  if (own.place === other.place) {
    throw new SetupError(
      'The address is that of this cell itself: give the address of the other cell.',
    )
  }
  if (own.number === other.number) {
    throw new SetupError(
      `Both cells have the number ${own.number}: in the new one, before its first API key, run select ops.set_cell(2, 'second').`,
    )
  }
  for (const [words, { walLevel }] of [
    ['this cell', own],
    ['the other cell', other],
  ] as const) {
    if (walLevel === 'logical') continue
    throw new SetupError(
      `wal_level of ${words} is ${walLevel}: set wal_level = logical and restart its Postgres.`,
    )
  }
  if (!own.canSubscribe) {
    throw new SetupError(
      'Only a superuser may create a subscription in Postgres 15, from 16 on also a member of pg_create_subscription: set MIGRATE_DATABASE_URL to the address of one.',
    )
  }
  if (!other.canReplicate) {
    throw new SetupError(
      "The login in the address may not replicate: give the address of the other cell's owner, and run there as a superuser: alter role … replication.",
    )
  }
}
