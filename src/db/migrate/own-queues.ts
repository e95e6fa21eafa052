import { readdir, readFile } from 'node:fs/promises'
import bossPackage from 'pg-boss/package.json' with { type: 'json' }

/** The migrations of the installed graphile-worker. A mark in the first line says that older workers cannot go on after it. */
const WORKER_SQL = new URL('../sql/', import.meta.resolve('graphile-worker'))
const WORKER_MARK = '--! breaking'

/** Versions of the schemas of graphile-worker and pg-boss, in a database or of the installed libraries. */
export type QueueSchemas = {
  /** The last migration of graphile-worker, and the migrations that break older workers; null without a schema. */
  worker: { last: number; breaking: number[] } | null
  /** The version of pg-boss's schema; null without a schema. */
  boss: number | null
}

export type OwnQueues = Awaited<ReturnType<typeof ownQueues>>

/** Returns the versions that the installed libraries need. */
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
