import type { Logger } from 'pino'
import type { Availability } from './availability.ts'

/**
 * The same log, with errors that come from the database being away at level debug: one line says that it
 * is, and one that it is back, however many connections and tasks fail meanwhile.
 */
export function quietLog(log: Logger, { report }: Pick<Availability, 'report'>): Logger {
  const quiet = log.child({})
  for (const level of ['warn', 'error'] as const) {
    const say = quiet[level].bind(quiet) as (...line: unknown[]) => void
    const unlessAway = (...line: [unknown, ...unknown[]]) => {
      const [fields] = line
      const isAway =
        typeof fields === 'object' && fields !== null && 'err' in fields && report(fields.err)
      if (isAway) quiet.debug(...(line as [object]))
      else say(...line)
    }
    quiet[level] = unlessAway as Logger[typeof level]
  }
  return quiet
}
