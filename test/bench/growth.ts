// What stays fast with many messages behind it: the operator's views, reading one message, and
// sending while the oldest month is dropped.
import { setTimeout as pause } from 'node:timers/promises'
import type { Sql } from '../../src/db/client.ts'
import { insertHistory } from './history.ts'
import type { LoadResult } from './load.ts'
import { load, startApi, stop } from './processes.ts'
import type { Bench } from './setup.ts'

export type Growth = {
  messages: number
  /** The slowest views by their milliseconds, for their first 1 000 rows. */
  slowest: [view: string, ms: number][]
  /** GET /v1/emails/{id} for messages of all ages, one after the other; and with few there are. */
  retrieval: LoadResult
  retrievalOfFew: LoadResult
  /** The slowest of 200 sends a second while partitions are dropped, in milliseconds. */
  slowestSend: number
  dropped: number
}

/** Over how many days before now messages are spread: the oldest month is dropped while others are sent. */
const DAYS = 365

/** So few that all of them are in memory: what reading one costs here besides how many there are. */
const FEW = 10_000

const RETRIEVAL_SECONDS = 10

/** Read again after its first time, which also reads it from disk and makes its plan. */
const TIMES = 3

export async function benchGrowth(bench: Bench, messages: number): Promise<Growth> {
  const { sql } = bench
  await fill(sql, FEW)
  const retrievalOfFew = await timeRetrieval(bench)
  await fill(sql, messages)
  const slowest = await timeViews(sql)
  const retrieval = await timeRetrieval(bench)
  const api = await startApi(bench, ['--only', 'api'])
  const sends = load({
    path: '/v1/emails',
    senders: bench.senders.emails,
    connections: 16,
    seconds: 20,
    rate: 200,
    port: api.port,
  })
  // Only what is sent after its warm-up counts.
  await pause(5000)
  await sql`update app.retention set days = 62 where data = 'messages'`
  const dropped = await dropAll(sql)
  const { slowest: slowestSend } = await sends
  await stop(api.child)
  return { messages, slowest, retrieval, retrievalOfFew, slowestSend, dropped }
}

/** The same for each organisation, over the last year. */
async function fill(sql: Sql, messages: number) {
  const organisations = await sql<{ id: string }[]>`select id from app.organisations`
  const shares = new Map(organisations.map(({ id }) => [id, 1 / organisations.length]))
  await insertHistory(sql, { messages, days: DAYS, shares })
}

async function timeViews(sql: Sql): Promise<[string, number][]> {
  const views = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c where c.relnamespace = 'ops'::regnamespace and c.relkind = 'v'`
  const times: [string, number][] = []
  for (const { name } of views) {
    let best = Number.POSITIVE_INFINITY
    for (let n = 0; n < TIMES; n += 1) {
      const started = performance.now()
      await sql.unsafe(`select * from ops.${name} limit 1000`)
      best = Math.min(best, performance.now() - started)
    }
    times.push([name, best])
  }
  return times.sort(([, a], [, b]) => b - a).slice(0, 5)
}

/** By a process of its own, so that what it has compiled before does not tell. */
async function timeRetrieval(bench: Bench): Promise<LoadResult> {
  const rows = await bench.sql<{ id: string; domain: string }[]>`
    with moment as materialized (
      select s.first + (s.last - s.first) * random() as at
      from (select min(created_at) as first, max(created_at) as last from app.messages) s, generate_series(1, 5000)
    )
    select core.encode_id('em', m.id) as id, d.name as domain
    from moment
    cross join lateral (
      select m.id, m.organisation_id from app.messages m
      where m.id >= core.first_id_at(moment.at) and m.channel = 'email'
      order by m.id
      limit 1
    ) m
    join app.domains d on d.organisation_id = m.organisation_id`
  const { senders } = bench
  const keys = new Map(senders.emails.map(({ key, body }) => [/@([^>]+)>/.exec(body)?.[1], key]))
  const api = await startApi(bench, ['--only', 'api'])
  const result = await load({
    path: '/v1/emails',
    senders: rows.map(({ id, domain }) => ({ id, key: keys.get(domain) ?? '' })),
    connections: 1,
    seconds: RETRIEVAL_SECONDS,
    port: api.port,
  })
  await stop(api.child)
  const [status] = Object.keys(result.refused)
  if (status) throw new Error(`a message was answered with ${status}`)
  return result
}

async function dropAll(sql: Sql): Promise<number> {
  let dropped = 0
  // A table may be in use for longer than a drop waits; the clock asks again each minute.
  for (let misses = 0; misses < 100; ) {
    const [row] = await sql<{ dropped: number }[]>`select api.drop_expired() as dropped`
    if (row?.dropped) dropped += row.dropped
    else {
      misses += 1
      await pause(500)
    }
    const [left] = await sql<{ count: number }[]>`
      select count(*)::integer as count from core.partitions() p where p.expires_at <= core.now()`
    if (left?.count === 0) break
  }
  return dropped
}
