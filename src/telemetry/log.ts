import { type Logger, pino } from 'pino'

/** Returns the service's log: JSON lines on standard output, with the level as a word. */
export function createLog(level: string): Logger {
  return pino({
    level,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
  })
}

/** Other fields of an error are left out: the detail of a database error may quote a row, and so a message. */
function describeError(error: unknown) {
  if (!(error instanceof Error))
    return { message: String((error as { message?: unknown })?.message) }
  const { name, message, stack, code } = error as Error & { code?: unknown }
  return { name, message, code, stack }
}
