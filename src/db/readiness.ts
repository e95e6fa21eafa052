import { SetupError } from '../setup-error.ts'
import type { Call } from './call.ts'
import { breaks, type Contract } from './contract.ts'

/** The database is of a newer version, with which this one cannot work. */
export class Outdated extends SetupError {}

/**
 * Says what of the code in the database keeps a process from serving, null when nothing does. Code of
 * another version does not, as long as it has what this one calls: old and new processes run side by
 * side while they are upgraded. Throws when the database does not answer.
 */
export function createJudge(
  { read, call }: { read(): Promise<Contract>; call: Call },
  { sha256, needs }: { sha256: string; needs: Contract },
): () => Promise<string | null> {
  // The code of one version stays what it is.
  let judged: { sha256: string | null; problem: string | null } = { sha256, problem: null }
  return async () => {
    const inPlace = await call('health', {})
    if (inPlace !== judged.sha256) {
      const problems = breaks(needs, await read())
      const problem = `the schema is of another version: ${problems.join('; ')}`
      judged = { sha256: inPlace, problem: problems.length > 0 ? problem : null }
    }
    return judged.problem
  }
}
