/** Aborted at the first SIGTERM or SIGINT; at a second one the process ends at once. */
export function stopSignal(): AbortSignal {
  const stopping = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      stopping.abort()
      process.once(signal, () => process.exit(1))
    })
  }
  return stopping.signal
}
