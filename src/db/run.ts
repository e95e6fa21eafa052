/** Running other programs. */
import { execFile } from 'node:child_process'
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
    // Neither our secrets nor PG* variables, which change defaults, are for the server.
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
  })

/** What ps knows of a process, '' once it is gone. Not for Linux, whose slim images have no ps. */
export const ps = async (pid: number, column: string): Promise<string> =>
  (await run('ps', ['-o', column, '-p', `${pid}`]).catch(() => ({ stdout: '' }))).stdout.trim()

/** The first line that says why a program failed. */
export const reasonOf = (error: unknown): string | undefined => {
  const { stderr, message } = error as { stderr?: string; message: string }
  return (stderr || message).trim().split('\n')[0]
}
