/** Whether a text has more than `max` code points; counts only where the number of UTF-16 units leaves it open. */
export function isLongerThan(text: string, max: number): boolean {
  // A code point has one or two UTF-16 units.
  if (text.length <= max) return false
  return text.length > 2 * max || codePoints(text) > max
}

/** Returns the number of code points, which JSON Schema and Postgres count as the length. */
function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** The problem of a text over its limit. */
export function tooLong(max: number, text: string): string {
  return `must be at most ${max} characters but has ${codePoints(text)}`
}

/** The problem of a list or object over its limit. */
export function tooMany(max: number, noun: string, count: number): string {
  return `must have at most ${max} ${noun} but has ${count}`
}
