/** Runs other programs. */
import { execFile, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { promisify } from 'node:util'

/** The user of a program; {}: the user of this process. */
export type User = { uid?: number; gid?: number }

/** Runs a program to its end. Throws unless it exits with 0. */
export const run = (
  program: string,
  args: string[],
  options: User & { cwd?: string } = {},
): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(program, args, {
    // The user may have no access to the current folder.
    cwd: '/',
    ...options,
    env: environment(),
  })

/**
 * Starts a program in a new session, which signals to the process group of this process do not reach. Returns its
 * standard input, which the kernel closes when this process ends.
 */
export const spawnDetached = (program: string, args: string[]): Socket => {
  const child = spawn(program, args, {
    cwd: '/',
    env: environment(),
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const input = child.stdin as Socket
  // The program must not keep this process alive, nor end it by an error.
  child.unref()
  input.unref()
  child.on('error', () => undefined)
  input.on('error', () => undefined)
  return input
}

/** Without our secrets, and without PG* variables, which change defaults of the server. */
const environment = () => ({ PATH: process.env.PATH, LC_ALL: 'C' })

/** Returns a column that ps shows of a process, '' if it has ended. Not for Linux, whose slim images have no ps. */
export const ps = async (pid: number, column: string): Promise<string> =>
  (await run('ps', ['-o', column, '-p', `${pid}`]).catch(() => ({ stdout: '' }))).stdout.trim()

/** Returns the first line of a program's error output. */
export const reasonOf = (error: unknown): string | undefined => {
  const { stderr, message } = error as { stderr?: string; message: string }
  return (stderr || message).trim().split('\n')[0]
}
