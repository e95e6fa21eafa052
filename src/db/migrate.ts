import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { runMigrations } from 'graphile-worker'
import { PgBoss } from 'pg-boss'
import { CODE_LOCK } from './call.ts'
import { type ClockSettings, connect, type Sql } from './client.ts'

const SQL_FOLDER = fileURLToPath(new URL('../../sql/', import.meta.url))
const CODE_SCHEMAS = ['core', 'api', 'ops'] as const

/** Any number will do, as long as every version of this program uses the same. */
const MIGRATE_LOCK = 5_402_117

type SqlFile = { name: string; text: string }

/**
 * Bring the database at `url` to this version: the queues' own schemas, migrations that were not
 * applied yet, and all SQL code replaced, one starter at a time. `url` is the owner's. Throws when
 * the file of an applied migration was changed.
 */
export async function migrate(url: string, clock?: ClockSettings): Promise<void> {
  const sql = connect(url, { max: 1, clock, applicationName: 'postgram migrate' })
  try {
    await sql`select pg_advisory_lock(${MIGRATE_LOCK})`
    await sql`set lock_timeout = '5s'`
    await createRoles(sql)
    await installQueues(url)
    await sql.unsafe(queueGrants)
    await applyMigrations(sql)
    await replaceCode(sql)
    await sql`select api.make_partitions()`
  } finally {
    await sql.end()
  }
}

/** The SHA-256 of the SQL code that belongs to this version; compare with api.health(). */
export async function codeSha256(): Promise<string> {
  const files = await Promise.all([...CODE_SCHEMAS, 'migrations'].map(readFolder))
  const hash = createHash('sha256')
  for (const { name, text } of files.flat()) hash.update(`${name}\0${text}\0`)
  return hash.digest('hex')
}

async function readFolder(folder: string): Promise<SqlFile[]> {
  const names = (await readdir(SQL_FOLDER + folder)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => ({
      name: `${folder}/${name}`,
      text: await readFile(`${SQL_FOLDER}${folder}/${name}`, 'utf8'),
    })),
  )
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

async function installQueues(url: string) {
  await runMigrations({ connectionString: url })
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false })
  await boss.start()
  await boss.stop({ graceful: false })
}

/** The queues' libraries work on their own tables directly; graphile-worker's hide behind row security. */
const queueGrants = `
  do $$
  declare
    v_schema text;
    v_table record;
  begin
    foreach v_schema in array array['graphile_worker', 'pgboss'] loop
      execute format('grant usage on schema %I to postgram_service', v_schema);
      execute format('grant all on all tables in schema %I to postgram_service', v_schema);
      execute format('grant all on all sequences in schema %I to postgram_service', v_schema);
      execute format('grant execute on all functions in schema %I to postgram_service', v_schema);
    end loop;
    for v_table in
      select c.relname from pg_class c
      where c.relnamespace = 'graphile_worker'::regnamespace and c.relkind = 'r' and c.relrowsecurity
        and not exists (select from pg_policy p where p.polrelid = c.oid and p.polname = 'postgram_service')
    loop
      execute format(
        'create policy postgram_service on graphile_worker.%I to postgram_service using (true) with check (true)',
        v_table.relname);
    end loop;
  end $$`

async function applyMigrations(sql: Sql) {
  await sql.unsafe(`
    create schema if not exists app;
    comment on schema app is 'What holds data; changed by migrations only.';
    create table if not exists app.migrations (
      id text primary key, sha256 text not null, applied_at timestamptz not null default now());
    comment on table app.migrations is 'Which files of sql/migrations were applied, as they were then.';
    create table if not exists app.code (
      is_only boolean primary key default true check (is_only),
      sha256 text not null, replaced_at timestamptz not null);
    comment on table app.code is 'Which version of the SQL code is in place.'`)
  const applied = await sql<{ id: string; sha256: string }[]>`select id, sha256 from app.migrations`
  const sha256ById = new Map(applied.map((row) => [row.id, row.sha256]))
  for (const { name, text } of await readFolder('migrations')) {
    const id = name.slice('migrations/'.length, -'.sql'.length)
    const sha256 = createHash('sha256').update(text).digest('hex')
    const known = sha256ById.get(id)
    if (known === sha256) continue
    if (known !== undefined) {
      throw new Error(
        `sql/${name} was changed after it was applied; put it back and write a new migration`,
      )
    }
    await sql.begin(async (tx) => {
      await tx`insert into app.migrations (id, sha256) values (${id}, ${sha256})`
      await tx.unsafe(text)
    })
  }
}

/** One transaction: callers wait some milliseconds and then find the new code, never none. */
async function replaceCode(sql: Sql) {
  const folders = await Promise.all(CODE_SCHEMAS.map(readFolder))
  const files = folders.flat()
  const isTypes = ({ name }: SqlFile) => name.endsWith('/types.sql')
  const isGrants = ({ name }: SqlFile) => name.endsWith('/grants.sql')
  const isAggregate = ({ text }: SqlFile) => text.startsWith('create aggregate')
  const isView = ({ text }: SqlFile) => text.startsWith('create view')
  const isFunction = (file: SqlFile) =>
    !isTypes(file) && !isGrants(file) && !isAggregate(file) && !isView(file)
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${CODE_LOCK})`
    // Bodies unchecked, so that functions may come in any order.
    await tx`set local check_function_bodies = off`
    await tx`drop schema if exists ops, api, core cascade`
    await tx.unsafe(`
      create schema core; create schema api; create schema ops;
      comment on schema core is 'Private helpers of api and ops; replaced at every migrate.';
      comment on schema api is 'All that the service may call; replaced at every migrate.';
      comment on schema ops is 'For people in psql, see ops.help; replaced at every migrate.'`)
    for (const kind of [isTypes, isFunction, isAggregate, isView, isGrants]) {
      for (const { name, text } of files.filter(kind)) {
        await tx.unsafe(text).catch((error) => {
          throw new Error(`sql/${name}: ${error.message}`, { cause: error })
        })
      }
    }
    await tx`
      insert into app.code (sha256, replaced_at) values (${await codeSha256()}, now())
      on conflict (is_only) do update set sha256 = excluded.sha256, replaced_at = excluded.replaced_at`
  })
}
