import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { serverUser } from '../../src/db/embedded/binaries.ts'

/** Returns why tests that need these programs are skipped, or false. */
export function absentProgram(...names: string[]): string | false {
  const folders = (process.env.PATH ?? '').split(':')
  const absent = names.find((name) => !folders.some((folder) => existsSync(join(folder, name))))
  return absent !== undefined && `there is no ${absent} on this machine`
}

export type Program = {
  /** Waits until the server has ended. */
  ended(): Promise<unknown>
  /** Returns the last lines that it printed. */
  lastLines(count: number): string[]
}

/** Starts a server in the foreground, as the user who runs Postgres; its output is printed if the test fails. */
export async function startProgram(command: string, args: string[]): Promise<Program> {
  const child = spawn(command, args, {
    cwd: '/',
    env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(await serverUser('')),
  })
  const exit = once(child, 'exit')
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (text) => output.push(String(text)))
  }
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
    if (!t.passing()) console.error(`${command} ${args.join(' ')}\n${output.join('')}`)
  })
  await once(child, 'spawn')
  return {
    ended: () => exit,
    lastLines: (count) => output.join('').trimEnd().split('\n').slice(-count),
  }
}

/** Stops the processes of a folder and all their descendants at one moment; returns them. */
export async function freezeTrees(folder: string): Promise<number[]> {
  const frozen = new Set<number>()
  // A process may fork until it is stopped.
  for (;;) {
    const found = (await treesOf(folder)).filter((pid) => !frozen.has(pid))
    if (found.length === 0) return [...frozen]
    for (const pid of found) frozen.add(pid)
    signalAll(found, 'SIGSTOP')
  }
}

/** Kills the processes of a folder and all their descendants, as the loss of a machine does. */
export async function killTrees(folder: string): Promise<void> {
  signalAll(await freezeTrees(folder), 'SIGKILL')
}

export function signalAll(pids: number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** Returns the processes whose command names a file in this folder, and all their descendants. */
async function treesOf(folder: string): Promise<number[]> {
  const parents = new Map<number, number>()
  const roots = new Set<number>()
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (parent === undefined || state === 'Z') continue
    parents.set(Number(name), Number(parent))
    if (command.includes(`${folder}/`)) roots.add(Number(name))
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid)
    return roots.has(pid) || (parent !== undefined && isBelow(parent))
  }
  return [...parents.keys()].filter(isBelow)
}
