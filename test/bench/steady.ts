// "npm run bench -- --hour" runs all roles at half of their load for an hour, and prints for each part of the hour what
// must not drift: latency, memory and the size of the tables.
import { setTimeout as pause } from 'node:timers/promises'
import { formatTable } from '../../src/cli/table.ts'
import { fill } from './fill.ts'
import { load, memoryOf, startApi, stop } from './processes.ts'
import type { Bench } from './setup.ts'
import { allDelivered, createEndpoints, startReceiver } from './webhooks.ts'

const MINUTES = Number(process.env.BENCH_MINUTES ?? 60)
const PARTS = 12

/** Tables whose rows come and go: dead rows would slow them down. */
const HOT_TABLES = [
  'graphile_worker._private_jobs',
  'app.webhook_deliveries',
  'app.webhook_endpoints',
  'app.status_changes',
  'app.counters',
  'app.allowances',
  'app.request_counts',
]

/** Prints a row for each part of an hour of half load; BENCH_RATE sets another rate in messages per second. */
export async function printHour(bench: Bench, seconds: number) {
  await fill(bench, 'emails', 0)
  const receiver = await startReceiver()
  await createEndpoints(bench, receiver.url, ['email.sent', 'email.delivered'])
  const service = await startApi(bench, [])
  const senders = bench.senders.emails
  const plan = { path: '/v1/emails', senders, connections: 64, port: service.port }
  const rate =
    Number(process.env.BENCH_RATE) || Math.round((await fullRate(bench, plan, seconds)) / 2)
  const rows: Record<string, string>[] = []
  for (let part = 1; part <= PARTS; part += 1) {
    const since = new Date()
    const { answered, refused, p50, p99, slowest } = await load({
      ...plan,
      rate,
      seconds: (MINUTES * 60) / PARTS,
    })
    const waits = await waitsSince(bench, since)
    rows.push({
      [`minutes at ${rate}/s`]: `${(part * MINUTES) / PARTS}`,
      accepted: `${answered}`,
      refused: `${Object.values(refused).reduce((sum, count) => sum + count, 0)}`,
      'p50, ms': p50.toFixed(1),
      'p99, ms': p99.toFixed(1),
      'slowest, ms': slowest.toFixed(0),
      'queued to sent p50, p99, ms': `${waits.p50.toFixed(0)}, ${waits.p99.toFixed(0)}`,
      'events waiting': `${waits.deliveries}`,
      'memory, MB': `${await memoryOf(service.child, 'VmRSS')}`,
      'hot tables, MB': (waits.hotBytes / 1e6).toFixed(1),
      'all, MB': (waits.bytes / 1e6).toFixed(0),
    })
    console.error(JSON.stringify(rows.at(-1)))
  }
  await stop(service.child)
  await stop(receiver.child)
  console.log(formatTable(rows, Object.keys(rows[0] ?? {})))
}

/** Messages a second from the accept to the last delivery. */
async function fullRate(
  bench: Bench,
  plan: Omit<Parameters<typeof load>[0], 'seconds'>,
  seconds: number,
) {
  const startedAt = performance.now()
  await load({ ...plan, seconds })
  for (;;) {
    const [left] = await bench.sql<{ isAny: boolean }[]>`
      select exists (select from app.messages where status <> 'delivered') as is_any`
    if (!left?.isAny) break
    await pause(200)
  }
  await allDelivered(bench)
  const [row] = await bench.sql<{ count: number }[]>`
    select count(*)::integer as count from app.messages`
  return (1000 * (row?.count ?? 0)) / (performance.now() - startedAt)
}

type Waits = { p50: number; p99: number; deliveries: number; hotBytes: number; bytes: number }

async function waitsSince({ sql }: Bench, since: Date): Promise<Waits> {
  const [row] = await sql<Waits[]>`
    select coalesce(w.p50, 0) as p50, coalesce(w.p99, 0) as p99,
      (select count(*)::integer from app.webhook_deliveries) as deliveries,
      (select sum(pg_total_relation_size(n::regclass))::float8 from unnest(${HOT_TABLES}::text[]) n) as hot_bytes,
      pg_database_size(current_database())::float8 as bytes
    from (
      select percentile_cont(0.5) within group (order by m.ms) as p50, percentile_cont(0.99) within group (order by m.ms) as p99
      from (
        select extract(epoch from m.sent_at - m.created_at)::float8 * 1000 as ms
        from app.messages m
        where m.id >= core.first_id_at(${since}) and m.sent_at is not null
      ) m
    ) w`
  if (!row) throw new Error('no figures')
  return row
}
