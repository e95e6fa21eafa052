// "npm run bench -- --cells" measures what a second cell brings. A cell is its Postgres and a process with all roles, which
// have the same share of the CPU together. Needs Linux and root.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { formatTable } from '../../src/cli/table.ts'
import { limitCpu, treeOf } from './cpu-limit.ts'
import { here, load, start, startApi, stop } from './processes.ts'
import { type Bench, setUp } from './setup.ts'

/** The share of a core of each cell, so that two cells and their callers fit on two cores. */
const SHARE = Number(process.env.BENCH_SHARE ?? 0.6)

/** A process runs its hot functions compiled after this time without a limit. */
const WARM_UP_SECONDS = 4

const TURNS = 3

type Cell = { bench: Bench; child: ChildProcess; port: number; end(): Promise<void> }

/** Prints how many messages are accepted, sent and delivered a second by one of two joined cells, and by both at once. */
export async function printCells(seconds: number) {
  const benches = [await setUp(1), await setUp(2)] as [Bench, Bench]
  const cells: Cell[] = []
  try {
    await join(benches[0], benches[1])
    await join(benches[1], benches[0])
    for (const bench of benches) cells.push(await startCell(bench))
    const rows = []
    for (let turn = 1; turn <= TURNS; turn += 1) {
      const [one = 0] = await Promise.all(cells.slice(0, 1).map((cell) => measure(cell, seconds)))
      const both = await Promise.all(cells.map((cell) => measure(cell, seconds)))
      const sum = both.reduce((total, perSecond) => total + perSecond, 0)
      rows.push({
        [`share of a core each: ${SHARE}`]: `turn ${turn}`,
        'one cell, per second': Math.round(one),
        'two cells, each': both.map(Math.round).join(' and '),
        'times one cell': (sum / one).toFixed(2),
        goal: '1.70',
      })
    }
    console.log(formatTable(rows, Object.keys(rows[0] ?? {})))
  } finally {
    for (const { child, end } of cells) {
      await end()
      await stop(child)
    }
    for (const bench of benches) await leave(bench)
    for (const bench of benches) await bench.close()
  }
}

async function startCell(bench: Bench): Promise<Cell> {
  const { child, port } = await startApi(bench, [])
  const cell = { bench, child, port, end: async () => undefined }
  await measure(cell, WARM_UP_SECONDS)
  const [row] = await bench.sql<{ pid: number }[]>`
    select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::integer as pid`
  const pids = [...(await treeOf(row?.pid ?? 0)), child.pid ?? 0]
  return { ...cell, end: await limitCpu(pids, SHARE) }
}

/** Returns how many messages a second went from their accept to their receipt. */
async function measure({ bench, port }: Cell, seconds: number): Promise<number> {
  const { sql } = bench
  await sql`truncate app.messages, app.bodies, app.events, app.idempotency_keys`
  await load({
    path: '/v1/emails',
    senders: bench.senders.emails,
    connections: 32,
    seconds,
    port,
  })
  for (;;) {
    const [row] = await sql<{ waiting: number; perSecond: number }[]>`
      select count(*) filter (where status <> 'delivered')::integer as waiting,
        count(*) / extract(epoch from max(delivered_at) - min(created_at))::float as per_second
      from app.messages`
    if (row?.waiting === 0) return row.perSecond
    await new Promise((done) => setTimeout(done, 200))
  }
}

const join = (cell: Bench, other: Bench) => runCommand(cell, 'join', other.url)

/** Without this a subscription and a slot would keep the databases from being dropped. */
async function leave({ url, sql }: Bench): Promise<void> {
  const joined = await sql<{ number: number }[]>`select number from app.cells`
  for (const { number } of joined) await runCommand({ url }, 'leave', `${number}`)
}

async function runCommand({ url }: Pick<Bench, 'url'>, ...args: string[]): Promise<void> {
  const child = start([here('../../src/main.ts'), ...args], { DATABASE_URL: url })
  child.stdout?.resume()
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}`)
}
