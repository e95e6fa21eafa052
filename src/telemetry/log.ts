import { type Logger, pino } from 'pino'

/** The service's log: JSON lines on standard output, with the level as a word. */
export function createLog(level: string): Logger {
  return pino({
    level,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
  })
}

/**
 * What is logged of an error: no more than these, because the database's detail may quote a row, and
 * with it somebody's message.
 */
function describeError(error: unknown) {
  if (!(error instanceof Error))
    return { message: String((error as { message?: unknown })?.message) }
  const { name, message, stack } = error
  const { code } = error as { code?: unknown }
  return { name, message, code, stack }
}
