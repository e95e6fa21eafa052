import type { Sql } from '../../db/client.ts'

/** The publication of the lists that a cell shares. */
export const PUBLICATION = 'postgram_cell'

/** The subscription to the lists of a cell, the slot that keeps changes for it, and the foreign server of its reports. */
export const linkTo = (number: number) => `postgram_cell_${number}`

/** The tables that cells share, each with the cell in its primary key. */
export const LISTS = [
  'hard_bounces',
  'blocked_numbers',
  'global_suppression_hashes',
  'name_claims',
  'cell_heartbeats',
  'forwarded_receipts',
]

/** The lists that are older than cells, with the column of their keys. */
const OLDER_LISTS = { hard_bounces: 'email', blocked_numbers: 'phone' }

/**
 * Publishes the rows of this cell, and begins its heartbeats. `sql` is the owner's. Writers do not wait while the keys of
 * the lists get the cell's number: the index is built beside them.
 */
export async function publishLists(sql: Sql, number: number): Promise<void> {
  await addCellToKeys(sql)
  const tables = LISTS.map((name) => `app.${name} where (cell = ${number})`).join(', ')
  const [known] = await sql`select from pg_publication where pubname = ${PUBLICATION}`
  await sql.unsafe(
    known
      ? `alter publication ${PUBLICATION} set table ${tables}`
      : `create publication ${PUBLICATION} for table ${tables} with (publish = 'insert, update, delete')`,
  )
  await sql`
    insert into app.cell_heartbeats (cell, heartbeat_at) values (${number}, now()) on conflict do nothing`
}

/** Adds the number of the cell to the primary keys of the lists that are older than cells. */
export async function addCellToKeys(sql: Sql): Promise<void> {
  for (const [table, column] of Object.entries(OLDER_LISTS)) {
    const [key] = await sql<{ columns: number }[]>`
      select cardinality(c.conkey) as columns from pg_constraint c
      where c.conrelid = ${`app.${table}`}::regclass and c.contype = 'p'`
    if (key?.columns !== 1) continue
    const index = `${table}_cell`
    // An earlier attempt that was interrupted has left an index that is not valid.
    await sql.unsafe(`drop index if exists app.${index}`)
    await sql.unsafe(`create unique index concurrently ${index} on app.${table} (${column}, cell)`)
    await sql.unsafe(`
      alter table app.${table}
        drop constraint ${table}_pkey,
        add constraint ${table}_pkey primary key using index ${index}`)
  }
}
