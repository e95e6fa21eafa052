import t from 'tap'
import { createDatabase, joinForReports, rolledBack, type Tx } from '../fixtures/database.ts'

const { sql } = await createDatabase()

const columnsIn = async (tx: Tx, schema: string) => {
  const rows = await tx<{ name: string; columns: string[] }[]>`
    select c.relname as name, array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace::regnamespace::text = ${schema} group by c.relname order by c.relname`
  return new Map(rows.map(({ name, columns }) => [name, columns]))
}

t.test('core.make_everywhere: its views have the cell and the columns of ops', async (t) => {
  await rolledBack(sql, async (tx) => {
    await joinForReports(tx)
    await tx`select core.make_everywhere()`
    const ops = await columnsIn(tx, 'ops')
    const views = await columnsIn(tx, 'everywhere')
    t.same(
      await columnsIn(tx, 'cell_2'),
      new Map([...views.keys()].map((name) => [name, ops.get(name)])),
    )
    for (const [name, columns] of views) {
      t.same(columns, ['cell smallint', ...(ops.get(name) ?? [])], name)
    }
    const [{ text }] = await tx<[{ text: string }]>`
      select pg_get_functiondef('core.make_everywhere()'::regprocedure) as text`
    const listed = /array\[([^\]]*)\]/.exec(text)?.[1]?.match(/\w+/g)
    t.same([...views.keys()], listed, 'each view that it lists exists in ops')
  })
})

t.test('core.make_everywhere: reads no other cell for a condition on this one', async (t) => {
  await rolledBack(sql, async (tx) => {
    await joinForReports(tx)
    await tx`select core.make_everywhere()`
    for (const name of (await columnsIn(tx, 'everywhere')).keys()) {
      const plan = await tx.unsafe(
        `explain (costs off) select * from everywhere.${name} where cell <> 2`,
      )
      t.notMatch(JSON.stringify(plan), /Foreign Scan/, name)
    }
  })
})

t.test('core.make_everywhere: without another cell it leaves all schemas alone', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`create schema everywhere`
    await tx`create schema cell_2`
    await tx`create table everywhere.mine ()`
    await tx`select core.make_everywhere()`
    t.equal((await tx`select from everywhere.mine`).length, 0)
    const [found] = await tx`select to_regnamespace('cell_2') is not null as is_kept`
    t.same(found, { isKept: true })
  })
})

t.test('core.make_everywhere: omits a cell without a foreign server', async (t) => {
  await rolledBack(sql, async (tx) => {
    await joinForReports(tx)
    await tx`
      insert into app.cells (number, name, subscription, joined_at)
      values (3, 'third', 'postgram_cell_3', now())`
    await tx`select core.make_everywhere()`
    t.ok((await columnsIn(tx, 'cell_2')).size > 20)
    t.equal((await columnsIn(tx, 'cell_3')).size, 0)
    await tx`drop server postgram_cell_2 cascade`
    await tx`select core.make_everywhere()`
    t.equal((await columnsIn(tx, 'everywhere')).size, 0)
  })
})
