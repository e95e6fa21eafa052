import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { connect, type Sql } from '../../src/db/client.ts'
import {
  copyData,
  initialise,
  noPostgres,
  type Server,
  serverFolder,
  startServer,
} from '../fixtures/postgres.ts'
import { runCommand } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'

/** A cell on a Postgres of its own. */
export type TestCell = {
  number: number
  server: Server
  url: string
  sql: Sql
  run: (...args: string[]) => ReturnType<typeof runCommand>
}

export const DATABASE = 'postgram'

/** The data of a migrated cell, which each cell copies: to migrate takes longer than all else here. */
async function migratedData(folder: string): Promise<string> {
  const data = join(folder, 'migrated')
  await initialise(data)
  const server = await startServer(data, ['fsync = off'])
  const admin = connect(server.urlOf('postgres', 'postgres'), { max: 1 })
  await admin.unsafe(`create database ${DATABASE}`)
  await admin.end()
  const url = server.urlOf('postgres', DATABASE)
  t.same(await runCommand(['migrate'], { DATABASE_URL: url }), { code: 0, stdout: '', stderr: '' })
  const sql = connect(url, { max: 1 })
  // Cells are made one by one, so each has a salt of its own.
  await sql`delete from app.person_salt`
  await sql.end()
  await server.stop()
  return data
}

/** Starts a migrated cell with this number. */
export async function startCell(number: number, walLevel = 'logical'): Promise<TestCell> {
  const data = join(folder, `cell-${randomUUID()}`)
  await copyData(await migrated, data)
  const server = await startServer(data, [`wal_level = ${walLevel}`])
  const url = server.urlOf('postgres', DATABASE)
  const sql = connect(url, { max: 2 })
  t.teardown(() => sql.end())
  await sql`insert into app.person_salt (salt) values (sha256(convert_to(${randomUUID()}, 'UTF8')))`
  if (number > 1) await sql`select ops.set_cell(${number}, ${`cell ${number}`})`
  const run = (...args: string[]) => runCommand(args, { DATABASE_URL: url })
  return { number, server, url, sql, run }
}

const folder = await serverFolder()
const migrated = noPostgres ? Promise.resolve('') : migratedData(folder)

/** Whether a cell suppresses the address for every organisation. */
export const isSuppressed = async ({ sql }: TestCell, email: string) => {
  const rows =
    await sql`select from core.suppressed(gen_random_uuid(), array[${email}], 'transactional')`
  return rows.length > 0
}

export const untilAll = (
  cells: TestCell[],
  words: string,
  check: (cell: TestCell) => Promise<boolean>,
) =>
  until(`all cells: ${words}`, async () => (await Promise.all(cells.map(check))).every((ok) => ok))

/** All rows of the lists, which must be the same in every cell. */
export const listsOf = async ({ sql }: TestCell) => {
  const [row] = await sql<{ lists: unknown }[]>`
    select jsonb_build_object(
      'bounces', (select jsonb_agg(to_jsonb(b) order by b.email, b.cell) from app.hard_bounces b),
      'numbers', (select jsonb_agg(to_jsonb(b) order by b.phone, b.cell) from app.blocked_numbers b),
      'hashes', (select jsonb_agg(to_jsonb(g) order by g.sha256, g.cell) from app.global_suppression_hashes g),
      'names', (select jsonb_agg(to_jsonb(c) order by c.name, c.cell) from app.name_claims c)
    ) as lists`
  return row?.lists
}

export const untilSame = (cells: TestCell[]) =>
  until('the lists to be the same', async () => {
    const lists = await Promise.all(cells.map(async (cell) => JSON.stringify(await listsOf(cell))))
    return new Set(lists).size === 1
  })
