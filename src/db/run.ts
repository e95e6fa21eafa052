/** Running other programs. */
import { execFile, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { promisify } from 'node:util'

/** Whom a program runs as; {} is whoever we are. */
export type User = { uid?: number; gid?: number }

/** Runs a program to its end; throws unless it ends well. */
export const run = (
  program: string,
  args: string[],
  options: User & { cwd?: string } = {},
): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(program, args, {
    // The user may be unable to enter the folder that we are in.
    cwd: '/',
    ...options,
    env: environment(),
  })

/**
 * Starts a program in a session of its own, which signals to our process group do not reach, and returns
 * its standard input: that ends with us.
 */
export const spawnDetached = (program: string, args: string[]): Socket => {
  const child = spawn(program, args, {
    cwd: '/',
    env: environment(),
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const input = child.stdin as Socket
  // It must neither keep this process from ending nor end it, as when it was killed.
  child.unref()
  input.unref()
  child.on('error', () => undefined)
  input.on('error', () => undefined)
  return input
}

/** Neither our secrets nor PG* variables, which change defaults, are for the server. */
const environment = () => ({ PATH: process.env.PATH, LC_ALL: 'C' })

/** What ps knows of a process, '' once it is gone. Not for Linux, whose slim images have no ps. */
export const ps = async (pid: number, column: string): Promise<string> =>
  (await run('ps', ['-o', column, '-p', `${pid}`]).catch(() => ({ stdout: '' }))).stdout.trim()

/** The first line that says why a program failed. */
export const reasonOf = (error: unknown): string | undefined => {
  const { stderr, message } = error as { stderr?: string; message: string }
  return (stderr || message).trim().split('\n')[0]
}
