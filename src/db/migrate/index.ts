import { createHash } from 'node:crypto'
import type postgres from 'postgres'
import { SetupError } from '../../errors.ts'
import { CODE_LOCK } from '../call.ts'
import { type ClockSettings, connect } from '../client.ts'
import { breaks, readContract } from '../contract.ts'
import { checkServer } from '../server.ts'
import { breakingMigrations, refuseToBreak } from './breaking.ts'
import { databaseSettings } from './database-settings.ts'
import { LOCK_TIMEOUT, withLocks } from './locks.ts'
import { queueRights } from './queue-rights.ts'
import { checkQueues, installQueues } from './queues.ts'
import { recompile, replaceCode } from './replace-code.ts'
import { migrationId, readFolder, type SqlFile } from './sql-files.ts'

/** The advisory lock of a migrate that runs; every version uses this number. */
const MIGRATE_LOCK = 5_402_117

const LOCK_ATTEMPTS = 60

export type MigrateOptions = {
  /** POSTGRAM_NOW: with it the database follows such settings of a session, without it it keeps real time. */
  clock?: ClockSettings
  /** Whether functions that running processes call may go. */
  isBreaking?: boolean
  /** How often migrate tries to get its locks, about once a second. */
  lockAttempts?: number
  /** When aborted, migrate waits for no further lock. */
  signal?: AbortSignal
}

/**
 * Brings the database at `url`, the owner's address, to this version: the schemas of graphile-worker and pg-boss,
 * then in one transaction the migrations that are not applied yet and all SQL code. One migrate runs at a time.
 * Processes of older versions go on meanwhile and afterwards. Throws
 * - SetupError when the file of an applied migration was changed, a newer version upgraded the queues, a lock was not
 *   free in time, or processes run that could not go on; nothing that they use is changed then;
 * - Interrupted when the signal was aborted.
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<void> {
  const { clock, isBreaking = false, lockAttempts = LOCK_ATTEMPTS, signal } = options
  const sql = connect(url, { max: 1, clock, applicationName: 'postgram migrate' })
  try {
    await checkServer(sql)
    await sql.unsafe(`set lock_timeout = '${LOCK_TIMEOUT}'`)
    // Waits for another migrate without a limit and without the signal: a query that is cancelled on its way may
    // cancel the next one, or leave the connection open.
    const lock = () => sql`select pg_advisory_lock(${MIGRATE_LOCK})`
    const always = { attempts: Number.POSITIVE_INFINITY, signal, outcome: UNCHANGED }
    await withLocks(sql, lock, always)

    const step = (work: () => Promise<unknown>, outcome = UNCHANGED) =>
      withLocks(sql, work, { attempts: lockAttempts, signal, outcome })
    let areQueuesOld = false
    await step(async () => {
      areQueuesOld = await checkQueues(sql, isBreaking)
    })
    for (const statement of databaseSettings) await step(() => sql.unsafe(statement))
    await step(() => installQueues(url, LOCK_TIMEOUT), areQueuesOld ? UNFINISHED_QUEUES : UNCHANGED)

    const outcome = areQueuesOld ? UPGRADED_QUEUES : UNCHANGED
    await step(() => sql.unsafe(queueRights), outcome)
    await step(() => sql.unsafe(bookkeeping), outcome)
    const hasTestClock = Object.keys(clock ?? {}).length > 0
    await step(() => sql.begin((tx) => upgrade(tx, { isBreaking, hasTestClock, outcome })), outcome)
    await step(() => sql.unsafe(recompile), IS_UPGRADED)
    // Needs locks as well: a clock, or a process that starts, may make partitions at the same time.
    await step(() => sql`select api.make_partitions()`, IS_UPGRADED)
    await step(() => sql.begin(makeEverywhere), IS_UPGRADED)
  } finally {
    await sql.end()
  }
}

/**
 * Runs in one transaction: callers wait some milliseconds and then find the new tables with the new code, never a
 * mixture.
 */
async function upgrade(
  tx: postgres.TransactionSql,
  {
    isBreaking,
    hasTestClock,
    outcome,
  }: { isBreaking: boolean; hasTestClock: boolean; outcome: string },
): Promise<void> {
  await tx`select pg_advisory_xact_lock(${CODE_LOCK})`
  const before = await readContract(tx)
  await tx.unsafe(dropEverywhere)
  const applied = await applyMigrations(tx)
  await replaceCode(tx)
  if (hasTestClock) await tx.unsafe(switchTestClockOn)
  if (isBreaking) return
  const problems = breaks(before, await readContract(tx))
  await refuseToBreak(tx, [...problems, ...breakingMigrations(applied)], { outcome })
}

/** Apart from upgrade(), because callers would wait for it: it takes some 0.1 s for each other cell. */
async function makeEverywhere(tx: postgres.TransactionSql): Promise<void> {
  await tx`select pg_advisory_xact_lock(${CODE_LOCK})`
  await tx`select core.make_everywhere()`
}

/** The code of an older version may lack the function. */
const dropEverywhere = `
  do $$
  begin
    if to_regprocedure('core.drop_everywhere()') is not null then
      perform core.drop_everywhere();
    end if;
  end $$`

const switchTestClockOn = `
  create or replace function core.has_test_clock() returns boolean language sql stable as 'select true'`

const UNCHANGED = 'Nothing was changed.'
const UPGRADED_QUEUES = "Nothing was changed but the queues' own tables."
const UNFINISHED_QUEUES = "The last step of the queues' own upgrade is missing: run migrate again."
const IS_UPGRADED =
  'The database is of this version, but may lack partitions and reports over cells: run migrate again.'

/** The tables in which migrate records what is applied. */
const bookkeeping = `
  create schema if not exists app;
  comment on schema app is 'What holds data; changed by migrations only.';
  create table if not exists app.migrations (
    id text primary key, sha256 text not null, applied_at timestamptz not null default now());
  comment on table app.migrations is 'The applied files of sql/migrations, with their hashes at that time.';
  create table if not exists app.code (
    is_only_row boolean primary key default true constraint code_one_row check (is_only_row),
    sha256 text not null, replaced_at timestamptz not null);
  comment on table app.code is 'Which version of the SQL code is in place.';
  create table if not exists app.former_code (
    sha256 text primary key, replaced_at timestamptz not null);
  comment on table app.former_code is
    'Versions of the SQL code that were replaced. A process of one of them does not install its code again.'`

/** Applies the migrations that are not applied yet, and returns them. */
async function applyMigrations(tx: postgres.TransactionSql): Promise<SqlFile[]> {
  const rows = await tx<{ id: string; sha256: string }[]>`select id, sha256 from app.migrations`
  const sha256ById = new Map(rows.map((row) => [row.id, row.sha256]))
  const applied: SqlFile[] = []
  for (const file of readFolder('migrations')) {
    const { name, text } = file
    const id = migrationId(name)
    const sha256 = createHash('sha256').update(text).digest('hex')
    const known = sha256ById.get(id)
    if (known === sha256) continue
    if (known !== undefined) {
      throw new SetupError(
        `sql/${name} was changed after it was applied; restore it and write a new migration`,
      )
    }
    await tx`insert into app.migrations (id, sha256) values (${id}, ${sha256})`
    await tx.unsafe(text)
    applied.push(file)
  }
  return applied
}
