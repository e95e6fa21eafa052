/**
 * The processes that use the server of a data folder; it stops after the last of them. Each process has a file in
 * the folder, and a watcher: a shell that reads from a pipe whose other end the process holds. If the process is
 * killed, the kernel closes that end, and the watcher removes the user in its place.
 */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SetupError } from '../../errors.ts'
import { readOr } from '../kept-file.ts'
import { poll } from '../poll.ts'
import { spawnDetached } from '../run.ts'
import { claim, identityOf, isAlive } from './process-claim.ts'
import { findServer, serverWaitMs, stopServer } from './server.ts'

export type ServerUse = Awaited<ReturnType<typeof addUser>>

/** Returns the file that the process holds which starts, joins or stops the server of a data folder. */
export const lockOf = (folder: string): string => join(folder, 'postgres-owner')

const usersOf = (folder: string) => join(folder, 'postgres-users')

/** Reads until its input ends. A line means that the user has ended by itself; without a line, runs $0. */
const WATCH = `trap '' HUP INT TERM; read -r _ || exec "$0" "$@"`
const watcher = fileURLToPath(import.meta.resolve('./watcher.ts'))

/** Registers this process as a user of the server. The caller holds the lock. */
export const addUser = async (folder: string) => {
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
    /** Stops the server if no other process uses it. */
    end() {
      ending ??= removeUser(folder, file).then(() => void input.end('\n'))
      return ending
    },
  }
}

/**
 * Removes a user, and stops the server after the last one. If the user was killed while it started the server, the
 * server may appear up to `appearsWithinMs` later.
 */
export const removeUser = async (
  folder: string,
  file: string,
  appearsWithinMs = 0,
): Promise<void> => {
  await fs.rm(file, { force: true })
  const data = join(folder, 'postgres')
  const lock = await poll(serverWaitMs, async () => (await isUsed(folder)) || claim(lockOf(folder)))
  if (lock === true) return
  if (!lock)
    throw new SetupError(
      `Postgres does not stop: ${lockOf(folder)} names the process that holds its lock.`,
    )
  try {
    // A new user may have come before this process had the lock.
    if (await isUsed(folder)) return
    await poll(appearsWithinMs, () => findServer(data))
    await stopServer(data)
  } finally {
    await lock()
  }
}

const isUsed = async (folder: string) => {
  for (const file of await fs.readdir(usersOf(folder))) {
    if (await isAlive(await readOr(join(usersOf(folder), file), ''))) return true
  }
  return false
}
