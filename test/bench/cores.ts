// "npm run bench -- --cores" measures how accepts and attempts grow with the number of processes. Each process has a
// share of a core, so that two cores show what more processes bring until Postgres is the limit. Needs Linux with the
// CPU controller of cgroups, and root.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { formatTable } from '../../src/cli/table.ts'
import { limitCpu } from './cpu-limit.ts'
import { fill } from './fill.ts'
import { here, load, start, startApi, stop } from './processes.ts'
import type { Bench } from './setup.ts'
import { readUsage } from './usage.ts'

const COUNTS = [1, 2, 4, 8]

/** The share of a core that a process has. */
const SHARE = Number(process.env.BENCH_SHARE ?? 0.1)

/** A process runs its hot functions compiled after this time without a limit. */
const WARM_UP_SECONDS = 4

/** Enough for all processes, for their warm-up and the time that is measured. */
const QUEUED = 160_000

type Row = { work: string; processes: number; perSecond: number; cores: number; postgres: number }

/** Prints how much a number of processes accepts and attempts, and the cores that they and Postgres use. */
export async function printCores(bench: Bench, seconds: number) {
  const rows: Row[] = []
  for (const processes of COUNTS) rows.push(await accepts(bench, processes, seconds))
  for (const processes of COUNTS) rows.push(await attempts(bench, processes, seconds))
  const shown = rows.map(({ work, processes, perSecond, cores, postgres }) => {
    const first = rows.find((row) => row.work === work) as Row
    return {
      [`share of a core each: ${SHARE}`]: work,
      processes,
      'per second': Math.round(perSecond),
      'times one process': (perSecond / first.perSecond).toFixed(2),
      'cores of the processes': cores.toFixed(2),
      'cores of Postgres': postgres.toFixed(2),
      'µs of Postgres each': Math.round((postgres / perSecond) * 1e6),
    }
  })
  console.log(formatTable(shown, Object.keys(shown[0] ?? {})))
}

async function accepts(bench: Bench, count: number, seconds: number): Promise<Row> {
  await fill(bench, 'emails', 0)
  const apis = await Promise.all(
    Array.from({ length: count }, () => startApi(bench, ['--only', 'api'])),
  )
  const plan = { path: '/v1/emails', senders: bench.senders.emails, connections: 64 }
  const loadAll = async (of: number) => {
    const results = await Promise.all(apis.map(({ port }) => load({ ...plan, port, seconds: of })))
    return results.reduce((sum, { answered }) => sum + answered / of, 0)
  }
  await loadAll(WARM_UP_SECONDS)
  const children = apis.map(({ child }) => child)
  return limited('single accepts', bench, children, () => loadAll(seconds))
}

async function attempts(bench: Bench, count: number, seconds: number): Promise<Row> {
  await fill(bench, 'emails', QUEUED)
  const workers = Array.from({ length: count }, () =>
    start([here('worker.ts'), bench.url, 'coalesced']),
  )
  // Its first output says that it has started.
  await Promise.all(workers.map(({ stdout }) => once(stdout as Readable, 'data')))
  await pause(WARM_UP_SECONDS * 1000)
  return limited('attempts', bench, workers, async () => {
    const before = await sentBy(bench)
    await pause(seconds * 1000)
    return ((await sentBy(bench)) - before) / seconds
  })
}

async function sentBy({ sql }: Bench): Promise<number> {
  const [row] = await sql<{ sent: number; queued: number }[]>`
    select count(*) filter (where status = 'sent')::integer as sent,
      count(*) filter (where status = 'queued')::integer as queued
    from app.messages`
  if (!row || row.queued === 0) throw new Error('the queue was empty before the end')
  return row.sent
}

/** Gives each process its share, measures, and stops the processes. */
async function limited(
  work: string,
  bench: Bench,
  children: ChildProcess[],
  measure: () => Promise<number>,
): Promise<Row> {
  const limits = await Promise.all(children.map(({ pid }) => limitCpu([pid ?? 0], SHARE)))
  const named = Object.fromEntries(children.map((child, n) => [`process ${n}`, child]))
  const before = await readUsage(bench.sql, named)
  const perSecond = await measure()
  const after = await readUsage(bench.sql, named)
  const coresOf = (name: string) =>
    ((after.cpu[name] ?? 0) - (before.cpu[name] ?? 0)) / (after.at - before.at) / 1000
  const cores = Object.keys(named).reduce((sum, name) => sum + coresOf(name), 0)
  await Promise.all(children.map(stop))
  await Promise.all(limits.map((end) => end()))
  return { work, processes: children.length, perSecond, cores, postgres: coresOf('Postgres') }
}
