/**
 * The processes that use the server of a data folder, which stops after the last of them. Each has a
 * file there, and a watcher: a shell that reads from a pipe whose other end the process holds. When the
 * process is killed, the kernel closes that end, and the watcher does what the process would have done.
 */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SetupError } from '../../errors.ts'
import { within } from '../attempt.ts'
import { readOr } from '../kept-file.ts'
import { spawnDetached } from '../run.ts'
import { claim, identityOf, isAlive } from './process-claim.ts'
import { findServer, patienceMs, stopServer } from './server.ts'

export type ServerUse = {
  /** Stops the server if nobody else uses it. */
  end(): Promise<void>
}

/** Held by the process that starts, joins or stops the server of a data folder. */
export const lockOf = (folder: string): string => join(folder, 'postgres-owner')

const usersOf = (folder: string) => join(folder, 'postgres-users')

/** Reads until its input ends. A line says that the user has ended by itself; without one, $0 is run. */
const WATCH = `trap '' HUP INT TERM; read -r _ || exec "$0" "$@"`
const watcher = fileURLToPath(import.meta.resolve('./watcher.ts'))

/** Makes this process a user of the server. The caller holds the lock. */
export const addUser = async (folder: string): Promise<ServerUse> => {
  const users = usersOf(folder)
  await fs.mkdir(users, { recursive: true })
  for (const file of await fs.readdir(users)) {
    const path = join(users, file)
    if (!(await isAlive(await readOr(path, '')))) await fs.rm(path, { force: true })
  }
  const file = join(users, randomUUID())
  const input = spawnDetached('sh', ['-c', WATCH, process.execPath, watcher, folder, file])
  await fs.writeFile(file, await identityOf(process.pid))
  let ending: Promise<void> | undefined
  return {
    end() {
      ending ??= removeUser(folder, file).then(() => void input.end('\n'))
      return ending
    },
  }
}

/**
 * Removes a user, and stops the server after the last one. A server that somebody was starting when he
 * was killed may appear up to `appearsWithinMs` later.
 */
export const removeUser = async (
  folder: string,
  file: string,
  appearsWithinMs = 0,
): Promise<void> => {
  await fs.rm(file, { force: true })
  const data = join(folder, 'postgres')
  const turn = await within(patienceMs, async () => (await isUsed(folder)) || claim(lockOf(folder)))
  if (turn === true) return
  if (!turn) throw new SetupError(`Postgres does not stop: ${lockOf(folder)} names who holds it.`)
  try {
    // Somebody may have come before we had the lock.
    if (await isUsed(folder)) return
    await within(appearsWithinMs, () => findServer(data))
    await stopServer(data)
  } finally {
    await turn()
  }
}

const isUsed = async (folder: string) => {
  for (const file of await fs.readdir(usersOf(folder))) {
    if (await isAlive(await readOr(join(usersOf(folder), file), ''))) return true
  }
  return false
}
