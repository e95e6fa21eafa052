/** The schemas of graphile-worker and pg-boss in the database: reads, checks and upgrades them. */
import { runMigrations } from 'graphile-worker'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { SetupError } from '../../errors.ts'
import { pgOptions, type Sql } from '../client.ts'
import { refuseToBreak } from './breaking.ts'
import { type OwnQueues, ownQueues, type QueueSchemas } from './own-queues.ts'

/** Returns the versions of the schemas in the database. */
async function queuesIn(sql: Sql): Promise<QueueSchemas> {
  const [there] = await sql<{ worker: boolean; boss: boolean }[]>`
    select to_regclass('graphile_worker.migrations') is not null as worker,
      to_regclass('pgboss.version') is not null as boss`
  const [worker] = there?.worker
    ? await sql<{ last: number; breaking: number[] }[]>`
        select max(m.id) as last, coalesce(json_agg(m.id order by m.id) filter (where m.breaking), '[]') as breaking
        from graphile_worker.migrations m
        having max(m.id) is not null`
    : []
  const [boss] = there?.boss
    ? await sql<{ version: number }[]>`select v.version from pgboss.version v`
    : []
  return { worker: worker ?? null, boss: boss?.version ?? null }
}

/**
 * Returns whether the libraries would change their schemas. Throws SetupError, before anything is changed, if the
 * database has schemas that the libraries do not know, or if processes run that could not go on after the change.
 *
 * graphile-worker marks its migrations that older workers cannot go on after; those workers then end by themselves.
 * All processes count for such a migration, as all of them add jobs. Workers, and our functions, go on after any
 * other migration. pg-boss has no marks and starts only on its own version, so every difference counts; but only
 * processes with the clock use it.
 */
export async function checkQueues(sql: Sql, isBreaking: boolean): Promise<boolean> {
  const [own, there] = [await ownQueues(), await queuesIn(sql)]
  const newer = [beyondWorker(own, there), beyondBoss(own, there)].filter(
    (problem) => problem !== null,
  )
  if (newer.length > 0) {
    throw new SetupError(`${newer.join('; ')}: upgrade this one. Nothing was changed.`)
  }
  if (!isBreaking) {
    const before = there.worker?.last ?? Number.POSITIVE_INFINITY
    const ofWorker = own.worker.breaking
      .filter((id) => id > before)
      .map((id) => `migration ${id} of graphile-worker is marked as breaking`)
    const ofBoss =
      there.boss !== null && there.boss !== own.boss
        ? [`pg-boss's schema would be ${own.boss}, not ${there.boss}`]
        : []
    const scope = ofWorker.length > 0 ? {} : { role: 'clock' }
    await refuseToBreak(sql, [...ofWorker, ...ofBoss], scope)
  }
  return there.worker?.last !== own.worker.last || there.boss !== own.boss
}

/**
 * Says why a process of this version cannot start in these roles after a newer version upgraded the queues; null if
 * it can. The API uses neither library.
 */
export async function foreignQueues(sql: Sql, roles: readonly string[]): Promise<string | null> {
  const [own, there] = [await ownQueues(), await queuesIn(sql)]
  const problems = [
    roles.includes('worker') ? beyondWorker(own, there) : null,
    roles.includes('clock') ? beyondBoss(own, there) : null,
  ].filter((problem) => problem !== null)
  return problems.length > 0 ? problems.join('; ') : null
}

function beyondWorker(own: OwnQueues, there: QueueSchemas): string | null {
  const unknown = there.worker?.breaking.find((id) => id > own.worker.last)
  return unknown === undefined
    ? null
    : `the database has migration ${unknown} of graphile-worker, which is newer than this version and breaks it`
}

function beyondBoss(own: OwnQueues, there: QueueSchemas): string | null {
  return there.boss === null || there.boss <= own.boss
    ? null
    : `the database has schema ${there.boss} of pg-boss, and this version works with ${own.boss} only`
}

/** Installs or upgrades both schemas. The migrations of graphile-worker wait for a lock for at most `lockTimeout`. */
export async function installQueues(url: string, lockTimeout: string): Promise<void> {
  // A limit, as accepts write to these tables. (pg-boss sets its own limit, and only the clock uses its tables.)
  const pgPool = new pg.Pool(pgOptions(url, { lock_timeout: lockTimeout }))
  // An error of a connection fails the migration; without a listener it would end the process.
  pgPool.on('error', () => undefined)
  pgPool.on('connect', (client) => client.on('error', () => undefined))
  await runMigrations({ pgPool }).finally(() => pgPool.end())
  const boss = new PgBoss({ ...pgOptions(url), supervise: false, schedule: false })
  await boss.start()
  await boss.stop({ graceful: false })
}
