import { fill } from './fill.ts'
import { load, memoryOf, startApi, stop } from './processes.ts'
import type { Bench } from './setup.ts'
import { allDelivered, createEndpoints, startReceiver } from './webhooks.ts'

/**
 * All roles in one process: idle latency, and all work at once, with the sandbox's receipts, and with
 * an endpoint for each organisation that wants to hear of everything.
 */
export async function benchWhole(bench: Bench, seconds: number) {
  const { sql } = bench
  await fill(bench, 'emails', 0)
  const receiver = await startReceiver()
  await createEndpoints(bench, receiver.url, ['email.sent', 'email.delivered'])
  const whole = await startApi(bench, [])
  const plan = {
    path: '/v1/emails',
    senders: bench.senders.emails,
    port: whole.port,
    connections: 8,
  }
  await load({ ...plan, rate: 20, seconds })
  const [idle] = await sql<{ p50: number; p99: number }[]>`
    select percentile_cont(0.5) within group (order by ms) as p50, percentile_cont(0.99) within group (order by ms) as p99
    from (select extract(epoch from sent_at - created_at)::float * 1000 as ms from app.messages
          where sent_at is not null) m`

  await allDelivered(bench)
  await sql`truncate app.messages, app.bodies, app.events, app.idempotency_keys, app.webhook_attempts`
  await load({ ...plan, connections: 64, seconds })
  for (;;) {
    const [left] = await sql<{ waiting: number }[]>`
      select count(*)::integer as waiting from app.messages where status <> 'delivered'`
    if (left?.waiting === 0) break
    await new Promise((done) => setTimeout(done, 200))
  }
  await allDelivered(bench)
  const [steady] = await sql<{ perSecond: number }[]>`
    select (count(*) / extract(epoch from greatest(max(delivered_at),
      (select max(a.started_at + a.duration_ms * interval '1 millisecond') from app.webhook_attempts a))
      - min(created_at)))::float as per_second
    from app.messages`
  const memory = await memoryOf(whole.child)
  await stop(whole.child)
  await stop(receiver.child)
  return { idle, steady: steady?.perSecond ?? 0, memory }
}
