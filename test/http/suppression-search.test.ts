import t from 'tap'
import { connect, planSettings } from '../../src/db/client.ts'
import { createDatabase, type Tx } from '../fixtures/database.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'

const { url, sql } = await createDatabase()
const large = await createOrganisation(sql)
const small = await createOrganisation(sql)
const others = await createOrganisation(sql)

const ENTRIES = 30_000
/** How many entries a call looks at (api.list_suppressions). */
const REACH = 10_000

// One connection: its plans are made while the table is small and must be good after it has grown.
const service = connect(url, { max: 1 })
t.teardown(() => service.end())

type Page = { data: { email: string }[]; nextCursor: string | null }

/** Returns the number of rows that this session has read of the table. */
const reads = async (tx: Tx) => {
  const [row] = await tx<{ scans: number; rows: number }[]>`
    select seq_scan::integer as scans, (seq_tup_read + idx_tup_fetch)::integer as rows
    from pg_stat_xact_user_tables where relid = 'app.suppressions'::regclass`
  return row ?? { scans: 0, rows: 0 }
}

/** Returns a page as the service requests it, and the number of rows that were read for it. */
async function search(
  { id }: TestOrganisation,
  email: string | null,
  cursor: string | null = null,
) {
  return service.begin(async (tx) => {
    const before = await reads(tx)
    const [response] = await tx<{ page: string }[]>`
      select api.list_suppressions(core.decode_id('org', ${id}), 50, ${email}, ${cursor}) as page`
    const after = await reads(tx)
    const { data, nextCursor }: Page = JSON.parse(response?.page ?? '')
    const emails = data.map((entry) => entry.email)
    return { emails, nextCursor, scans: after.scans - before.scans, rows: after.rows - before.rows }
  })
}

const fill = ({ id }: TestOrganisation, count: number, host: string) => sql`
  insert into app.suppressions (id, organisation_id, email, reason)
  select core.first_id_at(now() - make_interval(secs => ${count}::integer - n)), core.decode_id('org', ${id}),
    case when n % 10 = 9 then 'x' || n || '@rare' || n / 15000 || '.example' else 'x' || n || '@' || ${host}::text end,
    'manual'
  from generate_series(1, ${count}::integer) n`

t.before(async () => {
  for (const organisation of [large, small, others]) {
    for (const email of [null, 'zebra', 'a']) await search(organisation, email)
  }
  await fill(large, ENTRIES, 'gmail.example')
  await fill(small, 1000, 'corp.example')
  await fill(others, ENTRIES, 'yahoo.example')
  await sql`
    update app.suppressions set email = 'zebra@gmail.example'
    where email = 'x7@gmail.example' and organisation_id = core.decode_id('org', ${large.id})`
})

t.test('list_suppressions: the test uses the query plans of the service', async (t) => {
  const [row] = await service`show plan_cache_mode`
  t.strictSame(row?.planCacheMode, planSettings.plan_cache_mode)
})

t.test(
  'list_suppressions: a page of the whole list reads only the entries that it shows',
  async (t) => {
    const first = await search(large, null)
    t.match(first, { scans: 0, nextCursor: String })
    t.equal(first.emails.length, 50)
    t.ok(first.rows < 500, `${first.rows} rows`)
    const second = await search(large, null, first.nextCursor)
    t.ok(second.rows < 500, `${second.rows} rows`)
  },
)

t.test('list_suppressions: a text of nearly all entries is found in the newest', async (t) => {
  const { emails, scans, rows } = await search(large, 'gmail.example')
  t.equal(emails.length, 50)
  t.equal(scans, 0)
  t.ok(rows < 500, `${rows} rows`)
})

/** A call reads the entries that it shows twice more. */
const MORE = 500

t.test(
  'list_suppressions: a search reads a bounded part of the list, whatever the text',
  async (t) => {
    const texts = [
      'zebra',
      'nobody@nowhere.example',
      'gmail.example.org',
      'yahoo.example',
      'zq',
      '--',
      'q@x',
    ]
    for (const text of texts) {
      const { scans, rows } = await search(large, text)
      t.equal(scans, 0)
      // Once for the page, once for the cursor of the next one.
      t.ok(rows < 2 * REACH + MORE, `${rows} rows for ${text}`)
    }
  },
)

t.test(
  'list_suppressions: a search of a short list reads no entries of other organisations',
  async (t) => {
    for (const text of ['yahoo.example', 'zebra', 'zq']) {
      const { emails, nextCursor, scans, rows } = await search(small, text)
      t.strictSame([emails, nextCursor, scans], [[], null, 0])
      t.ok(rows < 3000, `${rows} rows for ${text}`)
    }
  },
)

t.test('list_suppressions: the entry of a whole address is on the first page', async (t) => {
  const first = await search(large, 'Zebra@gmail.example')
  t.strictSame(first.emails, ['zebra@gmail.example'])
  const shown: string[] = []
  for (let cursor = first.nextCursor; cursor; ) {
    const page = await search(large, 'zebra@gmail.example', cursor)
    shown.push(...page.emails)
    cursor = page.nextCursor
  }
  t.strictSame(shown, [], 'no later page repeats it')
})

t.test('list_suppressions: short and empty pages lead to all matches', async (t) => {
  for (const text of ['99@rare1', 'zebra', 'x7', 'nowhere']) {
    const shown: string[] = []
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<typeof search>> = await search(large, text, cursor)
      shown.push(...page.emails)
      cursor = page.nextCursor
      t.equal(page.scans, 0)
    } while (cursor)
    const expected = await sql<{ email: string }[]>`
      select email from app.suppressions
      where organisation_id = core.decode_id('org', ${large.id}) and strpos(email, ${text}) > 0
      order by id desc`
    t.strictSame(
      shown,
      expected.map(({ email }) => email),
      text,
    )
  }
})
