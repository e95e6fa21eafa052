import type postgres from 'postgres'
import { CODE_SCHEMAS, codeSha256, readFolder, type SqlFile } from './sql-files.ts'

/** Drops schemas core, api and ops and makes them from the files of this version. */
export async function replaceCode(tx: postgres.TransactionSql): Promise<void> {
  const folders = await Promise.all(CODE_SCHEMAS.map(readFolder))
  const files = folders.flat()
  const isTypes = ({ name }: SqlFile) => /\/types(_\w+)?\.sql$/.test(name)
  const isGrants = ({ name }: SqlFile) => name.endsWith('/grants.sql')
  const isAggregate = ({ text }: SqlFile) => text.startsWith('create aggregate')
  const isView = ({ text }: SqlFile) => text.startsWith('create view')
  const isFunction = (file: SqlFile) =>
    !isTypes(file) && !isGrants(file) && !isAggregate(file) && !isView(file)
  // Bodies unchecked, so that functions may come in any order.
  await tx`set local check_function_bodies = off`
  await tx`drop schema if exists ops, api, core cascade`
  await tx.unsafe(`
    create schema core; create schema api; create schema ops;
    comment on schema core is 'Private helpers of api and ops; replaced at every migrate.';
    comment on schema api is 'All that the service may call; replaced at every migrate.';
    comment on schema ops is 'For people in psql, see ops.help; replaced at every migrate.'`)
  const kinds = [isTypes, isFunction, isAggregate, isView, isGrants]
  await createAll(
    tx,
    kinds.flatMap((kind) => files.filter(kind)),
  )
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
 * All in one message: callers may wait for locks that migrations took, and so must not wait for as many
 * round trips as there are files. One that fails is found by going through them singly.
 */
async function createAll(tx: postgres.TransactionSql, files: SqlFile[]): Promise<void> {
  const text = files.map((file) => file.text).join('\n;')
  await tx
    .savepoint((inner) => inner.unsafe(text))
    .catch(async () => {
      for (const { name, text } of files) {
        await tx.unsafe(text).catch((error) => {
          const { code } = error
          throw Object.assign(new Error(`sql/${name}: ${error.message}`, { cause: error }), {
            code,
          })
        })
      }
    })
}
