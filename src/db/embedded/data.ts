/** Creates the data of the embedded Postgres. */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { SetupError } from '../../errors.ts'
import { succeeds } from '../poll.ts'
import { reasonOf, run, type User } from '../run.ts'
import { share, useYourOwn } from './binaries.ts'

/** A cluster of Postgres: `data` is its folder below the data folder `folder`; `password` is the superuser's. */
export type Cluster = { folder: string; data: string; password: string }

const initdbFlags = [
  // Code-point order and Unicode case from Postgres itself: the same on every machine.
  ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
  ...['--auth=scram-sha-256', '--username=postgres'],
  // In postgresql.conf, not on the command line, so that ALTER SYSTEM can change them.
  // No wal_compression: these binaries support pglz only, with which pgbench had 10 to 30 % fewer tps.
  ...['-c', 'max_connections=200', '-c', 'timezone=UTC'],
  // Message bodies write much WAL: with less, checkpoints would follow one another.
  ...['-c', 'min_wal_size=512MB', '-c', 'max_wal_size=2GB'],
  // Clients get their errors; a log of every refusal would fill the disk.
  ...['-c', 'log_min_messages=log'],
]

/** Creates the data of a cluster for a user; if the user has no access to our folder, elsewhere with a link to it. */
export const initialise = async (
  { folder, data, password }: Cluster,
  binaries: string,
  user: User,
): Promise<void> => {
  const canEnter = await succeeds(run('test', ['-x', folder], user))
  const workshop = canEnter ? join(folder, 'postgres-new') : await share(randomUUID())
  const made = join(workshop, 'data')
  const passwordFile = join(workshop, 'password')
  await fs.rm(workshop, { recursive: true, force: true })
  await fs.mkdir(workshop, { mode: 0o700 })
  await fs.writeFile(passwordFile, password, { mode: 0o600 })
  const { uid, gid } = user
  if (uid !== undefined && gid !== undefined) {
    // Only if needed: the system call filter of the systemd units refuses chown.
    for (const path of [workshop, passwordFile]) await fs.chown(path, uid, gid)
  }
  try {
    const place = [`--pwfile=${passwordFile}`, '-D', made]
    await run(`${binaries}/initdb`, [...initdbFlags, ...place], user)
  } catch (cause) {
    throw new SetupError(
      `Postgres cannot be set up in ${folder} (${reasonOf(cause)}): fix that, ${useYourOwn}`,
      { cause },
    )
  }
  await fs.rm(passwordFile)
  // Moved to its place when complete: a start that is killed leaves no incomplete data.
  if (!canEnter) return fs.symlink(made, data)
  await fs.rename(made, data)
  await fs.rmdir(workshop)
}
