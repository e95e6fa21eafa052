// "node test/bench/pages.ts" measures the pages of the dashboard over HTTP with many messages. It prints a table of
// milliseconds and kilobytes. README.md says how to keep the database between runs.
import { loadavg } from 'node:os'
import { formatTable } from '../../src/cli/table.ts'
import { connect, type Sql } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { routes, signIn } from '../fixtures/dashboard.ts'
import { insertHistory } from './history.ts'
import { memoryOf, startApi, stop } from './processes.ts'
import { openServer } from './setup.ts'

const MESSAGES = Number(process.env.BENCH_MESSAGES ?? 1_000_000)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
/** Measures only pages whose path or name contains this text. */
const ONLY = process.env.BENCH_PAGES ?? ''

const WARM_UPS = 2
const REQUESTS = 15
const DAYS = 90
const DATABASE = 'postgram_pages'
const OPERATOR = 'operator@example.com'

/** The organisations with messages, and their parts of them. */
const SHARES = { large: 0.8995, medium: 0.1, small: 0.0005 }
type Name = keyof typeof SHARES
const NAMES = Object.keys(SHARES) as Name[]

/** Searches among the messages, by the query of the page. No message has all terms of the last five. */
const SEARCHES: Record<string, string> = {
  'search: a common status': 'status=delivered',
  'search: a rare status': 'status=failed',
  'search: queued': 'status=queued',
  'search: a rare tag': 'tag=rare',
  'search: a sender': 'from=news@c.example',
  'search: an address': 'q=someone7@c.example',
  'search: a number': 'q=%2B27600000010',
  'search: a common subject': 'q=Your+order',
  'search: before a day': 'until=DAY',
  'search: address and rare status': 'until=DAY&status=failed&q=to:someone7@c.example',
  'search: mode and rare status': 'mode=test&status=bounced',
  'search: no such address': 'q=nobody@c.example',
  'search: no such subject': 'q=absent+words',
  'search: tag and rare status': 'q=tag:tag-1+status:bounced',
  'search: subject and status': 'q=absent+status:failed',
  'search: channel and status': 'channel=sms&status=bounced',
}

const server = await openServer()
const admin = connect(server.url, { max: 1 })
const url = Object.assign(new URL(server.url), { pathname: `/${DATABASE}` }).href
const [found] = await admin`select from pg_database where datname = ${DATABASE}`
if (!found) await admin.unsafe(`create database ${DATABASE}`)
await migrate(url)
const sql = connect(url, { max: 2 })
try {
  const [row] = await sql`select from app.messages limit 1`
  if (!row) await fill()
  await measure()
} finally {
  await sql.end()
  await admin.end()
  await server.close()
}

function ownerOf(name: string): string {
  return `${name}@example.com`
}

/** Three organisations with messages, one of them with much beside, and 400 without. */
async function fill() {
  await sql`select ops.create_plan('pages', 'Pages', 0, 2000000000, 2000000000, 100)`
  const shares = new Map<string, number>()
  for (const name of NAMES) {
    const id = await createOrganisation(sql, name)
    shares.set(id, SHARES[name])
  }
  await sql`
    select ops.create_organisation('Organisation ' || n, format('owner-%s@example.com', n), 'pages')
    from generate_series(1, 400) n`
  await sql`select api.seal_audit()`
  await sql`select api.verify_audit()`
  await insertHistory(sql, { messages: MESSAGES, days: DAYS, shares })
}

/** Returns its UUID. */
async function createOrganisation(sql: Sql, name: Name): Promise<string> {
  const [row] = await sql<{ id: string; uuid: string }[]>`
    select o.id, core.decode_id('org', o.id) as uuid
    from ops.create_organisation(${name}, ${ownerOf(name)}, 'pages') o (id)`
  const { id = '', uuid = '' } = row ?? {}
  await sql`select ops.create_api_key(${id}) from generate_series(1, 20)`
  await sql`select ops.verify_domain(${id}, format('%s-%s.example', ${name}::text, n)) from generate_series(1, 30) n`
  await sql`
    select ops.create_template(${id}, 'Template ' || n, 'Hello {{name}}', repeat('<p>Hello {{name}}</p>', 100), 'Hello {{name}}')
    from generate_series(1, 60) n`
  await sql`select ops.invite(${id}, format('member-%s-%s@example.com', ${name}::text, n), 'member') from generate_series(1, 60) n`
  await sql`
    select ops.create_webhook_endpoint(${id}, format('https://hooks.example/%s', n), '{email.delivered,sms.delivered}')
    from generate_series(1, 3) n`
  await sql`
    update app.webhook_endpoints p
    set failing_since = case when p.url like '%/2' then now() - interval '6 hours' end,
      disabled_at = case when p.url like '%/3' then now() - interval '2 days' end
    where p.organisation_id = ${uuid}`
  await sql`
    insert into app.closed_periods
    select ${uuid}, now() - make_interval(months => n), now() - make_interval(months => n - 1), 'pages', 'Pages', 0,
      2000000000, 3000000, 2000000000, 300000, 0
    from generate_series(1, 24) n`
  return uuid
}

type Measured = { p50: number; p95: number; kB: number }

async function measure() {
  await sql`select ops.make_operator(${OPERATOR})`
  const api = await startApi({ url }, ['--only', 'api'])
  try {
    const base = `http://127.0.0.1:${api.port}`
    const before = await memoryOf(api.child, 'VmRSS')
    const rows = []
    for (const [page, addresses] of await pagesOf(base)) {
      if (!page.includes(ONLY)) continue
      const measured: Measured[] = []
      for (const [cookie, address] of addresses) measured.push(await time(base + address, cookie))
      rows.push({
        page,
        ...Object.fromEntries(measured.map(({ p50 }, place) => [NAMES[place], p50.toFixed(1)])),
        p95: Math.max(...measured.map(({ p95 }) => p95)).toFixed(1),
        kB: Math.max(...measured.map(({ kB }) => kB)).toFixed(1),
      })
    }
    console.log(formatTable(rows, ['page', ...NAMES, 'p95', 'kB']))
    const [counted] = await sql<{ messages: string }[]>`
      select sum(reltuples)::bigint as messages from pg_class where relname ~ '^messages_[0-9_]+$' and relkind = 'r'`
    const [after, most] = [await memoryOf(api.child, 'VmRSS'), await memoryOf(api.child)]
    console.log(`${counted?.messages} messages; load ${loadavg()[0]?.toFixed(1)}`)
    console.log(`memory of the process: ${before} MB before, ${after} MB after, ${most} MB at most`)
  } finally {
    await stop(api.child)
  }
}

/** Milliseconds: the median of the best round, and the 95th percentile of all rounds. */
async function time(address: string, cookie: string): Promise<Measured> {
  const medians: number[] = []
  const all: number[] = []
  let bytes = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    const times: number[] = []
    for (let n = -WARM_UPS; n < REQUESTS; n += 1) {
      const started = performance.now()
      const response = await fetch(address, { headers: { Cookie: cookie }, redirect: 'manual' })
      bytes = (await response.arrayBuffer()).byteLength
      if (response.status !== 200) throw new Error(`${address}: status ${response.status}`)
      if (n >= 0) times.push(performance.now() - started)
    }
    medians.push(percentile(times, 0.5))
    all.push(...times)
  }
  return { p50: Math.min(...medians), p95: percentile(all, 0.95), kB: bytes / 1000 }
}

function percentile(times: number[], part: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * part) - 1] ?? Number.NaN
}

type Addresses = [cookie: string, address: string][]

/** All pages, and the searches: for each organisation the cookie and the address. */
async function pagesOf(base: string): Promise<Map<string, Addresses>> {
  const pages = new Map<string, Addresses>()
  const add = (page: string, cookie: string, address: string) => {
    pages.set(page, [...(pages.get(page) ?? []), [cookie, address]])
  }
  const paths = routes().pages.map(({ path }) => path)
  const until = new Date(Date.now() - 60 * 24 * 3600 * 1000).toISOString().slice(0, 10)
  for (const name of NAMES) {
    const cookie = (await signIn(sql, base, ownerOf(name))).cookies()
    const ids = await idsOf(name)
    for (const path of paths.filter((path) => path.startsWith('/dashboard'))) {
      const address = path
        .replace(':organisation', ids.organisation)
        .replace(/(\w+)\/:id/, (_, kind) => `${kind}/${ids[kind]}`)
      add(path.replace(/^.*:organisation/, '').replace(/^$/, '/'), cookie, address)
    }
    const list = `/dashboard/${ids.organisation}/messages`
    for (const [label, query] of Object.entries(SEARCHES)) {
      add(label, cookie, `${list}?${query.replace('DAY', until)}`)
    }
  }
  const cookie = (await signIn(sql, base, OPERATOR)).cookies()
  const { organisation } = await idsOf('large')
  for (const path of paths.filter((path) => path.startsWith('/operator'))) {
    add(path, cookie, path.replace(':id', organisation))
  }
  return pages
}

/** What the paths of an organisation's pages name: a message with a webhook event, the event, its endpoint, a template. */
async function idsOf(name: Name): Promise<Record<string, string> & { organisation: string }> {
  const [ids] = await sql<(Record<string, string> & { organisation: string })[]>`
    select core.encode_id('org', o.id) as organisation, core.encode_id('em', e.message_id) as messages,
      core.encode_id('evt', e.id) as events,
      (select core.encode_id('we', p.id) from app.webhook_endpoints p where p.organisation_id = o.id and p.url like '%/2') as webhooks,
      (select core.encode_id('tpl', t.id) from app.templates t where t.organisation_id = o.id order by t.id limit 1) as templates
    from app.organisations o
    cross join lateral (
      select e.id, e.message_id from app.webhook_events e
      where e.organisation_id = o.id and e.type = 'email.delivered' and e.id < core.first_id_at(now() - interval '3 days')
      order by e.id desc
      limit 1
    ) e
    where o.name = ${name}`
  if (!ids) throw new Error(`the organisation ${name} has no webhook event`)
  return ids
}
