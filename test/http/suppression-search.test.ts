import t from 'tap'
import { connect, planSettings } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import type { Tx } from '../fixtures/sql.ts'

const { url, sql } = await createDatabase()
const large = await createOrganisation(sql)
const small = await createOrganisation(sql)
const others = await createOrganisation(sql)

const ENTRIES = 100_000
/** What is walked through before the index of trigrams is asked (core.find_suppressions). */
const REACH = 10_000

// One connection, whose plans are made while the table is small and must be good when it has grown.
const service = connect(url, { max: 1 })
t.teardown(() => service.end())

type Page = { data: { email: string }[]; nextCursor: string | null }

/** What this session has read of the table so far. */
const reads = async (tx: Tx) => {
  const [row] = await tx<{ scans: number; rows: number }[]>`
    select seq_scan::integer as scans, (seq_tup_read + idx_tup_fetch)::integer as rows
    from pg_stat_xact_user_tables where relid = 'app.suppressions'::regclass`
  return row ?? { scans: 0, rows: 0 }
}

/** A page as the service asks for it, and how much of the table was read for it. */
async function search(
  { id }: TestOrganisation,
  email: string | null,
  cursor: string | null = null,
) {
  return service.begin(async (tx) => {
    const before = await reads(tx)
    const [answer] = await tx<{ page: string }[]>`
      select api.list_suppressions(core.decode_id('org', ${id}), 50, ${email}, ${cursor}) as page`
    const after = await reads(tx)
    const { data, nextCursor }: Page = JSON.parse(answer?.page ?? '')
    const emails = data.map((entry) => entry.email)
    return { emails, nextCursor, scans: after.scans - before.scans, rows: after.rows - before.rows }
  })
}

const fill = ({ id }: TestOrganisation, count: number, host: string) => sql`
  insert into app.suppressions (id, organisation_id, email, reason)
  select core.first_id_at(now() - make_interval(secs => ${count}::integer - n)), core.decode_id('org', ${id}),
    case when n % 10 = 9 then 'x' || n || '@rare' || n / 50000 || '.example' else 'x' || n || '@' || ${host}::text end,
    'manual'
  from generate_series(1, ${count}::integer) n`

t.before(async () => {
  for (const organisation of [large, small, others]) {
    for (const email of [null, 'zebra', 'a']) await search(organisation, email)
  }
  const [index] = await sql<{ indexdef: string }[]>`
    select indexdef from pg_indexes where schemaname = 'app' and indexname = 'suppressions_search'`
  // Made at once instead of row by row, which takes a tenth of the time.
  await sql`drop index app.suppressions_search`
  await fill(large, ENTRIES, 'gmail.example')
  await fill(small, 1000, 'corp.example')
  await fill(others, ENTRIES, 'yahoo.example')
  await sql`
    update app.suppressions set email = 'zebra@gmail.example'
    where email = 'x7@gmail.example' and organisation_id = core.decode_id('org', ${large.id})`
  await sql.unsafe(index?.indexdef ?? '')
})

t.test('the plans are those of the service', async (t) => {
  const [row] = await service`show plan_cache_mode`
  t.strictSame(row?.planCacheMode, planSettings.plan_cache_mode)
})

t.test('a page of the whole list reads what it shows', async (t) => {
  const first = await search(large, null)
  t.match(first, { scans: 0, nextCursor: String })
  t.equal(first.emails.length, 50)
  t.ok(first.rows < 500, `${first.rows} rows`)
  const second = await search(large, null, first.nextCursor)
  t.ok(second.rows < 500, `${second.rows} rows`)
})

t.test('what is in nearly all entries is found in the newest', async (t) => {
  const { emails, scans, rows } = await search(large, 'gmail.example')
  t.equal(emails.length, 50)
  t.equal(scans, 0)
  t.ok(rows < 500, `${rows} rows`)
})

t.test('what is in one entry of them all is found without reading the others', async (t) => {
  const { emails, scans, rows } = await search(large, 'zebra')
  t.strictSame(emails, ['zebra@gmail.example'])
  t.equal(scans, 0)
  t.ok(rows < 2 * REACH + 500, `${rows} rows`)
})

t.test('so is what is in no entry', async (t) => {
  for (const email of ['nobody@nowhere.example', 'gmail.example.org']) {
    const { emails, scans, rows, nextCursor } = await search(large, email)
    t.strictSame([emails, nextCursor, scans], [[], null, 0])
    t.ok(rows < 2 * REACH + 500, `${rows} rows for ${email}`)
  }
})

t.test('the entries of others cost a short list nothing, however many match', async (t) => {
  for (const email of ['yahoo.example', 'zebra', 'zq']) {
    const { emails, scans, rows } = await search(small, email)
    t.strictSame([emails, scans], [[], 0])
    t.ok(rows < 3000, `${rows} rows for ${email}`)
  }
})

t.test('and a long one nothing either', async (t) => {
  const { emails, scans, rows } = await search(large, 'yahoo.example')
  t.strictSame([emails, scans], [[], 0])
  t.ok(rows < 2 * REACH + 500, `${rows} rows`)
})

t.test('without three letters or digits in a row the whole list is walked, once', async (t) => {
  for (const email of ['zq', 'z', '--', '._', 'q@x']) {
    const { emails, scans, rows } = await search(large, email)
    t.strictSame([emails.filter((found) => !found.includes(email)), scans], [[], 0])
    t.ok(rows < ENTRIES + 500, `${rows} rows for ${email}`)
  }
})

t.test('pages go over from the newest to what the index finds, and miss nothing', async (t) => {
  const shown: string[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof search>> = await search(large, '99@rare1', cursor)
    shown.push(...page.emails)
    cursor = page.nextCursor
    t.equal(page.scans, 0)
  } while (cursor)
  const expected = await sql<{ email: string }[]>`
    select email from app.suppressions
    where organisation_id = core.decode_id('org', ${large.id}) and strpos(email, '99@rare1') > 0
    order by id desc`
  t.ok(expected.length > 400)
  t.strictSame(
    shown,
    expected.map(({ email }) => email),
  )
})
