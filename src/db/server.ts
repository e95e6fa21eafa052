import { planSettings, type Sql } from './client.ts'

const OLDEST = 15

export const TOO_OLD = `the server is too old: Postgres ${OLDEST} or newer is needed`

/** Postgram cannot work with the server, whoever logs in. */
export class UnsuitableServer extends Error {}

export type ServerFacts = { version: string; planCacheMode: string }

/** Throws UnsuitableServer where Postgres is too old, or behind a pooler that keeps settings from it. */
export async function checkServer(sql: Sql): Promise<void> {
  const [facts] = await sql<ServerFacts[]>`
    select current_setting('server_version') as version, current_setting('plan_cache_mode') as plan_cache_mode`
  const problem = facts && problemOf(facts)
  if (problem) throw new UnsuitableServer(problem)
}

/** Returns why Postgram cannot work with such a server; null if it can. */
export function problemOf({ version, planCacheMode }: ServerFacts): string | null {
  if (Number.parseInt(version, 10) < OLDEST) return `${TOO_OLD}, this is ${version}`
  // Every connection asks for it when it begins.
  return planCacheMode === planSettings.plan_cache_mode
    ? null
    : avoidPooler('settings of a connection do not reach Postgres')
}

/** Whether an error is a pooler's, which accepts few settings at the start of a connection. */
export function isPoolerError(message: string): boolean {
  return /^unsupported startup parameter|\bRDS Proxy\b/.test(message)
}

/** Returns the error message for a pooler between the service and Postgres. */
export function avoidPooler(reason: string): string {
  return `a pooler such as PgBouncer is in between (${reason}): set the address of Postgres itself, see /docs/deployment#connection-poolers`
}
