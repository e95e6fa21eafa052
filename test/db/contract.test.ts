import t from 'tap'
import { signatures } from '../../src/db/api.gen.ts'
import { breaks, type Contract, readContract, type Signature } from '../../src/db/contract.ts'
import { createDatabase, rolledBack } from '../fixtures/database.ts'

const { sql } = await createDatabase()

const send: Signature = {
  types: { to: 'text', note: 'text' },
  required: ['to'],
  returns: 'rows',
  results: { id: 'uuid', at: 'timestamp with time zone' },
}
const before: Contract = { send }
const after = (changes: Partial<Signature>) => breaks(before, { send: { ...send, ...changes } })

t.test('breaks: returns nothing for changes that callers do not notice', async (t) => {
  t.same(after({}), [])
  t.same(after({ types: { note: 'text', to: 'text', more: 'text' } }), [], 'one more argument')
  t.same(after({ required: [] }), [], 'one that may be left out now')
  t.same(after({ results: { more: 'text', ...send.results } }), [], 'one more column')
  t.same(breaks(before, { send, another: send }), [], 'one more function')
  t.same(breaks({}, before), [], 'nothing was there before')
})

t.test('breaks: returns a sentence for each change that callers rely on', async (t) => {
  t.same(breaks(before, {}), ['api.send is gone'])
  t.same(after({ types: { to: 'text' } }), ['api.send does not take note text'])
  t.same(after({ types: { to: 'text', remark: 'text' } }), ['api.send does not take note text'])
  t.same(after({ types: { to: 'text[]', note: 'text' } }), ['api.send does not take to text'])
  t.same(after({ required: ['to', 'note'] }), ['api.send needs note'])
  t.same(after({ returns: 'value' }), ['api.send returns value, not rows'])
  t.same(after({ results: { id: 'text', at: 'timestamp with time zone' } }), [
    'api.send does not return id uuid',
  ])
  t.same(after({ results: {}, required: ['more'], types: { ...send.types, more: 'text' } }), [
    'api.send needs more',
    'api.send does not return id uuid',
    'api.send does not return at timestamp with time zone',
  ])
})

t.test('readContract: returns the generated signatures with any search path', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const path of ["''", 'app, api, public']) {
      await tx.unsafe(`set local search_path = ${path}`)
      t.same(await readContract(tx), signatures)
    }
  })
})

t.test('readContract: shows changes of functions and types', async (t) => {
  await rolledBack(sql, async (tx) => {
    const before = await readContract(tx)
    await tx.unsafe(`
      alter type api.reply drop attribute body cascade;
      alter type core.admission add attribute region text cascade;
      alter function api.health rename to healthy;
      drop function api.deregister(text);
      create function api.deregister(pool_id text, why text default '', host text default null) returns setof boolean
      language sql volatile as 'select true'`)
    t.same(
      breaks(before, await readContract(tx)).filter((problem) => !/ body text$/.test(problem)),
      ['api.deregister returns values, not value', 'api.health is gone'],
    )
    t.ok(
      breaks(before, await readContract(tx)).includes(
        'api.add_suppression does not return body text',
      ),
    )
  })
})

t.test('readContract: is empty without schema api', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx.unsafe('drop schema ops, api cascade')
    t.same(await readContract(tx), {})
  })
})
