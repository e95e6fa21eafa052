// "npm run bench -- --account" prints what a message costs: CPU of each process, WAL, commits and rows,
// and the time and size of each call. CPU is steadier than throughput on a machine that others use, so
// a change is judged by it (test/bench/README.md).
import { setTimeout as pause } from 'node:timers/promises'
import { formatTable } from '../../src/cli/table.ts'
import { batchesOf } from './accept.ts'
import { fill } from './fill.ts'
import type { LoadPlan } from './load.ts'
import { here, lineWith, load, start, startApi, startRoles, stop } from './processes.ts'
import type { Bench } from './setup.ts'
import { cpuOf, type Processes, type Rows, readUsage, type Usage } from './usage.ts'
import { allDelivered, createEndpoints, startReceiver } from './webhooks.ts'

type Measured = { name: string; messages: number; before: Usage; after: Usage }

const QUEUED = 40_000

const TABLE_COLUMNS = ['table', 'inserted', 'updated', 'of them HOT', 'deleted']

const STEP_COLUMNS = ['step', 'calls', 'messages per call', 'µs per call', 'µs per message']

/** Steps with less are left out, in microseconds for each message. */
const LEAST = 0.5

/** Tables with less are left out, in rows for each message. */
const LEAST_ROWS = 0.005

/** Measures these pieces of work and prints each message's cost, its rows by table, and its steps. */
export async function printAccount(bench: Bench, seconds: number, wanted?: string[]) {
  await bench.sql`alter database postgram_bench set track_functions = 'pl'`
  for (const [name, measure] of Object.entries(ACCOUNTS)) {
    if (wanted && !wanted.includes(name)) continue
    const measured = { name, ...(await measure(bench, seconds)) }
    console.log(formatTable(costsOf(measured), [name, 'per message']))
    console.log(formatTable(rowsOf(measured), TABLE_COLUMNS))
    console.log(formatTable(stepsOf(measured), STEP_COLUMNS))
  }
}

async function accept(bench: Bench, seconds: number) {
  await fill(bench, 'emails', 0)
  const api = await startApi(bench, ['--only', 'api'])
  const plan = { path: '/v1/emails', senders: bench.senders.emails, port: api.port, seconds }
  const measured = await underLoad(bench, { ...plan, connections: 64 }, { API: api.child })
  await stop(api.child)
  return measured
}

async function batches(bench: Bench, seconds: number) {
  await fill(bench, 'emails', 0)
  const api = await startApi(bench, ['--only', 'api'])
  const senders = batchesOf(bench, 'emails')
  const plan = { path: '/v1/emails/batch', senders, port: api.port, seconds }
  const measured = await underLoad(bench, { ...plan, connections: 2 }, { API: api.child })
  await stop(api.child)
  return measured
}

async function attempts(bench: Bench) {
  const { sql } = bench
  await fill(bench, 'emails', QUEUED)
  const before = await readUsage(sql, {})
  const worker = start([here('worker.ts'), bench.url, 'coalesced'])
  await until(async () => {
    const [left] = await sql`select exists (select from graphile_worker._private_jobs) as is_any`
    return !left?.isAny
  })
  const after = await readUsage(sql, { worker })
  await stop(worker)
  return { messages: QUEUED, before, after }
}

/** All roles in one process, with an endpoint for each organisation: from the accept to the last delivery. */
async function whole(bench: Bench, seconds: number) {
  return allRoles(bench, seconds, [])
}

/** The same with a process for each role. */
async function apart(bench: Bench, seconds: number) {
  return allRoles(bench, seconds, ['worker', 'clock'])
}

/** `others`: the roles that have a process of their own. */
async function allRoles(bench: Bench, seconds: number, others: string[]) {
  const { sql } = bench
  await fill(bench, 'emails', 0)
  const receiver = await startReceiver()
  await createEndpoints(bench, receiver.url, ['email.sent', 'email.delivered'])
  const api = await startApi(bench, others.length > 0 ? ['--only', 'api'] : [])
  const roles = Object.fromEntries(
    others.map((role) => [role, startRoles(bench, ['--only', role])]),
  )
  const plan = { path: '/v1/emails', senders: bench.senders.emails, port: api.port, seconds }
  const name = others.length > 0 ? 'API' : 'all roles'
  const processes = { [name]: api.child, ...roles, receiver: receiver.child }
  const measured = await underLoad(bench, { ...plan, connections: 64 }, processes, async () => {
    await until(async () => {
      const [left] = await sql`
        select exists (select from app.messages where status <> 'delivered') as is_any`
      return !left?.isAny
    })
    await allDelivered(bench)
  })
  for (const child of [api.child, ...Object.values(roles), receiver.child]) await stop(child)
  return measured
}

export const ACCOUNTS = { accept, batches, attempts, whole, apart }

/** Puts the load of `plan` on a service that is warm, until `isOver` settles. */
async function underLoad(
  bench: Bench,
  plan: LoadPlan,
  processes: Processes,
  isOver: () => Promise<void> = async () => undefined,
): Promise<Omit<Measured, 'name'>> {
  const { sql } = bench
  await load({ ...plan, seconds: 1 })
  await isOver()
  const messagesBefore = await messagesIn(bench)
  const before = await readUsage(sql, processes)
  const client = start([here('load.ts')])
  client.stdin?.end(JSON.stringify(plan))
  // The client ends as soon as it has printed its result, so its CPU is read while it runs.
  let clientCpu = 0
  const timer = setInterval(() => {
    clientCpu = Math.max(clientCpu, cpuOf(client.pid ?? 0))
  }, 50)
  await lineWith(client, 'answered')
  clearInterval(timer)
  await isOver()
  const after = await readUsage(sql, processes)
  after.cpu.client = clientCpu
  return { messages: (await messagesIn(bench)) - messagesBefore, before, after }
}

async function messagesIn({ sql }: Bench): Promise<number> {
  const [row] = await sql<{ messages: number }[]>`
    select count(*)::integer as messages from app.messages`
  return row?.messages ?? 0
}

async function until(isTrue: () => Promise<boolean>) {
  while (!(await isTrue())) await pause(200)
}

function costsOf({ name, messages, before, after }: Measured) {
  const seconds = (after.at - before.at) / 1000
  const all = after.machine.all - before.machine.all
  const busy = 1 - (after.machine.idle - before.machine.idle) / all
  const each = (value: number) => (value / messages).toFixed(value / messages < 10 ? 2 : 0)
  const cpu = Object.entries(after.cpu).map(([process, used]) => ({
    cost: `CPU of ${process}, µs`,
    each: each(used - (before.cpu[process] ?? 0)),
  }))
  const counted = (['wal', 'commits', 'inserted', 'updated', 'deleted'] as const).map((key) => ({
    cost: COSTS[key],
    each: each(after[key] - before[key]),
  }))
  const rate = `${Math.round(messages / seconds)}/s, ${Math.round(100 * busy)} % of the machine busy`
  return [...cpu, ...counted, { cost: rate, each: '' }].map(({ cost, each }) => ({
    [name]: cost,
    'per message': each,
  }))
}

const COSTS = {
  wal: 'WAL, bytes',
  commits: 'commits',
  inserted: 'rows inserted',
  updated: 'rows updated',
  deleted: 'rows deleted',
}

function rowsOf({ messages, before, after }: Measured) {
  return Object.entries(after.tables)
    .map(([table, rows]) => {
      const each = (key: keyof Rows) => (rows[key] - (before.tables[table]?.[key] ?? 0)) / messages
      return {
        table,
        inserted: each('inserted'),
        updated: each('updated'),
        hot: each('hot'),
        deleted: each('deleted'),
      }
    })
    .filter(({ inserted, updated, deleted }) => inserted + updated + deleted >= LEAST_ROWS)
    .toSorted(
      (one, other) =>
        other.inserted + other.updated + other.deleted - one.inserted - one.updated - one.deleted,
    )
    .map(({ table, inserted, updated, hot, deleted }) => ({
      table,
      inserted: inserted.toFixed(2),
      updated: updated.toFixed(2),
      'of them HOT': hot.toFixed(2),
      deleted: deleted.toFixed(2),
    }))
}

function stepsOf({ messages, before, after }: Measured) {
  return Object.entries(after.steps)
    .map(([step, { calls, microseconds }]) => ({
      step,
      calls: calls - (before.steps[step]?.calls ?? 0),
      microseconds: microseconds - (before.steps[step]?.microseconds ?? 0),
    }))
    .filter(({ calls, microseconds }) => calls > 0 && microseconds / messages >= LEAST)
    .toSorted((one, other) => other.microseconds - one.microseconds)
    .map(({ step, calls, microseconds }) => ({
      step,
      calls,
      'messages per call': (messages / calls).toFixed(1),
      'µs per call': Math.round(microseconds / calls),
      'µs per message': (microseconds / messages).toFixed(1),
    }))
}
