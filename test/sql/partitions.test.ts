import { randomUUID } from 'node:crypto'
import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect, type Sql } from '../../src/db/client.ts'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { url, sql } = await createDatabase()
const { id } = await createOrganisation(sql)
const [known] = await sql<{ id: string }[]>`select core.decode_id('org', ${id}) as id`
const organisation = String(known?.id)

// This month and three more, and each day from two back to 31 ahead.
const MONTHLY = ['messages', 'events', 'message_terms']
const DAILY = ['bodies', 'webhook_events', 'webhook_attempts', 'idempotency_keys']
const MONTHS = 4
const DAYS = 2 + 1 + 31
const ALL = MONTHLY.length * MONTHS + DAILY.length * DAYS

/** The names of a table's partitions, in order. */
async function partitionsOf(db: Sql | Tx, table: string): Promise<string[]> {
  const rows = await db<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${`app.${table}`}::regclass order by 1`
  return rows.map(({ name }) => name)
}

const suffixesOf = async (db: Sql | Tx, table: string) =>
  (await partitionsOf(db, table)).map((name) => name.slice(table.length + 1))

/** Inserts a row into each monthly table, with the ID of its time. */
const insertAt = (tx: Tx, at: string) => tx`
  with message as (
    insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address,
      subject, tags, recipients, created_at)
    values ('sent', core.new_id(${at}::text::timestamptz), ${organisation}, 'email', 'test', 'transactional', 'a@b.c',
      'd@e.f', 'Hello', '{}', 1, ${at}::text::timestamptz)
    returning id, tableoid
  ),
  event as (
    insert into app.events (message_id, type, occurred_at) select id, 'sent', ${at}::text::timestamptz from message
    returning tableoid
  )
  select m.tableoid::regclass::text as message, e.tableoid::regclass::text as event
  from message m cross join event e`

/** Inserts a row into each daily table. */
const insertDailyAt = (tx: Tx, at: string) => tx`
  with body as (
    insert into app.bodies (message_id, sender, "to", cc, bcc, recipients)
    values (core.new_id(${at}::text::timestamptz), 'a@b.c', '{d@e.f}', '{}', '{}', '{d@e.f}')
    returning tableoid
  ),
  event as (
    insert into app.webhook_events (id, organisation_id, type, occurred_at, body)
    values (core.new_id(${at}::text::timestamptz), ${organisation}, 'email.sent', ${at}::text::timestamptz, '{}')
    returning id, tableoid
  ),
  attempt as (
    insert into app.webhook_attempts (endpoint_id, event_id, started_at, attempt, duration_ms)
    select ${randomUUID()}, e.id, ${at}::text::timestamptz, 1, 1 from event e
    returning tableoid
  ),
  key as (
    insert into app.idempotency_keys (organisation_id, mode, key, created_at, fingerprint, status, body)
    values (${organisation}, 'live', ${randomUUID()}, ${at}::text::timestamptz, '', 200, '')
    returning tableoid
  )
  select b.tableoid::regclass::text as body, e.tableoid::regclass::text as event,
    a.tableoid::regclass::text as attempt, k.tableoid::regclass::text as key
  from body b cross join event e cross join attempt a cross join key k`

const dailyOf = (suffix: string) => ({
  body: `app.bodies_${suffix}`,
  event: `app.webhook_events_${suffix}`,
  attempt: `app.webhook_attempts_${suffix}`,
  key: `app.idempotency_keys_${suffix}`,
})

const atTime = (tx: Tx, now: string) => tx`select set_config('postgram.now', ${now}, true)`

t.test(
  'make_partitions: creates this month and three more, and days from two back to a month ahead',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      // The database has no partitions of these months yet.
      await atTime(tx, '2031-11-15T10:00:00Z')
      const [made] = await tx`select api.make_partitions() as made`
      t.same(made, { made: ALL })
      const isNew = (suffix: string) => suffix > '2031'
      for (const table of MONTHLY) {
        t.same((await suffixesOf(tx, table)).filter(isNew), [
          '2031_11',
          '2031_12',
          '2032_01',
          '2032_02',
        ])
      }
      for (const table of DAILY) {
        const days = (await suffixesOf(tx, table)).filter(isNew)
        t.equal(days.length, DAYS)
        t.equal(days[0], '2031_11_13')
        t.equal(days.at(-1), '2031_12_16')
      }
    })
  },
)

t.test('make_partitions: a second call creates nothing', async (t) => {
  await rolledBack(sql, async (tx) => {
    // Those of the database may be of yesterday.
    await atTime(tx, '2031-11-15T10:00:00Z')
    await tx`select api.make_partitions()`
    const before = await partitionsOf(tx, 'messages')
    const [made] = await tx`select api.make_partitions() as made`
    t.same(made, { made: 0 })
    t.same(await partitionsOf(tx, 'messages'), before)
  })
})

t.test('make_partitions: a month later creates one month more and as many days', async (t) => {
  await rolledBack(sql, async (tx) => {
    await atTime(tx, '2031-01-31T23:59:59.999Z')
    await tx`select api.make_partitions()`
    await atTime(tx, '2031-02-01T00:00:00Z')
    const [made] = await tx`select api.make_partitions() as made`
    t.same(made, { made: MONTHLY.length + DAILY.length })
    t.same((await suffixesOf(tx, 'messages')).at(-1), '2031_05')
  })
})

t.test('partitions: every moment of these months has a partition', async (t) => {
  await rolledBack(sql, async (tx) => {
    await atTime(tx, '2031-11-30T23:00:00Z')
    await tx`select api.make_partitions()`
    const moments: [string, string][] = [
      ['2031-11-01T00:00:00Z', '2031_11'],
      ['2031-11-30T23:59:59.999Z', '2031_11'],
      ['2031-12-01T00:00:00Z', '2031_12'],
      ['2031-12-31T23:59:59.999Z', '2031_12'],
      ['2032-01-01T00:00:00Z', '2032_01'],
      ['2032-02-29T23:59:59.999Z', '2032_02'],
    ]
    for (const [at, suffix] of moments) {
      const [row] = await insertAt(tx, at)
      t.same(row, {
        message: `app.messages_${suffix}`,
        event: `app.events_${suffix}`,
      })
    }
    for (const at of ['2031-10-31T23:59:59.999Z', '2032-03-01T00:00:00Z']) {
      const { code } = await raisedBy(tx, (inner) => insertAt(inner, at))
      t.equal(code, '23514', `${at} has none`)
    }
  })
})

t.test('partitions: every moment of these days has a partition', async (t) => {
  await rolledBack(sql, async (tx) => {
    await atTime(tx, '2032-02-28T12:00:00Z')
    await tx`select api.make_partitions()`
    const moments: [string, string][] = [
      ['2032-02-26T00:00:00Z', '2032_02_26'],
      ['2032-02-27T12:00:00Z', '2032_02_27'],
      ['2032-02-28T23:59:59.999Z', '2032_02_28'],
      ['2032-02-29T00:00:00Z', '2032_02_29'],
      ['2032-03-01T00:00:00Z', '2032_03_01'],
      ['2032-03-30T23:59:59.999Z', '2032_03_30'],
    ]
    for (const [at, suffix] of moments) {
      const [row] = await insertDailyAt(tx, at)
      t.same(row, dailyOf(suffix))
    }
  })
})

t.test('partitions: a message is read from its month only', async (t) => {
  await rolledBack(sql, async (tx) => {
    await atTime(tx, '2031-11-30T23:00:00Z')
    await tx`select api.make_partitions()`
    for (const month of ['2031-11', '2031-12', '2032-02'])
      await insertAt(tx, `${month}-07T12:00:00Z`)
    const [message] = await tx<{ id: string }[]>`
      select core.encode_id('em', m.id) as id from app.messages m where m.created_at = '2031-12-07T12:00:00Z'`
    const scans = async () => {
      const rows = await tx<{ name: string; count: number }[]>`
        select s.relname as name, (s.seq_scan + coalesce(s.idx_scan, 0))::integer as count
        from pg_stat_xact_user_tables s where s.schemaname = 'app'`
      return new Map(rows.map(({ name, count }) => [name, count]))
    }
    const before = await scans()
    const [read] = await tx<{ text: string | null }[]>`
      select api.get_message(${organisation}, 'email', ${message?.id ?? ''}) as text`
    const after = await scans()
    t.match(JSON.parse(read?.text ?? ''), { id: message?.id, events: [{}, { type: 'sent' }] })
    const looks = [...after].map(([name, count]) => [name, count - (before.get(name) ?? 0)])
    t.same(looks.filter(([, count]) => count !== 0).sort(), [
      ['events_2031_12', 1],
      ['messages_2031_12', 1],
    ])
  })
})

for (const zone of ['America/New_York', 'Pacific/Kiritimati', 'Australia/Lord_Howe']) {
  t.test(`partitions: months and days are UTC with time zone ${zone} too`, async (t) => {
    await rolledBack(sql, async (tx) => {
      await tx`select set_config('timezone', ${zone}, true)`
      // Between two changes of the clock.
      await atTime(tx, '2031-03-07T00:00:00Z')
      await tx`select api.make_partitions()`
      for (const [at, suffix] of [
        ['2031-03-01T00:00:00Z', '2031_03'],
        ['2031-03-31T23:59:59.999Z', '2031_03'],
        ['2031-04-01T00:00:00Z', '2031_04'],
        ['2031-06-30T23:59:59.999Z', '2031_06'],
      ] as const) {
        t.match((await insertAt(tx, at))[0], { message: `app.messages_${suffix}` }, at)
      }
      for (const day of ['05', '08', '09', '10', '14']) {
        for (const time of ['00:00:00Z', '23:59:59.999Z']) {
          const [row] = await insertDailyAt(tx, `2031-03-${day}T${time}`)
          t.same(row, dailyOf(`2031_03_${day}`))
        }
      }
      const [again] = await tx`select api.make_partitions() as made`
      t.same(again, { made: 0 })
    })
  })
}

t.test('make_partitions: concurrent calls do not fail', async (t) => {
  // The settings that POSTGRAM_NOW makes.
  const shifted = connect(url, {
    role: 'postgram_service',
    clock: { 'postgram.shift': '400 days' },
    max: 4,
  })
  t.teardown(() => shifted.end())
  const call = caller(shifted)
  const made = await Promise.all([1, 2, 3, 4].map(() => call('make_partitions', {})))
  t.same(
    made.toSorted((a, b) => a - b),
    [0, 0, 0, ALL],
  )
})

t.test('partitions: a service with a clock shifted by 40 days accepts messages', async (t) => {
  const shifted = connect(url, { clock: { 'postgram.shift': '40 days' }, max: 1 })
  t.teardown(() => shifted.end())
  await shifted`select api.make_partitions()`
  await rolledBack(shifted, async (tx) => {
    const [now] = await tx<{ at: string }[]>`select core.iso(core.now()) as at`
    const [real] = await tx`
      select core.now() - now() = interval '40 days' as is_shifted`
    t.same(real, { isShifted: true })
    const [row] = await insertAt(tx, String(now?.at))
    t.equal(row?.message, `app.messages_${now?.at.slice(0, 7).replace('-', '_')}`)
    t.ok(await insertDailyAt(tx, String(now?.at)))
  })
})

t.test('make_partitions: does not block writers, and they do not block it', async (t) => {
  await sql.begin(async (tx) => {
    const [now] = await tx<{ at: string }[]>`select core.iso(now()) as at`
    await insertAt(tx, String(now?.at))
    await insertDailyAt(tx, String(now?.at))
    const far = connect(url, { clock: { 'postgram.shift': '800 days' }, max: 1 })
    // Fails instead of waiting without end.
    await far`set lock_timeout = '10s'`
    t.equal(await caller(far)('make_partitions', {}), ALL)
    await far.end()
    await insertAt(tx, String(now?.at))
  })
})

t.test('partitions: have the fill factor and the keys of their table', async (t) => {
  const options = await sql`
    select distinct c.reloptions from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'app.messages'::regclass`
  t.same([...options], [{ reloptions: ['fillfactor=48'] }])
  const without = await sql`
    select i.inhrelid::regclass::text as partition, p.indexrelid::regclass::text as index
    from pg_inherits i
    join pg_index p on p.indrelid = i.inhparent
    where i.inhparent::regclass::text like 'app.%' and not exists (
      select from pg_inherits x join pg_index c on c.indexrelid = x.inhrelid
      where x.inhparent = p.indexrelid and c.indrelid = i.inhrelid)
      and i.inhparent in (select oid from pg_class where relkind = 'p')`
  t.same(without, [])
})

t.test('make_partitions: keeps a monthly partition of a table that is now daily', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      select core.make_partition('bodies', core.first_id_at('2031-11-01T00:00Z')::text,
        core.first_id_at('2031-12-01T00:00Z')::text, 'bodies_2031_11')`
    await atTime(tx, '2031-11-15T10:00:00Z')
    await tx`select api.make_partitions()`
    const made = (await suffixesOf(tx, 'bodies')).filter((suffix) => suffix > '2031')
    t.same(made.slice(0, 3), ['2031_11', '2031_12_01', '2031_12_02'])
    t.match((await insertDailyAt(tx, '2031-11-30T23:59:59.999Z'))[0], {
      body: 'app.bodies_2031_11',
    })
    t.match((await insertDailyAt(tx, '2031-12-01T00:00:00Z'))[0], { body: 'app.bodies_2031_12_01' })
  })
})
