import { setTimeout as sleep } from 'node:timers/promises'

const pollMs = 20

/** Whether the work ends well, for work whose failure is an answer. */
export const succeeds = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  )

/** Attempts again and again until something comes of it or the time is over; answers the last. */
export const within = async <T>(limitMs: number, attempt: () => Promise<T>): Promise<T> => {
  for (const end = Date.now() + limitMs; ; await sleep(pollMs)) {
    const result = await attempt()
    if (result || Date.now() > end) return result
  }
}
