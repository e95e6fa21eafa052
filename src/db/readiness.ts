import { SetupError } from '../errors.ts'
import { type Availability, UNREACHABLE } from './availability.ts'
import type { Call } from './call.ts'
import { isConnectionError } from './connection-errors.ts'
import { breaks, type Contract } from './contract.ts'
import type { CodeAge } from './migrate/code-age.ts'

/** The database is of a newer version, with which this one cannot work. */
export class Outdated extends SetupError {}

type Questions = {
  read(): Promise<Contract>
  age(): Promise<CodeAge>
  call: Call
}

/** The answer to a question that nobody may wait longer for; probes of load balancers wait 2 s or more. */
const ANSWERS_WITHIN_MS = 1500

/** SQLSTATE class 42: a function or a right that this version needs is not there. */
const CODE_MISSING = /^42...$/

/**
 * Says what of the code in the database keeps a process from serving, null when nothing does. Code of
 * another version does not, as long as it has what this one calls: old and new processes run side by
 * side while they are upgraded. Throws when the database does not answer.
 */
export function createContractCheck(
  { read, age, call }: Questions,
  { sha256, needs }: { sha256: string; needs: Contract },
): () => Promise<string | null> {
  // The code of one version stays what it is.
  let judged: { sha256: string | null; problem: string | null } = { sha256, problem: null }
  return async () => {
    const inPlace = await call('health', {}).catch((error) => {
      if (CODE_MISSING.test(error.code)) return null
      throw error
    })
    if (inPlace === null || inPlace !== judged.sha256) {
      const problems = breaks(needs, await read())
      const isOlder = problems.length > 0 && (await age()) === 'older'
      const version = isOlder ? 'older than this version' : 'of another version'
      const problem = `the schema is ${version}: ${problems.join('; ')}`
      judged = { sha256: inPlace, problem: problems.length > 0 ? problem : null }
    }
    return judged.problem
  }
}

/** Says within 1.5 s what keeps a process from serving: the database, or the code in it; null when nothing does. */
export function createReadiness(
  { problem }: Pick<Availability, 'problem'>,
  judge: () => Promise<string | null>,
): () => Promise<string | null> {
  return async () => {
    const known = problem()
    if (known !== null) return known
    const { promise: late, resolve } = Promise.withResolvers<string>()
    const timer = setTimeout(() => resolve(UNREACHABLE), ANSWERS_WITHIN_MS)
    try {
      return await Promise.race([judge().catch(wordsFor), late])
    } finally {
      clearTimeout(timer)
    }
  }
}

function wordsFor(error: unknown): string {
  if (isConnectionError(error)) return UNREACHABLE
  const { code } = error as { code?: string }
  return `the database does not respond as it should (${code ?? 'no code'})`
}
