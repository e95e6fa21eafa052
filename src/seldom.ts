const EVERY_MS = 60_000

/**
 * What is said at most once a minute, however often it happens, lest it fill the disk: `say` is told how
 * often it did since it was last said, this time included.
 */
export function seldom<About extends unknown[]>(
  say: (times: number, ...about: About) => void,
): (...about: About) => void {
  let times = 0
  let isQuietUntil = Number.NEGATIVE_INFINITY
  return (...about) => {
    times += 1
    if (performance.now() < isQuietUntil) return
    say(times, ...about)
    times = 0
    isQuietUntil = performance.now() + EVERY_MS
  }
}
