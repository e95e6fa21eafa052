import { planSettings, type Sql } from './client.ts'

const OLDEST = 15

export const TOO_OLD = `the server is too old: Postgres ${OLDEST} or newer is needed`

/** Postgram cannot work with this server, with any login. */
export class UnsuitableServer extends Error {}

export type ServerFacts = { version: string; planCacheMode: string }

/** Throws UnsuitableServer if Postgres is too old, or behind a pooler that drops settings. */
export async function checkServer(sql: Sql): Promise<void> {
  const [facts] = await sql<ServerFacts[]>`
    select current_setting('server_version') as version, current_setting('plan_cache_mode') as plan_cache_mode`
  const problem = facts && problemOf(facts)
  if (problem) throw new UnsuitableServer(problem)
}

/** Says why Postgram cannot work with such a server; null if it can. */
export function problemOf({ version, planCacheMode }: ServerFacts): string | null {
  if (Number.parseInt(version, 10) < OLDEST) return `${TOO_OLD}, this is ${version}`
  // Every connection sets it when it opens.
  return planCacheMode === planSettings.plan_cache_mode
    ? null
    : avoidPooler('settings of a connection do not reach Postgres')
}

/** Returns whether an error is that of a pooler, which accepts few settings for a connection. */
export function isPoolerError(message: string): boolean {
  return /^unsupported startup parameter|\bRDS Proxy\b/.test(message)
}

/** Returns the error message for a pooler between the service and Postgres. */
export function avoidPooler(reason: string): string {
  return `a pooler such as PgBouncer is in between (${reason}): set the address of Postgres itself, see /docs/deployment#connection-poolers`
}
