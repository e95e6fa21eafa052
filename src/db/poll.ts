import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 20

/** Returns whether work succeeds, for work that may fail as well. */
export const succeeds = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  )

/** Repeats work until its result is truthy or the time limit has passed. Returns the last result. */
export const poll = async <T>(limitMs: number, work: () => Promise<T>): Promise<T> => {
  for (const end = Date.now() + limitMs; ; await sleep(POLL_MS)) {
    const result = await work()
    if (result || Date.now() > end) return result
  }
}
