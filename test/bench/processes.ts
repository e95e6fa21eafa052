// The processes of a benchmark: what is measured, and what it is measured with.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { npmStart } from '../fixtures/npm-start.ts'
import type { LoadPlan, LoadResult } from './load.ts'
import type { Bench } from './setup.ts'

export const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))

/** A process of Node with this file and its arguments. */
export function start(args: string[], env: Record<string, string> = {}): ChildProcess {
  const base = { PATH: process.env.PATH ?? '' }
  return spawn(process.execPath, args, {
    env: { ...base, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
}

/** The first line that is JSON with this key. */
export async function lineWith(child: ChildProcess, key: string): Promise<Record<string, unknown>> {
  if (!child.stdout) throw new Error('no output to read')
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{') && key in JSON.parse(line)) {
      child.stdout.resume()
      return JSON.parse(line)
    }
  }
  throw new Error(`the process ended before it said ${key}`)
}

export async function stop(child: ChildProcess) {
  child.kill('SIGTERM')
  if (child.exitCode === null) await once(child, 'exit')
}

/** What the load of a client in a process of its own came to. */
export async function load(plan: LoadPlan): Promise<LoadResult> {
  const client = start([here('load.ts')])
  client.stdin?.end(JSON.stringify(plan))
  return (await lineWith(client, 'answered')) as LoadResult
}

/** The service as its operator starts it; `only` has the flags that choose its roles. */
export function startRoles(bench: Pick<Bench, 'url'>, only: string[]): ChildProcess {
  return start([...npmStart.flags, here('../../src/main.ts'), 'start', ...only], {
    ...npmStart.env,
    DATABASE_URL: bench.url,
    SECRET_KEY: Buffer.alloc(32).toString('base64'),
    PORT: '0',
    WEBHOOK_ALLOW_PRIVATE: 'true',
  })
}

/** The service with the role API, once it listens. */
export async function startApi(
  bench: Pick<Bench, 'url'>,
  only: string[],
): Promise<{ child: ChildProcess; port: number }> {
  const child = startRoles(bench, only)
  const { address } = await lineWith(child, 'address')
  return { child, port: Number(new URL(String(address)).port) }
}

/** Resident memory of a process in MB: the most that it ever had, or with VmRSS what it has now. */
export async function memoryOf(
  { pid }: ChildProcess,
  name: 'VmHWM' | 'VmRSS' = 'VmHWM',
): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024)
}
