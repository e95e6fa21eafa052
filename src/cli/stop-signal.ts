/**
 * Under npm a signal to the process group arrives twice, as npm passes on its own. Signals within this time are one
 * request.
 */
const SAME_REQUEST_MS = 1000
const PARENT_CHECK_MS = 1000

/**
 * Returns a signal that is aborted at the first SIGTERM or SIGINT; a later one exits the process at once. With
 * `endsWithParent` it is also aborted when the parent process, such as npm, has ended.
 */
export function stopSignal({ endsWithParent = false } = {}): AbortSignal {
  const stopping = new AbortController()
  let firstAt: number | undefined
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      const now = performance.now()
      firstAt ??= now
      if (now - firstAt > SAME_REQUEST_MS) process.exit(1)
      stopping.abort()
    })
  }
  if (endsWithParent) {
    const parent = process.ppid
    const check = setInterval(() => {
      if (process.ppid !== parent) stopping.abort()
    }, PARENT_CHECK_MS)
    check.unref()
  }
  return stopping.signal
}
