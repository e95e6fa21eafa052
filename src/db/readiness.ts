import { settledWithin } from '../time/index.ts'
import { type Availability, UNREACHABLE } from './availability.ts'
import type { Call } from './call.ts'
import { codeOf, isConnectionError } from './connection-errors.ts'
import { breaks, type Contract } from './contract.ts'
import type { CodeAge } from './migrate/code-age.ts'

type Queries = {
  read(): Promise<Contract>
  age(): Promise<CodeAge>
  call: Call
}

/** Health checks of load balancers wait for 2 s or more. */
const RESPONDS_WITHIN_MS = 1500

/** SQLSTATE class 42: a function or a right that this version needs is missing. */
const CODE_MISSING = /^42...$/

/**
 * Returns a check of the SQL code in the database, which says why this version cannot serve with it; null if it can.
 * Code of another version is fine if it has what this version calls: during an upgrade, old and new processes run
 * side by side. The check throws if the database does not respond.
 */
export function createContractCheck(
  { read, age, call }: Queries,
  { sha256, needs }: { sha256: string; needs: Contract },
): () => Promise<string | null> {
  // The code of one version never changes, so its result is remembered.
  let checked: { sha256: string | null; problem: string | null } = { sha256, problem: null }
  return async () => {
    const inPlace = await call('health', {}).catch((error) => {
      if (CODE_MISSING.test(error.code)) return null
      throw error
    })
    if (inPlace === null || inPlace !== checked.sha256) {
      const problems = breaks(needs, await read())
      const isOlder = problems.length > 0 && (await age()) === 'older'
      const version = isOlder ? 'older than this version' : 'of another version'
      const problem = `the schema is ${version}: ${problems.join('; ')}`
      checked = { sha256: inPlace, problem: problems.length > 0 ? problem : null }
    }
    return checked.problem
  }
}

/** Returns a function that says within 1.5 s what keeps a process from serving; null when nothing does. */
export function createReadiness(
  { problem }: Pick<Availability, 'problem'>,
  checkContract: () => Promise<string | null>,
): () => Promise<string | null> {
  return async () => {
    const known = problem()
    if (known !== null) return known
    return settledWithin(RESPONDS_WITHIN_MS, checkContract().catch(describe), () => UNREACHABLE)
  }
}

function describe(error: unknown): string {
  if (isConnectionError(error)) return UNREACHABLE
  return `the database responds with an error (${codeOf(error) || 'no code'})`
}
