import t, { type Test } from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase, type Tx } from '../fixtures/database.ts'
import { indexMessages } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

type Filter = Record<string, string | Date>
type Page = { ids: string[]; next: string | null; searchedBackTo: Date | null }

const COUNT = 2000

/**
 * Inserts messages of the last 40 days with few and with many of each kind, the last of them some seconds old.
 * Returns the organisation's UUID.
 */
async function anOrganisationWith(count: number): Promise<string> {
  const { id } = await createOrganisation(sql)
  // The index begins again, as it follows the IDs of messages and these are of the past.
  await sql`truncate app.message_terms`
  await sql`update app.search_progress set indexed_until = '00000000-0000-0000-0000-000000000000'`
  await sql`
    select core.make_id_partition(parent, date_trunc('month', now(), 'UTC') - make_interval(months => m), '1 month', '_YYYY_MM')
    from generate_series(1, 3) m, unnest(array['messages', 'events', 'message_terms']) parent`
  const [organisation] = await sql<{ id: string }[]>`select core.decode_id('org', ${id}) as id`
  const uuid = String(organisation?.id)
  await sql`
    insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address, subject, tags,
      recipients, created_at, segments, credits)
    select (array['delivered', 'delivered', 'sent', 'bounced', 'failed', 'queued'])[
        case when n % 97 = 0 then 4 when n % 301 = 0 then 5 when n % 50 = 3 then 6 when n % 9 = 0 then 3 else 1 end
      ]::app.message_status,
      core.new_id(k.at), ${uuid}, k.channel::app.channel, case when n % 40 = 1 then 'test' else 'live' end::app.mode,
      case when n between 700 and 1000 then 'marketing' else 'transactional' end::app.class,
      case when n % 500 < 30 then 'Rare@c.example' else 'usual@c.example' end,
      case when n % 3 = 0 then 'everybody@c.example, ' else '' end || 'one' || n % 700 || '@c.example',
      case k.channel when 'email' then 'Number ' || n end,
      case when n < 600 then '{early}' when n % 150 = 0 then '{rare,late}' when n % 2 = 0 then '{late}' else '{}' end::text[],
      1, k.at, case k.channel when 'sms' then 1 end, case k.channel when 'sms' then 0 end
    from generate_series(1, ${count}::integer) n
    cross join lateral (
      select date_trunc('milliseconds', now() - interval '40 days' * (1 - n / ${count}::numeric)) as at,
        case when n % 211 = 0 then 'sms' else 'email' end as channel
    ) k`
  return uuid
}

/** Returns a page of core.search_messages. limit: milliseconds after which it stops. */
async function search(
  organisation: string,
  filter: Filter,
  size: number,
  before: string | null,
  limit = 10_000,
) {
  const [page] = await sql<Page[]>`
    select array(select m.id from unnest(s.messages) with ordinality m order by m.ordinality) as ids,
      s.next_id as next, s.searched_back_to
    from core.search_messages(${organisation}, jsonb_populate_record(null::core.message_filter, ${sql.json(filter as never)}),
      ${size}, ${before}, ${limit}) s`
  return page as Page
}

async function walk(organisation: string, filter: Filter, size: number, limit?: number) {
  const ids: string[] = []
  let pages = 0
  let next: string | null = null
  do {
    const page: Page = await search(organisation, filter, size, next, limit)
    ids.push(...page.ids)
    next = page.next
    pages += 1
  } while (next)
  return { ids, pages }
}

/** Returns what a search must find, by reading all messages. */
async function allOf(organisation: string, filter: Filter): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select m.id
    from app.messages m, jsonb_populate_record(null::core.message_filter, ${sql.json(filter as never)}) f
    where m.organisation_id = ${organisation}
      and (f.status is null or m.status = f.status) and (f.channel is null or m.channel = f.channel)
      and (f.class is null or m.class = f.class) and (f.mode is null or m.mode = f.mode)
      and (f.tag is null or f.tag = any (m.tags)) and (f."from" is null or lower(m.from_address) = f."from")
      and (f."to" is null or f."to" = any (string_to_array(m.to_address, ', ')))
      and (f.since is null or m.created_at >= f.since) and (f.until is null or m.created_at < f.until)
      and (f.subject is null or m.subject ilike '%' || f.subject || '%')
    order by m.id desc`
  return rows.map(({ id }) => id)
}

const days = (count: number) => new Date(Date.now() - count * 86_400_000)

const values: Record<string, (string | Date)[]> = {
  status: ['delivered', 'queued', 'bounced', 'expired'],
  channel: ['email', 'sms'],
  class: ['transactional', 'marketing'],
  mode: ['live', 'test'],
  tag: ['early', 'late', 'rare'],
  to: ['everybody@c.example', 'one7@c.example', 'none@c.example'],
  from: ['usual@c.example', 'rare@c.example', 'none@c.example'],
  since: [days(30), days(0.5)],
  until: [days(20), days(0.7)],
}

/** Every filter with each of its values, and every pair of filters with each pair of values. */
const filters: Filter[] = [{}, { subject: 'number 77' }]
for (const [name, ones] of Object.entries(values)) {
  for (const one of ones) {
    filters.push({ [name]: one })
    for (const [second, others] of Object.entries(values)) {
      if (second <= name) continue
      for (const other of others) filters.push({ [name]: one, [second]: other })
    }
  }
}

async function compare(t: Test, organisation: string, limit?: number) {
  for (const filter of filters) {
    const expected = await allOf(organisation, filter)
    const size = expected.length > 500 ? 200 : 20
    const { ids } = await walk(organisation, filter, size, limit)
    t.strictSame(ids, expected, JSON.stringify(filter))
  }
}

t.test(
  'core.search_messages: finds by any filter and any two what a full read finds',
  async (t) => {
    const organisation = await anOrganisationWith(COUNT)
    await t.test('while nothing is indexed', (t) => compare(t, organisation))

    // In parts, with spans that begin before a part and continue in it.
    for (const part of [500, 37, 1000, 1]) {
      await sql`
      with part as (
        select core.index_accepted(p.indexed_until, core.first_id_at(now()), ${part}) as ids
        from app.search_progress p where p.pass = 'accepted'
      )
      update app.search_progress p set indexed_until = part.ids[${part}] from part where p.pass = 'accepted'`
    }
    await t.test('while a part is indexed', (t) => compare(t, organisation))

    await indexMessages(sql)
    await t.test('when all is indexed', (t) => compare(t, organisation))

    // Statuses of indexed messages change, in any order and of any age.
    await sql`
    with changed as (
      update app.messages m
      set status = case when get_byte(uuid_send(m.id), 15) % 3 = 0 then 'bounced' else 'delivered' end::app.message_status
      where m.organisation_id = ${organisation} and get_byte(uuid_send(m.id), 14) % 29 = 0
      returning m.id, m.status
    )
    insert into app.status_changes (message_ids, change, occurred_at)
    select array_agg(c.id), c.status::text::app.event_type, now() from changed c group by c.status`
    await sql`select api.sum_status_changes()`
    await t.test('after changes of statuses', (t) => compare(t, organisation))
  },
)

t.test('core.search_messages: a search that stops continues where it stopped', async (t) => {
  const organisation = await anOrganisationWith(COUNT)
  const filter = { tag: 'late', from: 'rare@c.example', status: 'sent' }
  const expected = await allOf(organisation, filter)
  t.ok(expected.length > 0)
  for (const isIndexed of [false, true]) {
    if (isIndexed) await indexMessages(sql)
    const first = await search(organisation, { subject: 'no such' }, 20, null, 0)
    t.strictSame(first.ids, [])
    t.ok(first.next, 'the page has a cursor')
    const [last] = await sql`select created_at from app.messages where id = ${first.next}`
    t.same(first.searchedBackTo, last?.createdAt)
    const { ids, pages } = await walk(organisation, filter, 20, 0)
    t.strictSame(ids, expected)
    t.ok(pages > 1)
    const whole = await search(organisation, filter, 200, null)
    t.strictSame([whole.ids, whole.next, whole.searchedBackTo], [expected, null, null])
  }
})

t.test('api.index_messages: spans of a term never overlap and have no large gaps', async (t) => {
  const organisation = await anOrganisationWith(COUNT)
  await indexMessages(sql)
  const overlapping = await sql`
    select from app.message_terms a
    join app.message_terms b on b.term = a.term and b.organisation_id = a.organisation_id
      and b.first_id > a.first_id and b.first_id <= a.last_id
    where a.organisation_id = ${organisation}`
  t.equal(overlapping.length, 0)
  const sparse = await sql<{ term: string }[]>`
    select s.term
    from app.message_terms s
    cross join lateral (
      select count(*) as messages,
        count(*) filter (where substr(s.term, 5) = any (m.tags)) as tagged
      from app.messages m
      where m.organisation_id = s.organisation_id and m.id between s.first_id and s.last_id
    ) m
    where s.organisation_id = ${organisation} and s.term like 'tag:%' and m.messages > 33 * m.tagged`
  t.same([...sparse], [])
  const [size] = await sql<{ dense: number; all: number }[]>`
    select count(*) filter (where t.term in ('tag:late', 'from:usual@c.example', 'is:email transactional live'))::integer as dense,
      count(*)::integer as all
    from app.message_terms t where t.organisation_id = ${organisation} and t.term not like 'to:%'`
  t.ok(size && size.dense < 20, 'a common term has few spans')
})

t.test('api.index_messages: a second run over the same messages changes nothing', async (t) => {
  await sql`truncate app.messages`
  await anOrganisationWith(200)
  await indexMessages(sql)
  const rows = () => sql`select * from app.message_terms order by 1, 2, 3`
  const before = await rows()
  await sql`update app.search_progress set indexed_until = '00000000-0000-0000-0000-000000000000'`
  await indexMessages(sql)
  t.same([...(await rows())], [...before])
})

t.test('api.index_messages: waits for a message that commits late', async (t) => {
  const { id } = await createOrganisation(sql)
  await sql`update app.search_progress set seen_at = null, seen_xid = null`
  const later = connect(url, { max: 1 })
  t.teardown(() => later.end())
  let minutes = 0
  /** Runs the task some minutes later. */
  const run = async () => {
    minutes += 3
    await later`select set_config('postgram.shift', ${`${minutes} minutes`}, false)`
    const [row] = await later<{ count: number }[]>`select api.index_messages() as count`
    return row?.count
  }
  const insert = (tx: Tx, to: string) => tx<{ id: string }[]>`
    insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address, subject, tags,
      recipients, created_at)
    values ('queued', core.new_id(now()), core.decode_id('org', ${id}), 'email', 'live', 'transactional', 'a@b.example',
      ${to}, 'Hello', '{}', 1, now())
    returning id`
  const isIndexed = async (to: string) =>
    (await sql`select from app.message_terms where term = ${`to:${to}`}`).length === 1

  await sql.begin(async (tx) => {
    await insert(tx, 'late@c.example')
    await sql.begin((other) => insert(other, 'early@c.example'))
    for (let runs = 0; runs < 3; runs += 1) await run()
    t.notOk(await isIndexed('early@c.example'), 'the index stays before both')
  })
  // A transaction of another database in the cluster may be running as well.
  await until('both are indexed', async () => {
    await run()
    return (await isIndexed('early@c.example')) && isIndexed('late@c.example')
  })
})
