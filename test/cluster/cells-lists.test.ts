import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { noPostgres, startServer } from '../fixtures/postgres.ts'
import {
  DATABASE,
  isSuppressed,
  listsOf,
  startCell,
  type TestCell,
  untilAll,
  untilSame,
} from './cells.ts'

const EMAIL = 'gone@acme.example'
const PHONE = '+27821230001'

const isBlocked = async ({ sql }: TestCell) => {
  const rows = await sql`select from core.marketing_obstacle(gen_random_uuid(), ${PHONE}, '', now())
    join core.blocked_numbers_of(${PHONE}) on true`
  return rows.length > 0
}

t.test('cells of two and three servers', { skip: noPostgres }, async (t) => {
  const first = await startCell(1)
  const second = await startCell(2)
  const third = await startCell(3)
  const pair = [first, second]
  const all = [...pair, third]

  t.test('join: refuses the cell itself, an equal number and a login without rights', async (t) => {
    t.match(await first.run('join', first.url), { code: 1, stderr: /that of this cell itself/ })
    await third.sql`select ops.set_cell(1, 'twin')`
    t.match(await first.run('join', third.url), { code: 1, stderr: /have the number 1/ })
    await third.sql`select ops.set_cell(3, 'third')`
    await second.sql`create role plain login`
    const plain = second.url.replace('postgres@', 'plain@')
    t.match(await first.run('join', plain), { code: 1 })
  })

  t.test('join: copies the lists that the other cell has already', async (t) => {
    await first.sql`select ops.suppress_globally('before@acme.example', 'of the first')`
    await second.sql`select ops.block_number('+27821230009', 'of the second')`
    t.match(await first.run('join', second.url), { code: 0, stdout: /^Joined cell 2/ })
    t.match(await second.run('join', first.url), { code: 0, stdout: /^Joined cell 1/ })
    await untilSame(pair)
    t.equal(await isSuppressed(second, 'before@acme.example'), true)
  })

  t.test('join: changes nothing when it is repeated', async (t) => {
    const before = await listsOf(first)
    t.match(await first.run('join', second.url), { code: 0 })
    t.same(await listsOf(first), before)
  })

  t.test('the same address that bounces in both cells at once: no conflict', async (t) => {
    // Both wait until the other has written, so neither knows of the other's row.
    await first.sql`alter subscription postgram_cell_2 disable`
    await second.sql`alter subscription postgram_cell_1 disable`
    for (const { sql, number } of pair)
      await sql`select ops.suppress_globally(${EMAIL}, ${`of ${number}`})`
    await first.sql`alter subscription postgram_cell_2 enable`
    await second.sql`alter subscription postgram_cell_1 enable`
    await untilSame(pair)
    const rows =
      await first.sql`select cell from app.hard_bounces where email = ${EMAIL} order by cell`
    t.same([...rows], [{ cell: 1 }, { cell: 2 }])
    for (const { sql } of pair) {
      const [{ errors }] = await sql<[{ errors: number }]>`
        select sum(errors)::integer as errors from ops.cells`
      t.equal(errors, 0)
    }
  })

  t.test(
    'ops.unsuppress_globally: takes effect in the other cell, a later bounce again',
    async (_t) => {
      await second.sql`select ops.unsuppress_globally(${EMAIL})`
      await untilAll(pair, 'address allowed', async (cell) => !(await isSuppressed(cell, EMAIL)))
      await first.sql`select ops.suppress_globally(${EMAIL}, 'again')`
      await untilAll(pair, 'address suppressed', (cell) => isSuppressed(cell, EMAIL))
      await untilSame(pair)
    },
  )

  t.test('ops.block_number and ops.unblock_number: take effect in the other cell', async (t) => {
    await first.sql`select ops.block_number(${PHONE})`
    await untilAll(pair, 'number blocked', isBlocked)
    await second.sql`select ops.unblock_number(${PHONE})`
    await untilAll(pair, 'number allowed', async (cell) => !(await isBlocked(cell)))
    t.pass('the removal of a row of the other cell is known in both')
  })

  t.test('ops.erase_person: the other cell suppresses the person by hash', async (t) => {
    await first.sql`select ops.suppress_globally('erased@acme.example')`
    await untilSame(pair)
    await first.sql`select ops.erase_person('erased@acme.example')`
    await untilSame(pair)
    const named = await second.sql`select from app.hard_bounces where email = 'erased@acme.example'`
    t.same([...named], [])
    t.equal(await isSuppressed(second, 'erased@acme.example'), true)
  })

  t.test('a third cell: each row travels from its own cell only', async (t) => {
    for (const one of pair) {
      t.match(await third.run('join', one.url), { code: 0 })
      t.match(await one.run('join', third.url), { code: 0 })
    }
    await untilSame(all)
    await third.sql`select ops.suppress_globally('third@acme.example')`
    await untilAll(all, 'suppressed', (cell) => isSuppressed(cell, 'third@acme.example'))
    await untilSame(all)
    t.equal(await isSuppressed(third, 'erased@acme.example'), true, 'the salt is the same')
  })

  t.test('join: refuses cells that erased people under different salts', async (t) => {
    const fourth = await startCell(4)
    await fourth.sql`select ops.suppress_globally('other@acme.example')`
    await fourth.sql`select ops.erase_person('other@acme.example')`
    t.match(await fourth.run('join', first.url), { code: 1, stderr: /hashes of different salts/ })
  })

  t.test('leave: drops the subscription and its slot, and keeps the suppressions', async (t) => {
    t.match(await third.run('leave', '1'), { code: 0, stderr: '' })
    const slots =
      await first.sql`select from pg_replication_slots where slot_name = 'postgram_cell_3'`
    t.same([...slots], [])
    t.equal(await isSuppressed(third, EMAIL), true)
    t.match(await third.run('leave', '1'), { code: 1, stderr: /has not joined cell 1/ })
    t.match(await third.run('join', first.url), { code: 0 })
    await untilSame(all)
  })
})

t.test('leave --force: ends a join with a cell that is gone', { skip: noPostgres }, async (t) => {
  const [here, gone] = [await startCell(1), await startCell(2)]
  t.match(await here.run('join', gone.url), { code: 0 })
  t.match(await gone.run('join', here.url), { code: 0 })
  await here.sql`select ops.suppress_globally(${EMAIL})`
  await untilSame([here, gone])
  await gone.server.stop()

  t.match(await here.run('leave', '2'), { code: 1, stderr: /start its server, or add --force/ })
  const [kept] = await here.sql`
    select subenabled as is_enabled from pg_subscription where subname = 'postgram_cell_2'`
  t.same(kept, { isEnabled: true }, 'a refusal changes nothing')

  const forced = await here.run('leave', '2', '--force')
  t.match(forced, { code: 0, stdout: /^If cell 2 comes back, run there: / })
  t.same([...(await here.sql`select from pg_subscription`)], [])
  t.same([...(await here.sql`select number from ops.cells`)], [{ number: 1 }])
  t.equal(await isSuppressed(here, EMAIL), true)

  const back = await startServer(gone.server.data)
  const sql = connect(back.urlOf('postgres', DATABASE), { max: 1 })
  t.teardown(() => sql.end())
  const slots = () => sql`select slot_name from pg_replication_slots`
  t.same([...(await slots())], [{ slotName: 'postgram_cell_1' }], 'the slot keeps WAL')
  await sql.unsafe(/run there: (.+?)\. /.exec(forced.stdout)?.[1] ?? '')
  t.same([...(await slots())], [])
})

t.test('join: refuses a server without logical replication', { skip: noPostgres }, async (t) => {
  const [one, other] = [await startCell(1), await startCell(2, 'replica')]
  t.match(await one.run('join', other.url), {
    code: 1,
    stderr: /wal_level of the other cell is replica/,
  })
})
