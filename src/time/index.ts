/** The clock and the timers of this process. Tests pass their own. */
export type Time = {
  /** Returns milliseconds since an arbitrary moment. */
  now(): number
  /** Runs `work` once after `ms`. Returns a function that cancels it. */
  after(ms: number, work: () => void): () => void
}

export const processTime: Time = {
  now: () => performance.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  },
}

/** Settles as `work` does; returns or throws as `onLate` does if that takes longer than `limitMs`. */
export function settledWithin<Result, Late>(
  limitMs: number,
  work: Promise<Result>,
  onLate: () => Late | Promise<Late>,
): Promise<Result | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // Work that settles while onLate runs still decides.
      Promise.resolve().then(onLate).then(resolve, reject)
    }, limitMs)
    const settle =
      <Value>(decide: (value: Value) => void) =>
      (value: Value) => {
        clearTimeout(timer)
        decide(value)
      }
    work.then(settle(resolve), settle(reject))
  })
}
