// What processes, the server and a database have used so far, and what they used between two readings.

import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { Sql } from '../../src/db/client.ts'

export type Usage = {
  /** performance.now() at this reading. */
  at: number
  /** CPU of the processes by name, in microseconds. */
  cpu: Record<string, number>
  /** CPU of the whole machine, in ticks. */
  machine: { idle: number; all: number }
  wal: number
  commits: number
  inserted: number
  updated: number
  deleted: number
  /** Rows by table; partitions count for their table, HOT updates for updates, too. */
  tables: Record<string, Rows>
  steps: Record<string, { calls: number; microseconds: number }>
}

export type Rows = { inserted: number; updated: number; hot: number; deleted: number }

export type Processes = Record<string, ChildProcess>

/** Reads what these processes, the server of `sql` and its database have used. The server is on this machine. */
export async function readUsage(sql: Sql, processes: Processes): Promise<Usage> {
  // The statistics of a busy backend are up to a second old.
  await sql`select pg_stat_force_next_flush(), pg_stat_clear_snapshot()`
  const [row] = await sql<Omit<Usage, 'at' | 'cpu' | 'machine' | 'tables' | 'steps'>[]>`
    select w.wal_bytes::float8 as wal, d.xact_commit::float8 as commits, d.tup_inserted::float8 as inserted,
      d.tup_updated::float8 as updated, d.tup_deleted::float8 as deleted
    from pg_stat_wal w, pg_stat_database d
    where d.datname = current_database()`
  if (!row) throw new Error('no statistics')
  const tables = await sql<(Rows & { name: string })[]>`
    select coalesce(i.inhparent, s.relid)::regclass::text as name, sum(s.n_tup_ins)::float8 as inserted,
      sum(s.n_tup_upd)::float8 as updated, sum(s.n_tup_hot_upd)::float8 as hot, sum(s.n_tup_del)::float8 as deleted
    from pg_stat_all_tables s
    left join pg_inherits i on i.inhrelid = s.relid
    group by 1`
  const steps = await sql<{ name: string; calls: number; microseconds: number }[]>`
    select f.funcname as name, f.calls::float8 as calls, f.total_time * 1000 as microseconds
    from pg_stat_user_functions f
    where f.schemaname = 'api'`
  const cpu: Record<string, number> = { Postgres: await serverCpu(sql) }
  for (const [name, { pid }] of Object.entries(processes)) cpu[name] = cpuOf(pid ?? 0)
  return {
    ...row,
    at: performance.now(),
    cpu,
    machine: machineTicks(),
    tables: Object.fromEntries(tables.map(({ name, ...rows }) => [name, rows])),
    steps: Object.fromEntries(steps.map(({ name, ...step }) => [name, step])),
  }
}

/** CPU of all threads of a process in microseconds; 0 if it has ended. */
export function cpuOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map((task) =>
        Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
      )
      .reduce((sum, nanoseconds) => sum + nanoseconds / 1000, 0)
  } catch {
    return 0
  }
}

/** CPU of the server's processes that run now. A backend that ended is left out: the pools keep theirs. */
async function serverCpu(sql: Sql): Promise<number> {
  const [row] = await sql<{ pid: string }[]>`
    select split_part(pg_read_file('postmaster.pid'), E'\\n', 1) as pid`
  const isOfServer = (pid: string) => {
    try {
      // The name in parentheses may hold spaces; the state and the parent follow it.
      return (
        readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ')[1] === row?.pid
      )
    } catch {
      return false
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isOfServer(name))
    .reduce((sum, pid) => sum + cpuOf(Number(pid)), 0)
}

function machineTicks(): Usage['machine'] {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  const ticks = line.split(/\s+/).slice(1).map(Number)
  const [, , , idle = 0, waiting = 0] = ticks
  return { idle: idle + waiting, all: ticks.reduce((sum, one) => sum + one, 0) }
}
