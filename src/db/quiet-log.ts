import type { Logger } from 'pino'
import type { Availability } from './availability.ts'

/**
 * The same log, with errors that an outage of the database explains at level debug: one line says that it began,
 * and one that it is over, however many connections and tasks fail meanwhile. A line waits for the next
 * heartbeat where only that can tell.
 */
export function quietLog(log: Logger, { report }: Pick<Availability, 'report'>): Logger {
  const quiet = log.child({})
  for (const level of ['warn', 'error'] as const) {
    const say = quiet[level].bind(quiet) as (...line: unknown[]) => void
    const unlessExplained = (...line: [unknown, ...unknown[]]) => {
      const [fields] = line
      const hasError = typeof fields === 'object' && fields !== null && 'err' in fields
      const isExplained = hasError && report(fields.err)
      const write = (isQuiet: boolean) => {
        if (isQuiet) quiet.debug(...(line as [object]))
        else say(...line)
      }
      if (typeof isExplained === 'boolean') write(isExplained)
      else isExplained.then(write)
    }
    quiet[level] = unlessExplained as Logger[typeof level]
  }
  return quiet
}
