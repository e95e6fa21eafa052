/** Whether a text has more than `max` code points; looks at no more of it than it must. */
export function isLongerThan(text: string, max: number): boolean {
  // A code point has one or two UTF-16 units.
  if (text.length <= max) return false
  return text.length > 2 * max || codePoints(text) > max
}

/** The number of code points: what JSON Schema and Postgres count as length. */
export function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** The problem of a text that is longer than its limit. */
export function tooLong(max: number, text: string): string {
  return `must be at most ${max} characters but has ${codePoints(text)}`
}

/** The problem of a list or an object that has more than its limit. */
export function tooMany(max: number, noun: string, count: number): string {
  return `must have at most ${max} ${noun} but has ${count}`
}
