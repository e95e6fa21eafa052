import t from 'tap'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { anEmail, anSms, get, post } from '../fixtures/http.ts'
import { indexMessages, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { createEndpoint } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const mine = await createOrganisation(sql)
const other = await createOrganisation(sql)
const quiet = await createOrganisation(sql)
const PHONE = '+27821234567'

const idOf = async (path: string, key: string, body: object) => {
  const { json } = await post(`${base}/v1/${path}`, key, body)
  return (json as { id: string }).id
}
const first = await send(base, mine)
const toJane = await idOf(
  'emails',
  mine.liveKey,
  anEmail(mine.domain, { to: ['Jane@acme.example', 'joe@acme.example'] }),
)
const ccJane = await idOf(
  'emails',
  other.liveKey,
  anEmail(other.domain, { to: 'joe@acme.example', cc: 'jane@acme.example' }),
)
const sms = await idOf('sms', mine.liveKey, anSms({ to: PHONE }))

const messagesOf = async (tx: Tx, ...values: (string | number | null)[]) => {
  const places = values.map((_, place) => `$${place + 1}`)
  const rows = await tx.unsafe<{ id: string }[]>(
    `select id from ops.messages_of(${places})`,
    values as never,
  )
  return rows.map(({ id }) => id)
}

t.test(
  'ops.messages_of: finds by ID, organisation, address and number, newest first',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      t.same(await messagesOf(tx, first), [first])
      t.same(await messagesOf(tx, sms), [sms])
      t.same(await messagesOf(tx, mine.id), [sms, toJane, first])
      t.same(await messagesOf(tx, quiet.id), [])
      t.same(await messagesOf(tx, 'JANE@acme.example'), [ccJane, toJane])
      t.same(await messagesOf(tx, PHONE), [sms])
      t.same(await messagesOf(tx, 'nobody@acme.example'), [])
    })
  },
)

t.test('ops.messages_of: finds an address by the index of the search', async (t) => {
  await indexMessages(sql)
  await rolledBack(sql, async (tx) => {
    t.same(await messagesOf(tx, 'JANE@acme.example'), [ccJane, toJane])
    t.same(await messagesOf(tx, 'jane@acme.example', null, 1), [ccJane])
    t.same(await messagesOf(tx, 'nobody@acme.example'), [])
    // Neither field nor body names a copy any more.
    await tx`delete from app.bodies`
    t.same(await messagesOf(tx, 'jane@acme.example'), [ccJane, toJane])
    const [found] = await tx<{ ids: string[] }[]>`
      select array(
        select core.encode_id('em', i.id)
        from unnest(core.person_messages('jane@acme.example', core.decode_id('org', ${other.id}))) i (id)
      ) as ids`
    t.same(found?.ids, [ccJane])
    const recent =
      await tx`select id from ops.messages_of('jane@acme.example', now() + interval '1 minute')`
    t.same([...recent], [])
  })
})

t.test('ops.messages_of: honours at_most and since', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.same(await messagesOf(tx, mine.id, null, 2), [sms, toJane])
    t.same(await messagesOf(tx, 'jane@acme.example', null, 1), [ccJane])
    for (const whose of [mine.id, 'jane@acme.example', PHONE]) {
      const all = await messagesOf(tx, whose)
      for (const since of ['-infinity', '1200-01-01', '2000-01-01']) {
        const found = await tx.unsafe(`select id from ops.messages_of('${whose}', '${since}')`)
        t.same(
          [...found].map(({ id }) => id),
          all,
          `${whose} since ${since}`,
        )
      }
      for (const since of ['infinity', '9999-01-01']) {
        const found = await tx.unsafe(`select id from ops.messages_of('${whose}', '${since}')`)
        t.same([...found], [], `${whose} since ${since}`)
      }
    }
    t.same(await messagesOf(tx, first, '9999-01-01'), [first], 'an id is found whenever it was')
  })
})

t.test('ops.messages_of: has the columns of ops.messages', async (t) => {
  for (const id of [first, toJane, sms]) {
    t.same(
      await sql`select * from ops.messages_of(${id})`,
      await sql`select * from ops.messages where id = ${id}`,
    )
  }
  const columnsOf = async (query: string) =>
    (await sql.unsafe(query)).columns.map(({ name }) => name)
  t.same(
    await columnsOf(`select * from ops.messages_of('${quiet.id}')`),
    await columnsOf('select * from ops.messages limit 0'),
  )
})

t.test(
  'core.find_message: the hint for a number with many messages lists the ten newest',
  async (t) => {
    const to = '+27825550000'
    const ids: string[] = []
    for (let count = 1; count <= 12; count++) {
      ids.push(await idOf('sms', mine.liveKey, anSms({ to })))
    }
    const newest = ids.reverse()
    await rolledBack(sql, async (tx) => {
      const { message, hint } = await raisedBy(tx, (inner) => inner`select ops.why(${to})`)
      t.equal(message, `'${to}' matches more than 10 messages`)
      const named = newest.slice(0, 10).map((id) => `${id} (queued)`)
      t.equal(hint, `use one of these IDs: ${named.join(', ')} and others`)
      const [found] = await tx<{ ids: string[] }[]>`
      select array(
        select core.encode_id('sm', id) from unnest(core.person_messages(${to}, null, at_most => 11)) id
      ) as ids`
      t.same(found?.ids, newest.slice(0, 11), 'no more of them are looked at')
      t.same(await messagesOf(tx, to, null, 3), newest.slice(0, 3))
    })
  },
)

t.test('ops.timeline: returns the timeline of the API', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`set local role postgram_operator`
    t.same((await tx`select type, detail from ops.timeline(${first})`)[0], {
      type: 'queued',
      detail: {},
    })
  })
  await sql`
    insert into app.events (message_id, type, occurred_at, detail)
    values (core.decode_id('em', ${first}), 'deferred', now(), '{"text": "Come back later."}')`
  const { json } = await get(`${base}/v1/emails/${first}`, mine.liveKey)
  const seen = await sql<
    { at: Date; type: string; detail: object }[]
  >`select * from ops.timeline(${first})`
  t.same(
    seen.map(({ at, type, detail }) => ({ type, occurredAt: at.toISOString(), detail })),
    (json as { events: object[] }).events,
  )
  t.same(
    seen.map(({ type }) => type),
    ['queued', 'deferred'],
  )
})

t.test('views filtered by organisation find the organisation first', async (t) => {
  for (const view of ['messages', 'credit_ledger', 'suppressions', 'webhook_events']) {
    const plan = await sql.unsafe(
      `explain (costs off) select * from ops.${view} where organisation = '${mine.id}' limit 20`,
    )
    const text = [...plan].map((row) => Object.values(row).join()).join('\n')
    t.match(text, /encode_id\('org'::text, (\w+\.)?id\)/, view)
    t.notMatch(text, /encode_id\('org'::text, (\w+\.)?organisation_id\)/, view)
  }
})

/** How a plan shows the result of a subquery that runs once: as a parameter, or by name since Postgres 17. */
const COMPUTED_ONCE = String.raw`(\$\d+|\(InitPlan \d+\)\.col1)`

const planOf = async (tx: Tx, query: string) => {
  const plan = await tx.unsafe(`explain (costs off) ${query}`)
  return [...plan].map((row) => Object.values(row).join()).join('\n')
}

t.test('functions that read many partitions do so without JIT', async (t) => {
  const functions = await sql<{ name: string; config: string[] }[]>`
    select proname as name, proconfig as config from pg_proc
    where oid = any ('{ops.export_person, core.erase_person, ops.messages_of, core.person_messages}'::regproc[])`
  t.equal(functions.length, 4)
  for (const { name, config } of functions) t.ok(config.includes('jit=off'), name)
})

t.test(
  'export_person: attempts are found by an index before their texts are searched',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      const { id: endpoint } = await createEndpoint(tx as never, mine)
      await tx`
      insert into app.webhook_attempts (endpoint_id, event_id, attempt, started_at, duration_ms, status)
      select core.decode_id('we', ${endpoint}), core.new_id(now()), 1, now(), 1, 200 from generate_series(1, 5000)`
      await tx`analyze app.webhook_attempts, app.webhook_endpoints`
      const ids = `array[core.decode_id('em', '${toJane}')]`
      const plan = await planOf(
        tx,
        `select * from core.export_messages('jane@acme.example', ${ids})`,
      )
      t.match(plan, new RegExp(`Index Cond: .*event_id = ANY \\(${COMPUTED_ONCE}\\)`))
    })
  },
)

t.test('export_person: the first message that is kept is looked up once', async (t) => {
  await rolledBack(sql, async (tx) => {
    const plan = await planOf(tx, `select * from core.orphaned_events('jane@acme.example')`)
    t.match(plan, new RegExp(`message_id < .*${COMPUTED_ONCE}`))
    t.notMatch(plan, /message_id < core\.first_id_at/)
  })
})
