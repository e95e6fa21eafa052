import { readFile } from 'node:fs/promises'
import t from 'tap'
import { generateTypes } from '../../src/db/types.ts'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()
const inBraces = (text: string, start: string) =>
  text.slice(text.indexOf(start), text.indexOf('\n}', text.indexOf(start)))

t.test('src/db/api.gen.ts: is what "npm run types" generates from the SQL', async (t) => {
  const committed = await readFile(new URL('../../src/db/api.gen.ts', import.meta.url), 'utf8')
  t.equal(committed, await generateTypes(sql), 'if not, run "npm run types"')
})

t.test(
  'generateTypes: reads enums, and arguments, results and nulls of a function from its signature',
  async (t) => {
    await sql.unsafe(`
    create type api.thing as (is_here boolean, at_time timestamptz, mode app.mode, modes app.mode[], note text);
    comment on column api.thing.note is 'null when nobody wrote one';
    create function api.things(ids uuid[], given jsonb, note text default null)
    returns setof api.thing language sql stable as $$ select null::api.thing $$;
    comment on function api.things is 'Things.';
    create function api.a_thing() returns api.thing language sql stable as $$ select null::api.thing $$;
    comment on function api.a_thing is 'A thing.';
    create function api.a_note() returns text language sql stable as $$ select '' $$;
    comment on function api.a_note is 'Returns a note; null if there is none.';
    create function api.times() returns setof timestamptz language sql stable as $$ select now() $$;
    comment on function api.times is 'Times.';
    create function api.nothing(is_it boolean) returns void language sql volatile as $$ select $$;
    comment on function api.nothing is 'Nothing.'`)
    const text = await generateTypes(sql)
    t.equal(
      inBraces(text, 'export type Thing = {'),
      `export type Thing = {
  isHere: boolean
  atTime: Date
  mode: 'live' | 'test'
  modes: ('live' | 'test')[]
  /** null when nobody wrote one */
  note: string | null`,
    )
    t.match(
      inBraces(text, 'export const enums = {'),
      /\n {2}member_role: \['viewer', 'member', 'owner'\],\n {2}message_status: \['scheduled', /,
    )
    const thing =
      "{ is_here: 'boolean', at_time: 'timestamp with time zone', mode: 'app.mode', modes: 'app.mode[]', note: 'text' }"
    for (const line of [
      '  /** Things. */',
      '  things: { args: { ids: string[]; given: string; note?: string }; result: Thing[] }',
      '  a_thing: { args: Record<string, never>; result: Thing[] }',
      '  a_note: { args: Record<string, never>; result: string | null }',
      '  times: { args: Record<string, never>; result: Date[] }',
      '  nothing: { args: { is_it: boolean }; result: null }',
      `  things: { types: { ids: 'uuid[]', given: 'jsonb', note: 'text' }, required: ['ids', 'given'], returns: 'rows', results: ${thing} },`,
      `  a_thing: { types: {}, required: [], returns: 'rows', results: ${thing} },`,
      "  a_note: { types: {}, required: [], returns: 'value', results: { value: 'text' } },",
      "  times: { types: {}, required: [], returns: 'values', results: { value: 'timestamp with time zone' } },",
    ]) {
      t.ok(text.split('\n').includes(line), line.trim())
    }
  },
)

t.test('generateTypes: throws with the name of a type that has no TypeScript type', async (t) => {
  await sql`create function api.strange(at point) returns integer language sql stable as 'select 1'`
  await t.rejects(generateTypes(sql), { message: /^schema api uses point,/ })
})
