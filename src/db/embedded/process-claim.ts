/**
 * Files that name the process which holds something. They have its start time as well as its number, because after
 * a crash of the machine another process soon has the same number.
 */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { readOr, writeOnce } from '../kept-file.ts'
import { succeeds } from '../poll.ts'
import { ps } from '../run.ts'

/** Claims a file for this process and returns its release; undefined while a running process holds it. */
export const claim = async (file: string): Promise<(() => Promise<void>) | undefined> => {
  const holder = await readOr(file, '')
  if (await isAlive(holder)) return undefined
  if (holder) {
    // Several processes may find that the holder has ended: only one of them can move its file. If the file that
    // was moved is that of a new holder, it is put back.
    const moved = `${file}.${randomUUID()}`
    if (!(await succeeds(fs.rename(file, moved)))) return undefined
    if ((await fs.readFile(moved, 'utf8')) !== holder) await succeeds(fs.link(moved, file))
    await fs.rm(moved)
  }
  const isMine = await writeOnce(file, await identityOf(process.pid), 0o644)
  return isMine ? () => fs.rm(file, { force: true }) : undefined
}

/** Returns the number and the start time of a process. */
export const identityOf = async (pid: number): Promise<string> => `${pid} ${await startTimeOf(pid)}`

/** Returns whether the process with this identity runs. */
export const isAlive = async (identity: string): Promise<boolean> =>
  identity !== '' && identity === (await identityOf(Number.parseInt(identity, 10)))

/** Returns '' if the process has ended. */
const startTimeOf = async (pid: number) => {
  if (process.platform !== 'linux') return ps(pid, 'lstart=')
  // Fields 3 (state) and 22 (start) of proc(5); the name before them may have blanks and brackets.
  const stat = await readOr(`/proc/${pid}/stat`, '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? '' : (fields[19] ?? '')
}
