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
