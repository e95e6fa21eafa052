import type { ChildProcess } from 'node:child_process'
import { fill } from './fill.ts'
import { here, lineWith, start, stop } from './processes.ts'
import type { Bench } from './setup.ts'

const IN_ONE_CALL = 500
const ROUNDS = 20

/** A receiver in a process of its own; answers where events are to be posted. */
export async function startReceiver(): Promise<{ child: ChildProcess; url: string }> {
  const child = start([here('receiver.ts')])
  return { child, url: `http://127.0.0.1:${(await lineWith(child, 'port')).port}/hook` }
}

/** One endpoint for each organisation. */
export async function createEndpoints({ sql }: Bench, url: string, types: string[]) {
  await sql`select ops.create_webhook_endpoint(o.id, ${url}, ${types}) from ops.organisations o`
}

/** When no event waits to be delivered any more. */
export async function allDelivered({ sql }: Bench) {
  for (;;) {
    const [left] = await sql<{ waiting: boolean }[]>`
      select exists (select from app.webhook_deliveries) as waiting`
    if (!left?.waiting) return
    await new Promise((done) => setTimeout(done, 200))
  }
}

/** Events per second that a worker alone delivers, each of the organisations to an endpoint. */
export async function benchDeliveries(bench: Bench, count: number): Promise<number> {
  const { sql } = bench
  const receiver = await startReceiver()
  await fill(bench, 'emails', count)
  await createEndpoints(bench, receiver.url, ['email.sent'])
  await recordSent(bench)
  await sql`
    delete from graphile_worker._private_jobs j using graphile_worker._private_tasks t
    where t.id = j.task_id and t.identifier = any (core.send_tasks('email'))`
  await sql`vacuum analyze graphile_worker._private_jobs, app.webhook_deliveries, app.webhook_events`
  const worker = start([here('worker.ts'), bench.url, 'coalesced'])
  await allDelivered(bench)
  await stop(worker)
  await stop(receiver.child)
  const [took] = await sql<{ perSecond: number }[]>`
    select (count(distinct event_id) / extract(epoch from max(started_at) - min(started_at)))::float as per_second
    from app.webhook_attempts`
  return took?.perSecond ?? 0
}

/** Records that all messages in the queue that were accepted since then were sent, with their webhook events. */
export async function recordSent(bench: Bench, since = new Date(0)) {
  for (const ids of await queued(bench, since)) {
    await bench.sql`select count(*) from api.start_emails(${ids}::uuid[])`
    await bench.sql`select api.finish_messages(${JSON.stringify(ids.map(sent))}::text::jsonb)`
  }
}

/**
 * What events add to the time in which attempts and their receipts are recorded, in percent of it:
 * both of them wanted by an endpoint of the organisation, and wanted by nobody.
 */
export async function benchEvents(bench: Bench): Promise<{ wanted: number; unwanted: number }> {
  const { sql } = bench
  await fill(bench, 'emails', 2 * IN_ONE_CALL * ROUNDS)
  await createEndpoints(bench, 'http://127.0.0.1:9/hook', ['email.sent', 'email.delivered'])
  const times = { wanted: [] as number[], unwanted: [] as number[], look: [] as number[] }
  const connection = await sql.reserve()
  const timed = async (list: number[], work: () => Promise<unknown>) => {
    const began = performance.now()
    await work()
    list.push(performance.now() - began)
  }
  // In turn, as a machine is not equally fast all the time.
  for (const [place, ids] of (await queued(bench)).entries()) {
    const form = place % 2 === 0 ? 'wanted' : 'unwanted'
    const changes = connection`
      select array_agg((m.id, m.organisation_id, 'sent')::core.message_change) as changes
      from app.messages m where m.id = any (${ids}::uuid[])`
    if (form === 'unwanted') {
      await sql`
        delete from app.webhook_endpoints p using app.messages m
        where m.id = ${ids[0] ?? ''} and m.organisation_id = p.organisation_id`
    }
    await connection`select count(*) from api.start_emails(${ids}::uuid[])`
    const sents = JSON.stringify(ids.map(sent))
    const receipts = JSON.stringify(ids.map(delivered))
    await timed(times[form], async () => {
      await connection`select api.finish_messages(${sents}::text::jsonb)`
      await connection`select api.finish_poll(${receipts}::text::jsonb)`
    })
    if (form === 'unwanted') {
      const [row] = await changes
      // Alone, by the server's own clock, as it is little beside the way there.
      const [plan] = await connection<{ 'QUERY PLAN': { 'Execution Time': number }[] }[]>`
        explain (analyze, format json) select core.emit_events(${row?.changes}::core.message_change[])`
      times.look.push(plan?.['QUERY PLAN'][0]?.['Execution Time'] ?? 0)
    }
  }
  connection.release()
  const base = median(times.unwanted)
  return {
    wanted: 100 * (median(times.wanted) / base - 1),
    // Once for the attempts and once for the receipts.
    unwanted: (100 * 2 * median(times.look)) / base,
  }
}

const median = (times: number[]) => times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0

/** The IDs of all messages in the queue, as many together as one call is to have. */
async function queued({ sql }: Bench, since = new Date(0)): Promise<string[][]> {
  const rows = await sql<
    { id: string }[]
  >`select id from app.messages where id >= core.first_id_at(${since}) and status = 'queued' order by id`
  const ids = rows.map(({ id }) => id)
  return Array.from({ length: Math.ceil(ids.length / IN_ONE_CALL) }, (_, place) =>
    ids.slice(place * IN_ONE_CALL, (place + 1) * IN_ONE_CALL),
  )
}

const sent = (id: string) => ({ id, provider: 'instant', outcome: 'sent' })
const delivered = (id: string) => ({
  ...{ message_id: id, provider_event_id: id, type: 'delivered', recipient: 'a@b.example' },
  occurred_at: new Date().toISOString(),
})
