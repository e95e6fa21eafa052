import type postgres from 'postgres'
import { SetupError } from '../../errors.ts'
import type { Sql } from '../client.ts'
import type { SqlFile } from './sql-files.ts'

/** The first line of a migration that older processes cannot go on after. */
const MARK = '--! breaking'

type Process = { roles: string[]; host: string; pid: number }

/** Returns a sentence for each migration that has the mark. */
export function breakingMigrations(applied: readonly SqlFile[]): string[] {
  return applied
    .filter(({ text }) => text.split('\n', 1)[0]?.trimEnd() === MARK)
    .map(({ name }) => `sql/${name} is marked as breaking`)
}

/**
 * Throws SetupError if there are problems and processes run; with `role`, only those in that role count. `outcome`
 * says what is changed so far.
 */
export async function refuseToBreak(
  sql: Sql | postgres.TransactionSql,
  problems: readonly string[],
  {
    role = null,
    outcome = 'Nothing was changed.',
  }: { role?: string | null; outcome?: string } = {},
): Promise<void> {
  if (problems.length === 0) return
  const processes = await runningProcesses(sql, role)
  if (processes.length === 0) return
  const names = new Set(
    processes.map(({ roles, host, pid }) => `  ${roles.join(', ')} on ${host}, process ${pid}`),
  )
  throw new SetupError(
    [
      'This version would break processes that run now:',
      ...names,
      'The problems:',
      ...problems.map((problem) => `  ${problem}`),
      `${outcome} Stop them, migrate, and start the new version; or, if their requests may fail`,
      'until each is restarted: npm run migrate -- --breaking',
    ].join('\n'),
  )
}

/** Returns the processes that run; a database without our schema has none. */
async function runningProcesses(
  sql: Sql | postgres.TransactionSql,
  role: string | null,
): Promise<Process[]> {
  const [table] = await sql<{ exists: boolean }[]>`
    select to_regclass('app.processes') is not null as exists`
  if (!table?.exists) return []
  return sql<Process[]>`
    select p.roles, p.host, p.pid from app.processes p
    where core.lock_holder(p.pool_id) is not null and (${role}::text is null or ${role} = any (p.roles))
    order by p.started_at`
}
