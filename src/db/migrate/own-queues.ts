import { readdir, readFile } from 'node:fs/promises'
import bossPackage from 'pg-boss/package.json' with { type: 'json' }

/** The migrations of graphile-worker as they are shipped; the first line of some says that older workers cannot go on after them. */
const WORKER_SQL = new URL('../sql/', import.meta.resolve('graphile-worker'))
const WORKER_MARK = '--! breaking'

/** The queues' own schemas, in a database or of the libraries at hand. */
export type QueueSchemas = {
  /** The last of graphile-worker's migrations, and those that break older workers; null without any. */
  worker: { last: number; breaking: number[] } | null
  /** The version of pg-boss's schema; null without one. */
  boss: number | null
}

export type OwnQueues = Awaited<ReturnType<typeof ownQueues>>

/** The schemas that the installed libraries work with. */
export async function ownQueues() {
  const names = (await readdir(WORKER_SQL)).filter((name) => name.endsWith('.sql')).sort()
  const files = await Promise.all(
    names.map(async (name) => ({
      id: Number.parseInt(name, 10),
      isBreaking: (await readFile(new URL(name, WORKER_SQL), 'utf8')).startsWith(WORKER_MARK),
    })),
  )
  const breaking = files.filter(({ isBreaking }) => isBreaking).map(({ id }) => id)
  const worker = { last: Math.max(...files.map(({ id }) => id)), breaking }
  return { worker, boss: bossPackage.pgboss.schema } satisfies QueueSchemas
}
