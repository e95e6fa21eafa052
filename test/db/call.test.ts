import { randomUUID } from 'node:crypto'
import t from 'tap'
import { signatures } from '../../src/db/api.gen.ts'
import { type Call, CODE_LOCK, caller } from '../../src/db/call.ts'
import { connect, type Sql } from '../../src/db/client.ts'
import { Refusal } from '../../src/errors.ts'
import { createDatabase } from '../fixtures/database.ts'

const { url, sql } = await createDatabase()

// Functions of this test, beside those that the generator knows.
const types = {
  echo: {
    types: { text: 'text', list: 'text[]', at: 'timestamptz', is_it: 'boolean' },
    returns: 'rows',
  },
  refusing: { types: { code: 'text', fields: 'jsonb' }, returns: 'value' },
  writing_and_refusing: { types: { id: 'text' }, returns: 'value' },
  failing: { types: { sqlstate: 'text' }, returns: 'value' },
  found_later: { types: { sqlstate: 'text', times: 'integer' }, returns: 'value' },
  with_default: { types: { given: 'text', left_out: 'text' }, returns: 'value' },
  numbers: { types: { last: 'integer' }, returns: 'values' },
  settings: { types: {}, returns: 'rows' },
}
Object.assign(signatures, types)

await sql.unsafe(`
  create type api.echoed as (a_text text, a_list text[], at_time timestamptz, is_it boolean, some_json jsonb, a_null text);
  create function api.echo(text text, list text[], at timestamptz, is_it boolean) returns setof api.echoed
  language sql stable as $$
    select text, list, at, is_it, '{"snake_case": {"in_side": [{"some_key": 1}]}}'::jsonb, null
  $$;
  create function api.refusing(code text, fields jsonb) returns void
  language sql volatile security definer set search_path = '' as $$
    select core.refuse(code, fields)
  $$;
  create function api.writing_and_refusing(id text) returns void
  language plpgsql volatile security definer set search_path = '' as $$
  begin
    insert into app.plans values (id, 'Never', 0, 0, 0, 0);
    perform core.refuse('plan_limit_reached');
  end $$;
  create function api.failing(sqlstate text) returns void language plpgsql volatile as $$
  begin
    raise exception using errcode = sqlstate, message = 'validation_error', detail = '{"not": "fields"}';
  end $$;
  create sequence api.asked;
  create function api.found_later(sqlstate text, times integer) returns integer
  language plpgsql volatile security definer as $$
  declare
    -- A sequence remembers what was rolled back.
    v_asked integer := nextval('api.asked');
  begin
    if v_asked <= times then
      raise exception using errcode = sqlstate, message = 'not there';
    end if;
    return v_asked;
  end $$;
  create function api.with_default(given text, left_out text default 'the default') returns text
  language sql stable as $$ select concat_ws(' and ', given, left_out) $$;
  create function api.numbers(last integer) returns setof integer
  language sql stable as $$ select generate_series(1, last) $$;
  create type api.setting as (who text, jit text, plan_cache_mode text);
  create function api.settings() returns setof api.setting language sql stable as $$
    select current_user::text, current_setting('jit'), current_setting('plan_cache_mode')
  $$;
  grant execute on all functions in schema api to postgram_service`)

const service = connect(url, { role: 'postgram_service', max: 3 })
t.teardown(() => service.end())
const call = caller(service) as unknown as (
  name: keyof typeof types,
  args: Record<string, unknown>,
  // biome-ignore lint/suspicious/noExplicitAny: of functions that only this test has
) => Promise<any>

const nothing = { text: null, list: null, at: null, is_it: null }

t.test('an argument of many MB is sent in parts of at most 1 MB and arrives whole', async (t) => {
  const sent: number[] = []
  const measured = (connection: Sql): Sql =>
    new Proxy(connection, {
      get(target, name) {
        if (name === 'unsafe') {
          return (text: string, values: string[], options: object) => {
            sent.push(...values.map((value) => value?.length ?? 0))
            return target.unsafe(text, values, options)
          }
        }
        if (name === 'begin') {
          return (work: (tx: Sql) => unknown) =>
            target.begin((tx) => work(measured(tx as unknown as Sql)))
        }
        return Reflect.get(target, name)
      },
    })
  const ask = caller(measured(sql)) as unknown as (name: string, args: object) => Promise<string>
  const part = 1024 * 1024
  for (const long of [
    'x'.repeat(part),
    'x'.repeat(part + 1),
    `${'x'.repeat(part - 1)}🎉${'y'.repeat(part)}`,
    '🎉'.repeat(2 * part),
  ]) {
    sent.length = 0
    const back = await ask('with_default', { given: long, left_out: "'" })
    t.ok(back === `${long} and '`, `${long.length} characters`)
    t.ok(sent.length > 1 && sent.every((length) => length <= part), String(sent))
  }
  const rest = await sql`select coalesce(current_setting('postgram.part_1', true), '') as part`
  t.strictSame([...rest], [{ part: '' }], 'nothing of it is left on the connection')
})

t.test('texts and lists with any characters arrive unchanged', async (t) => {
  const texts = [
    '',
    ' ',
    'null',
    'NULL',
    '"',
    '\\',
    '\\"',
    '{}',
    '{a,b}',
    ',',
    "it's",
    'a\nb\r\tc',
    '$1',
    '\\\\server\\share',
    'é🙂中文',
    '\\u0041',
    "'; drop schema api cascade; --",
    'x'.repeat(100_000),
  ]
  const [row] = await call('echo', { ...nothing, list: texts })
  t.strictSame(row.aList, texts)
  for (const text of texts) {
    const [echoed] = await call('echo', { ...nothing, text, list: [text] })
    t.equal(echoed.aText, text)
    t.strictSame(echoed.aList, [text])
  }
  const [empty] = await call('echo', { ...nothing, list: [] })
  t.strictSame(empty.aList, [])
})

t.test('a query that has ended refers neither to its arguments nor to its rows', async (t) => {
  const queries: { args: unknown; parameters: unknown }[] = []
  const observed = new Proxy(sql, {
    get: (target, name) =>
      name === 'unsafe'
        ? (...args: Parameters<Sql['unsafe']>) => {
            const query = target.unsafe(...args)
            queries.push(query as never)
            return query
          }
        : Reflect.get(target, name),
  })
  const given = { text: 'a text', list: [], at: new Date(0), is_it: true }
  const rows = await (
    caller(observed) as unknown as (name: string, args: object) => Promise<object[]>
  )('echo', given)
  t.match(rows, [{ aText: 'a text' }])
  t.match(queries, [{ args: [], parameters: [] }])
  t.strictSame([...(await (queries[0] as unknown as Promise<unknown[]>))], [])
})

t.test('nulls, booleans and times arrive unchanged', async (t) => {
  const at = new Date('2024-02-29T23:59:59.123Z')
  const [row] = await call('echo', { ...nothing, at, is_it: false })
  t.strictSame(
    { ...row, someJson: undefined },
    { aText: null, aList: null, atTime: at, isIt: false, someJson: undefined, aNull: null },
  )
  const [other] = await call('echo', { ...nothing, at: '2024-02-29T23:59:59+02:00', is_it: true })
  t.strictSame(other.atTime, new Date('2024-02-29T21:59:59Z'))
  t.equal(other.isIt, true)
})

t.test('columns are in camel case, keys inside JSON are unchanged', async (t) => {
  const [row] = await call('echo', nothing)
  t.strictSame(Object.keys(row), ['aText', 'aList', 'atTime', 'isIt', 'someJson', 'aNull'])
  t.strictSame(row.someJson, { snake_case: { in_side: [{ some_key: 1 }] } })
})

t.test('a missing argument gets its default, null does not', async (t) => {
  t.equal(await call('with_default', { given: 'this' }), 'this and the default')
  t.equal(
    await call('with_default', { given: 'this', left_out: undefined }),
    'this and the default',
  )
  t.equal(await call('with_default', { given: 'this', left_out: null }), 'this')
})

t.test('a function that returns a set of values gives a list', async (t) => {
  t.strictSame(await call('numbers', { last: 3 }), [1, 2, 3])
  t.strictSame(await call('numbers', { last: 0 }), [])
})

t.test('a refusal in SQL is thrown as a Refusal with its code and fields', async (t) => {
  const fields = { 'to.1': ['is not an address', 'é "quoted"'], _: ['and more'] }
  const error = await call('refusing', {
    code: 'validation_error',
    fields: JSON.stringify(fields),
  }).catch((error) => error)
  t.type(error, Refusal)
  t.equal(error.code, 'validation_error')
  t.equal(error.status, 422)
  t.strictSame(error.fields, fields)
})

t.test('a refusal without fields is a Refusal without fields', async (t) => {
  const error = await call('refusing', { code: 'not_found', fields: null }).catch((error) => error)
  t.type(error, Refusal)
  t.equal(error.code, 'not_found')
  t.equal(error.fields, undefined)
})

t.test('a refusal rolls back what the function wrote', async (t) => {
  await t.rejects(call('writing_and_refusing', { id: 'never' }), { code: 'plan_limit_reached' })
  t.same(await sql`select from app.plans where id = 'never'`, [])
})

t.test('any other error is thrown unchanged', async (t) => {
  for (const sqlstate of ['P0001', '23505', '22P02', 'MSREG']) {
    const error = await call('failing', { sqlstate }).catch((error) => error)
    t.notOk(error instanceof Refusal)
    t.equal(error.code, sqlstate)
  }
  const known: Call = caller(service)
  await t.rejects(known('get_message', { organisation_id: 'x', channel: 'email', id: '' }), {
    code: '22P02',
  })
})

t.test('a connection serves the next call after a refusal', async (t) => {
  const single = connect(url, { role: 'postgram_service', max: 1 })
  t.teardown(() => single.end())
  const one = caller(single) as unknown as typeof call
  await t.rejects(one('refusing', { code: 'not_found' }))
  t.equal(await one('with_default', { given: 'here' }), 'here and the default')
})

for (const sqlstate of ['0A000', '3F000', '42703', '42704', '42804', '42883', '42P01', 'XX000']) {
  t.test(`a call that fails while the code is replaced (${sqlstate}) is repeated`, async (t) => {
    await sql`alter sequence api.asked restart`
    t.equal(await call('found_later', { sqlstate, times: 1 }), 2)
  })
}

t.test('a call of a function that does not exist fails after one repetition', async (t) => {
  await sql`alter sequence api.asked restart`
  await t.rejects(call('found_later', { sqlstate: '42883', times: 9 }), { code: '42883' })
  const [row] = await sql`select last_value::integer from api.asked`
  t.same(row, { lastValue: 2 })
})

t.test('a call is repeated only when the new code is in place', async (t) => {
  await sql`alter sequence api.asked restart`
  const again = await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${CODE_LOCK})`
    const pending = call('found_later', { sqlstate: '42883', times: 1 })
    // Wait until a call waits for the lock.
    for (;;) {
      const [waiting] = await tx`select from pg_locks where locktype = 'advisory' and not granted
        and database = (select oid from pg_database where datname = current_database())`
      if (waiting) break
    }
    const [row] = await tx`select last_value::integer from api.asked`
    t.same(row, { lastValue: 1 })
    return { pending }
  })
  t.equal(await again.pending, 2)
})

t.test('every connection has the role and the settings of its options', async (t) => {
  const rows = await Promise.all(Array.from({ length: 6 }, () => call('settings', {})))
  for (const [row] of rows) t.match(row, { who: 'postgram_service', jit: 'off' })
  const shifted = connect(url, {
    role: 'postgram_service',
    clock: { 'postgram.now': '2030-01-31T10:00:00.000Z' },
    applicationName: randomUUID(),
    max: 1,
  })
  t.teardown(() => shifted.end())
  const [row] = await shifted`select current_setting('postgram.now') as now, current_user as who`
  t.match(row, { now: '2030-01-31T10:00:00.000Z', who: 'postgram_service' })
})
