import t from 'tap'
import { createDatabase, raisedBy, rolledBack } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()

t.test('ops.set_cell: API keys of a further cell have its letter', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.block_number('+27821230001')`
    const [cell] = await tx`select ops.set_cell(2, 'second') as letter`
    t.equal(cell?.letter, 'b')
    t.same([...(await tx`select cell from app.blocked_numbers`)], [{ cell: 2 }])
    t.match(
      [...(await tx`select * from ops.cells`)],
      [{ number: 2, letter: 'b', name: 'second', isThisCell: true }],
    )
    await tx`select ops.create_organisation('Acme', 'owner@acme.example', 'starter')`
    const [{ key } = {}] = await tx`select ops.create_api_key('Acme', 'test', '{read}') as key`
    t.match(key, /^sk_test_b_[0-9a-f]{64}$/)
  })
})

t.test('ops.set_cell: refuses a number once API keys or other cells exist', async (t) => {
  await createOrganisation(sql)
  await rolledBack(sql, async (tx) => {
    const change = (number: number) =>
      raisedBy(tx, (inner) => inner`select ops.set_cell(${number}, 'second')`)
    t.match(await change(2), { message: /API keys of cell 1 exist/ })
    t.match(await change(27), { message: /from 1 to 26/ })
    await tx`
      insert into app.cells (number, name, subscription, joined_at)
      values (2, 'second', 'postgram_cell_2', now())`
    t.match(await change(3), { message: /other cells know this cell as number 1/ })
    await tx`select ops.set_cell(1, 'first')`
    t.match([...(await tx`select number, name from app.cell`)], [{ number: 1, name: 'first' }])
  })
})
