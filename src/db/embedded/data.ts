/** New data for the embedded Postgres. */
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { SetupError } from '../../errors.ts'
import { succeeds } from '../attempt.ts'
import { reasonOf, run, type User } from '../run.ts'
import { share, useYourOwn } from './binaries.ts'

/** `data`, below `folder`, is what Postgres calls a cluster; `password` is the superuser's. */
export type Cluster = { folder: string; data: string; password: string }

const initdbFlags = [
  // Code-point order and Unicode case from Postgres itself: the same on every machine.
  ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
  ...['--auth=scram-sha-256', '--username=postgres'],
  // Into postgresql.conf rather than the command line, so that ALTER SYSTEM can change them.
  // No wal_compression: these binaries know pglz only, which took 10 to 30 % off pgbench's tps.
  ...['-c', 'max_connections=200', '-c', 'timezone=UTC'],
  // Bodies make much log: with less, it is made anew and checkpointed all the time.
  ...['-c', 'min_wal_size=512MB', '-c', 'max_wal_size=2GB'],
  // The client that caused an error is told of it; logging every refusal too would fill disks.
  ...['-c', 'log_min_messages=log'],
]

/** Makes the data of a cluster for that user; where it cannot enter our folder, a link to it. */
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
    // Not otherwise: the filter of the systemd units refuses the call, even where it changes nothing.
    for (const path of [workshop, passwordFile]) await fs.chown(path, uid, gid)
  }
  try {
    const place = [`--pwfile=${passwordFile}`, '-D', made]
    await run(`${binaries}/initdb`, [...initdbFlags, ...place], user)
  } catch (cause) {
    const cure = `mend that, ${useYourOwn}`
    throw new SetupError(`Postgres cannot be set up in ${folder} (${reasonOf(cause)}): ${cure}`, {
      cause,
    })
  }
  await fs.rm(passwordFile)
  // Into its place only when complete: a start that is killed on the way leaves nothing half done.
  if (!canEnter) return fs.symlink(made, data)
  await fs.rename(made, data)
  await fs.rmdir(workshop)
}
