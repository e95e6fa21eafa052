import type postgres from 'postgres'
import { CODE_SCHEMAS, codeSha256, readFolder, type SqlFile } from './sql-files.ts'

/** Drops schemas core, api and ops, and creates them again from the files of this version. */
export async function replaceCode(tx: postgres.TransactionSql): Promise<void> {
  const files = CODE_SCHEMAS.flatMap(readFolder).toSorted(
    (one, other) => rankOf(one) - rankOf(other),
  )
  // Without the check of bodies, functions may be created in any order.
  await tx`set local check_function_bodies = off`
  await tx`drop schema if exists ops, api, core cascade`
  await tx.unsafe(`
    create schema core; create schema api; create schema ops;
    comment on schema core is 'Private helpers of api and ops; replaced at every migrate.';
    comment on schema api is 'The functions that the service may call; replaced at every migrate.';
    comment on schema ops is 'For people in psql, see ops.help; replaced at every migrate.'`)
  await createAll(tx, files)
  const sha256 = await codeSha256()
  await tx`
    insert into app.former_code (sha256, replaced_at)
    select c.sha256, now() from app.code c where c.sha256 <> ${sha256}
    on conflict (sha256) do update set replaced_at = excluded.replaced_at`
  await tx`delete from app.former_code where sha256 = ${sha256}`
  await tx`
    insert into app.code (sha256, replaced_at) values (${sha256}, now())
    on conflict (is_only_row) do update set sha256 = excluded.sha256, replaced_at = excluded.replaced_at`
}

/**
 * Makes every session compile the functions again: a grant that changes nothing writes their rows. A session that calls a
 * function for the first time while the new code is being committed may compile it with the former types, which are
 * gone, and would go on with them: "cache lookup failed for type". Must be a later transaction than replaceCode().
 */
export const recompile = `
  do $$
  begin
    execute format('grant execute on all functions in schema core, api, ops to %s', (
      select n.nspowner::regrole from pg_namespace n where n.nspname = 'core'));
  end $$`

/** The place in the order: types, functions, aggregates of functions, views, grants. */
function rankOf({ name, text }: SqlFile): number {
  if (/\/types(_\w+)?\.sql$/.test(name)) return 0
  if (name.endsWith('/grants.sql')) return 4
  if (text.startsWith('create view')) return 3
  return text.startsWith('create aggregate') ? 2 : 1
}

/**
 * Sends all files in one message, because callers may wait for locks that migrations hold, and each message would be
 * a round trip. If that fails, sends them one by one to find the file with the error.
 */
async function createAll(tx: postgres.TransactionSql, files: SqlFile[]): Promise<void> {
  const text = files.map((file) => file.text).join('\n;')
  await tx
    .savepoint((inner) => inner.unsafe(text))
    .catch(async () => {
      for (const { name, text } of files) {
        await tx.unsafe(text).catch((error) => {
          const { code, message } = error
          throw Object.assign(new Error(`sql/${name}: ${message}`, { cause: error }), { code })
        })
      }
    })
}
