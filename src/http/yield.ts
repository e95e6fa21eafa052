/** Spreads work over iterations of the event loop, which serves connections in between. */
export type Yield = {
  /** Runs `work` when the party's turn has come, and settles as it does. */
  run<Result>(party: string, work: () => Result | Promise<Result>): Promise<Result>
}

/**
 * In each iteration of the event loop runs work of the parties in turn until `maxMs` are over, and at least
 * once. Without it all requests that arrive together would run before the next is received.
 */
export function createYield(maxMs: number): Yield {
  /** By party, first the one whose last turn was the longest ago. */
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

  function runNext() {
    for (const [party, starts] of waiting) {
      const start = starts.shift()
      waiting.delete(party)
      if (starts.length > 0) waiting.set(party, starts)
      start?.()
      return
    }
  }

  return {
    run: (party, work) =>
      new Promise((resolve) => {
        const start = () => resolve((async () => work())())
        const starts = waiting.get(party)
        if (starts) starts.push(start)
        else waiting.set(party, [start])
        schedule()
      }),
  }
}
