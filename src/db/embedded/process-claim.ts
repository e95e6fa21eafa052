/**
 * Files that say which living process something belongs to. A number alone would not do: after a
 * crash of the machine another process has it soon.
 */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { succeeds } from '../attempt.ts'
import { readOr, writeOnce } from '../kept-file.ts'
import { ps } from '../run.ts'

/** Takes a file for this process and returns its release; undefined while a living one has it. */
export const claim = async (file: string): Promise<(() => Promise<void>) | undefined> => {
  const holder = await readOr(file, '')
  if (await isAlive(holder)) return undefined
  if (holder) {
    // Of two that find the holder dead only one moves its file away; and what turns out to be the
    // file of a newcomer goes back.
    const grave = `${file}.${randomUUID()}`
    if (!(await succeeds(fs.rename(file, grave)))) return undefined
    if ((await fs.readFile(grave, 'utf8')) !== holder) await succeeds(fs.link(grave, file))
    await fs.rm(grave)
  }
  const isMine = await writeOnce(file, await identityOf(process.pid), 0o644)
  return isMine ? () => fs.rm(file, { force: true }) : undefined
}

/** The number of a process and when it was born, which tells it from a later one of that number. */
export const identityOf = async (pid: number): Promise<string> => `${pid} ${await birthOf(pid)}`

/** Whether the process of that identity lives. */
export const isAlive = async (identity: string): Promise<boolean> =>
  identity !== '' && identity === (await identityOf(Number.parseInt(identity, 10)))

/** '' once the process is gone. */
const birthOf = async (pid: number) => {
  if (process.platform !== 'linux') return ps(pid, 'lstart=')
  // Fields 3 (state) and 22 (start) of proc(5); the name before them may hold blanks and brackets.
  const stat = await readOr(`/proc/${pid}/stat`, '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? '' : (fields[19] ?? '')
}
