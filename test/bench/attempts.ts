import { fill } from './fill.ts'
import { here, lineWith, start, stop } from './processes.ts'
import type { Bench, Channel } from './setup.ts'

/** Returns the attempts per second of a worker alone. */
export async function benchAttempts(
  bench: Bench,
  channel: Channel,
  form: 'naive' | 'coalesced',
  count: number,
) {
  const { sql } = bench
  await fill(bench, channel, count)
  const smsc = channel === 'sms' ? start([here('smsc.ts')]) : null
  const peer = smsc ? [String((await lineWith(smsc, 'port')).port)] : []
  const worker = start([here('worker.ts'), bench.url, form, ...peer])
  for (;;) {
    const [left] = await sql<{ jobs: number }[]>`
      select count(*)::integer as jobs from graphile_worker._private_jobs`
    if (left?.jobs === 0) break
    await new Promise((done) => setTimeout(done, 200))
  }
  await stop(worker)
  if (smsc) await stop(smsc)
  // From the first to the last by the database's own times: starting the process is not counted.
  const [took] = await sql<{ perSecond: number }[]>`
    select (count(*) / extract(epoch from max(sent_at) - min(sent_at)))::float as per_second
    from app.messages where sent_at is not null`
  return took?.perSecond ?? 0
}
