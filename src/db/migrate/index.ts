import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type postgres from 'postgres'
import { SetupError } from '../../errors.ts'
import { CODE_LOCK } from '../call.ts'
import { type ClockSettings, connect, type Sql } from '../client.ts'
import { breaks, readContract } from '../contract.ts'
import { checkServer } from '../server.ts'
import { refuseBeforeBaseline } from './baseline.ts'
import { breakingMigrations, refuseToBreak } from './breaking.ts'
import { queueRights } from './queue-rights.ts'
import { checkQueues, installQueues } from './queues.ts'
import { replaceCode } from './replace-code.ts'
import { migrationId, readFolder, type SqlFile } from './sql-files.ts'

/** Any number will do, as long as every version of this program uses the same. */
const MIGRATE_LOCK = 5_402_117

/**
 * How long is waited for a lock on a table. Who comes after us waits for us as well, so no longer than
 * a caller may; and less than deadlock_timeout (1 s), so that of a caller and us, each waiting for the
 * other, it is us who give way.
 */
const LOCK_TIMEOUT = '500ms'
const LOCK_ATTEMPTS = 60
const LOCK_PAUSE_MS = 500

export type MigrateOptions = {
  /** A time or a shift (POSTGRAM_NOW) has the database follow such settings; none has it keep real time. */
  clock?: ClockSettings
  /** Whether processes that run now may be left without what they call. */
  isBreaking?: boolean
  /** How often it is tried to get the locks that it needs, about once a second. */
  lockAttempts?: number
  /** When aborted, it waits for no lock any more. */
  signal?: AbortSignal
}

/** It was aborted before the database was of this version. */
export class Interrupted extends SetupError {
  constructor(outcome: string) {
    super(`migrate was stopped while it waited. ${outcome}`)
  }
}

/**
 * Bring the database at `url` to this version: the queues' own schemas, then in one transaction the
 * migrations that were not applied yet and all SQL code, one starter at a time. Processes of older
 * versions go on meanwhile and after. `url` is the owner's. Throws when the file of an applied
 * migration was changed, Breaking, having changed nothing that they miss, when processes run that could
 * not go on, Outdated when a newer version upgraded the queues, and Interrupted.
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<void> {
  const { clock, isBreaking = false, lockAttempts = LOCK_ATTEMPTS, signal } = options
  const sql = connect(url, { max: 1, clock, applicationName: 'postgram migrate' })
  try {
    await checkServer(sql)
    await sql.unsafe(`set lock_timeout = '${LOCK_TIMEOUT}'`)
    // For another migrate it waits for as long as that takes. A question that is cancelled while it is on its
    // way may take the next one with it, or leave the connection open for good.
    const takeTurn = () => sql`select pg_advisory_lock(${MIGRATE_LOCK})`
    await patiently(sql, { attempts: Number.POSITIVE_INFINITY, signal }, takeTurn, UNCHANGED)
    const step = (work: () => Promise<unknown>, outcome = UNCHANGED) =>
      patiently(sql, { attempts: lockAttempts, signal }, work, outcome)
    await step(() => refuseBeforeBaseline(sql))
    let areQueuesOld = false
    await step(async () => {
      areQueuesOld = await checkQueues(sql, isBreaking)
    })
    await step(() => createRoles(sql))
    await step(() => sql.unsafe(revokeTemporary))
    await step(() => sql.unsafe(turnOffJit))
    await step(() => sql.unsafe(grantTempFileLimit))
    await step(() => installQueues(url, LOCK_TIMEOUT), areQueuesOld ? UNFINISHED_QUEUES : UNCHANGED)
    const outcome = areQueuesOld ? UPGRADED_QUEUES : UNCHANGED
    await step(() => sql.unsafe(queueRights), outcome)
    await step(() => sql.unsafe(bookkeeping), outcome)
    const hasTestClock = Object.keys(clock ?? {}).length > 0
    await step(() => sql.begin((tx) => upgrade(tx, { isBreaking, hasTestClock, outcome })), outcome)
    // A clock, or a process that starts, may be at it as well.
    await step(() => sql`select api.make_partitions()`, IS_UPGRADED)
  } finally {
    await sql.end()
  }
}

/**
 * One transaction: callers wait some milliseconds and then find the new tables with the new code, never
 * one with the other's.
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
  const applied = await applyMigrations(tx)
  await replaceCode(tx)
  if (hasTestClock) await tx.unsafe(switchTestClockOn)
  if (isBreaking) return
  const problems = breaks(before, await readContract(tx))
  await refuseToBreak(tx, [...problems, ...breakingMigrations(applied)], { outcome })
}

const switchTestClockOn = `
  create or replace function core.has_test_clock() returns boolean language sql stable as 'select true'`

/** Tries work that needs locks until it has them; a transaction that lost its patience left nothing behind. */
async function patiently(
  sql: Sql,
  { attempts, signal }: { attempts: number; signal: AbortSignal | undefined },
  work: () => Promise<unknown>,
  outcome: string,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    if (signal?.aborted) throw new Interrupted(outcome)
    try {
      await work()
      return
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error
      if (attempt === attempts) throw await whoIsInTheWay(sql, outcome)
      await pause(LOCK_PAUSE_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

const LOCK_NOT_AVAILABLE = '55P03'

const UNCHANGED = 'Nothing was changed.'
const UPGRADED_QUEUES = "Nothing was changed but the queues' own tables."
const UNFINISHED_QUEUES =
  "Of the queues' own upgrade the last step was not made: run migrate again."
const IS_UPGRADED = 'The database is of this version, but may lack partitions: run migrate again.'

async function whoIsInTheWay(sql: Sql, outcome: string): Promise<Error> {
  const [oldest] = await sql<{ pid: number; application: string; since: string }[]>`
    select a.pid, a.application_name as application, to_char(a.xact_start, 'HH24:MI:SS') as since
    from pg_stat_activity a
    where a.datname = current_database() and a.pid <> pg_backend_pid() and a.xact_start is not null
    order by a.xact_start
    limit 1`
  const who = oldest
    ? `; the oldest transaction is that of process ${oldest.pid} (${oldest.application}), since ${oldest.since}`
    : ''
  return new SetupError(`a lock that migrate needs is held all the time${who}. ${outcome}`)
}

/**
 * Roles belong to the whole server, so another database's migration may make them meanwhile. An
 * owner who is no superuser grants them to itself, to take them on and to hand them to people.
 */
async function createRoles(sql: Sql) {
  await sql.unsafe(`
    do $$
    declare
      -- From Postgres 16 on to take a role on is a right of its own, which its creator lacks.
      v_right text := case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end;
      v_role text;
    begin
      foreach v_role in array array['postgram_service', 'postgram_operator', 'postgram_report'] loop
        begin
          if not exists (select from pg_roles where rolname = v_role) then
            execute format('create role %I nologin', v_role);
          end if;
        exception when duplicate_object or unique_violation then null;
        end;
        begin
          if not pg_has_role(current_user, v_role, v_right) then
            execute format('grant %I to %I', v_role, current_user);
          end if;
        exception when unique_violation then null;
        end;
      end loop;
    exception when insufficient_privilege then
      raise insufficient_privilege using message = format(
        'the roles of Postgram need a superuser: "alter role %1$I createrole", or where they exist '
        '"grant postgram_service, postgram_operator, postgram_report to %1$I"', current_user);
    end $$`)
}

/**
 * The service limits the temporary files of its statements (src/db/pools.ts). Only a superuser can grant
 * this; where the owner is none, ops.checks reports that it is missing.
 */
const grantTempFileLimit = `
  do $$
  begin
    if not has_parameter_privilege('postgram_service', 'temp_file_limit', 'set') then
      grant set on parameter temp_file_limit to postgram_service;
    end if;
  -- The last two: another migrate on this server grants it at the same moment.
  exception when insufficient_privilege or unique_violation or internal_error then null;
  end $$`

/**
 * Only the owner may create temporary objects: everybody else could put a type or table of their own in
 * front of ours, where a statement with other rights than theirs looks for it. A login that does not own
 * the database cannot revoke this; ops.checks says so then.
 */
const revokeTemporary = `
  do $$
  begin
    if has_database_privilege('public', current_database(), 'temporary') then
      execute format('revoke temporary on database %I from public', current_database());
    end if;
  exception when insufficient_privilege then null;
  end $$`

/**
 * Statements here either reach rows by a key or read many partitions, for each of which JIT compiles
 * expressions of its own: that took ten times as long as running them. A login that does not own the
 * database cannot set this.
 */
const turnOffJit = `
  do $$
  begin
    if not exists (
      select from pg_db_role_setting s
      join pg_database d on d.oid = s.setdatabase
      where d.datname = current_database() and s.setrole = 0 and s.setconfig::text ~ '[{,]jit='
    ) then
      execute format('alter database %I set jit = off', current_database());
    end if;
  exception when insufficient_privilege then null;
  end $$`

/** What migrate has to know, before there are migrations. */
const bookkeeping = `
  create schema if not exists app;
  comment on schema app is 'What holds data; changed by migrations only.';
  create table if not exists app.migrations (
    id text primary key, sha256 text not null, applied_at timestamptz not null default now());
  comment on table app.migrations is 'Which files of sql/migrations were applied, as they were then.';
  create table if not exists app.code (
    is_only_row boolean primary key default true constraint code_one_row check (is_only_row),
    sha256 text not null, replaced_at timestamptz not null);
  comment on table app.code is 'Which version of the SQL code is in place.';
  create table if not exists app.former_code (
    sha256 text primary key, replaced_at timestamptz not null);
  comment on table app.former_code is
    'Versions of the SQL code that others took the place of: a process of one of them that is started again does not bring it back.'`

/** Answers with those that were not applied before. */
async function applyMigrations(tx: postgres.TransactionSql): Promise<SqlFile[]> {
  const rows = await tx<{ id: string; sha256: string }[]>`select id, sha256 from app.migrations`
  const sha256ById = new Map(rows.map((row) => [row.id, row.sha256]))
  const applied: SqlFile[] = []
  for (const file of await readFolder('migrations')) {
    const { name, text } = file
    const id = migrationId(name)
    const sha256 = createHash('sha256').update(text).digest('hex')
    const known = sha256ById.get(id)
    if (known === sha256) continue
    if (known !== undefined) {
      throw new SetupError(
        `sql/${name} was changed after it was applied; put it back and write a new migration`,
      )
    }
    await tx`insert into app.migrations (id, sha256) values (${id}, ${sha256})`
    await tx.unsafe(text)
    applied.push(file)
  }
  return applied
}
