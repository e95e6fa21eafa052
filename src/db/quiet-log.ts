import type { Logger } from 'pino'
import type { Availability } from './availability.ts'

/**
 * Returns the same log, except that errors which an outage of the database explains have level debug. So an outage
 * has one line when it begins and one when it ends. A line waits for the next heartbeat if only that can show
 * whether there is an outage.
 */
export function quietLog(log: Logger, { report }: Pick<Availability, 'report'>): Logger {
  const quiet = log.child({})
  for (const level of ['warn', 'error'] as const) {
    const writeLine = quiet[level].bind(quiet) as (...line: unknown[]) => void
    const unlessExplained = (...line: [unknown, ...unknown[]]) => {
      const [fields] = line
      const hasError = typeof fields === 'object' && fields !== null && 'err' in fields
      const isExplained = hasError && report(fields.err)
      const write = (isQuiet: boolean) => {
        if (isQuiet) quiet.debug(...(line as [object]))
        else writeLine(...line)
      }
      if (typeof isExplained === 'boolean') write(isExplained)
      else isExplained.then(write)
    }
    quiet[level] = unlessExplained as Logger[typeof level]
  }
  return quiet
}
