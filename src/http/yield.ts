export type Yield = ReturnType<typeof createYield>

/**
 * Runs work round-robin by owner, and yields to the event loop in between: each iteration runs one piece of work,
 * and more until `maxMs` are over. Otherwise all requests that arrive together would run before the event loop
 * receives the next.
 */
export function createYield(maxMs: number) {
  /** Waiting work by owner; the owner that has waited longest comes first. */
  const waiting = new Map<string, (() => void)[]>()
  let isScheduled = false

  function schedule() {
    if (isScheduled || waiting.size === 0) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      const endsAt = performance.now() + maxMs
      do runNext()
      while (waiting.size > 0 && performance.now() < endsAt)
      schedule()
    })
  }

  /** Runs one piece of work of the first owner, and moves the owner to the end. */
  function runNext() {
    for (const [owner, starts] of waiting) {
      const start = starts.shift()
      waiting.delete(owner)
      if (starts.length > 0) waiting.set(owner, starts)
      start?.()
      return
    }
  }

  return {
    /** Runs `work` after that of owners that wait longer, and settles with its result. */
    run: <Result>(owner: string, work: () => Result | Promise<Result>): Promise<Result> =>
      new Promise((resolve, reject) => {
        const start = () => {
          try {
            resolve(work())
          } catch (error) {
            reject(error)
          }
        }
        const starts = waiting.get(owner)
        if (starts) starts.push(start)
        else waiting.set(owner, [start])
        schedule()
      }),
  }
}
