import t from 'tap'
import { pairCaller } from '../../src/db/call-pair.ts'
import { ConnectionLost } from '../../src/db/connection-errors.ts'
import { createPool } from '../../src/db/pool.ts'
import { TimedOut } from '../../src/db/repeated-call.ts'
import { createDatabase } from '../fixtures/database.ts'
import { startDatabaseProxy } from '../fixtures/postgres.ts'

const { url, sql } = await createDatabase()

/** Appends the last digit of its argument to what it did on its connection; f fails, and e takes long. */
await sql.unsafe(`
  create or replace function api.organisation_name(organisation_id uuid)
  returns text language plpgsql volatile as $$
  begin
    if organisation_id = '00000000-0000-0000-0000-00000000000f' then
      raise 'a failure';
    end if;
    if organisation_id = '00000000-0000-0000-0000-00000000000e' then
      perform pg_sleep(60);
    end if;
    perform set_config('postgram.calls', concat(current_setting('postgram.calls', true), right(organisation_id::text, 1)), false);
    return concat(current_setting('postgram.calls', true), ' ', txid_current());
  end
  $$`)

const named = (digit: string) =>
  ['organisation_name', { organisation_id: `00000000-0000-0000-0000-00000000000${digit}` }] as [
    'organisation_name',
    { organisation_id: string },
  ]

async function pairOver(address: string, { waitMs = 8000 } = {}) {
  const pool = createPool(address, { size: 1, waitMs, workMs: 16_000 })
  t.teardown(() => pool.end(0))
  return { pool, pair: pairCaller(pool) }
}

t.test('callPair: runs two calls in order on one connection, each in a transaction', async (t) => {
  const { pair } = await pairOver(url)
  const { first, second, error } = await pair(named('1'), named('2'))
  t.equal(error, undefined)
  const [one, two] = [first, second].map((text) => String(text).split(' '))
  t.same([one?.[0], two?.[0]], ['1', '12'])
  t.not(one?.[1], two?.[1])
})

t.test('callPair: runs the second call if the first fails, and returns the error', async (t) => {
  const { pair } = await pairOver(url)
  t.match(await pair(named('f'), named('2')), {
    first: undefined,
    second: /^2 /,
    error: { message: 'a failure' },
  })
  t.match(await pair(named('1'), named('f')), { first: /^21 /, second: undefined, error: Error })
})

t.test(
  'callPair: a lost connection is ConnectionLost, and the next pair gets another',
  async (t) => {
    const proxy = await startDatabaseProxy(url)
    const { pair } = await pairOver(proxy.url)
    await pair(named('1'), named('2'))
    proxy.loseAnswerTo('00000000000f')
    const { error } = await pair(named('1'), named('f'))
    t.type(error, ConnectionLost)
    t.match(await pair(named('1'), named('2')), { first: /^1 /, second: /^12 /, error: undefined })
  },
)

t.test('callPair: a statement that the server cancels is TimedOut', async (t) => {
  const { pair, pool } = await pairOver(url)
  await pool.use((sql) => sql`set statement_timeout = '100ms'`)
  const { first, error } = await pair(named('1'), named('e'))
  t.match(first, /^1 /)
  t.type(error, TimedOut)
})

t.test('callPair: functions that were replaced with another type of result', async (t) => {
  const { pair } = await pairOver(url)
  t.match(await pair(named('1'), named('2')), { first: /^1 /, second: /^12 /, error: undefined })
  // As migrate does. Both statements are prepared on the connection, for the former type.
  await sql.begin(async (tx) => {
    await tx`drop function api.organisation_name(uuid)`
    await tx.unsafe(`
      create function api.organisation_name(organisation_id uuid) returns varchar language sql
      as 'select right(organisation_id::text, 1)'`)
  })
  t.same(await pair(named('1'), named('2')), { first: '1', second: '2' })
  t.same(await pair(named('3'), named('4')), { first: '3', second: '4' })
})
