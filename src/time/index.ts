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
export async function settledWithin<Result, Late>(
  limitMs: number,
  work: Promise<Result>,
  onLate: () => Late | Promise<Late>,
): Promise<Result | Late> {
  const { promise: late, resolve: beLate } = Promise.withResolvers<void>()
  const timer = setTimeout(beLate, limitMs)
  try {
    return await Promise.race([work, late.then(onLate)])
  } finally {
    clearTimeout(timer)
  }
}
