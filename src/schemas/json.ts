import { Refusal } from '../errors.ts'
import { tooMany } from './limits.ts'

const MAX_DEPTH = 20

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c]
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Returns the JSON value of a body. Throws a Refusal if the text is not JSON and, before parsing it, if it is
 * nested deeper than 20 levels or has more than `maxValues` values.
 */
export function parseJson(text: string, maxValues: number): unknown {
  const problem = structureProblem(text, maxValues)
  if (problem) throw new Refusal('validation_error', { _: [problem] })
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal('invalid_json')
  }
}

/**
 * Returns why the structure of a JSON text is too large to be parsed, or null. Only counts, because parsing nested
 * brackets takes a thousand times as long.
 */
export function structureProblem(text: string, maxValues: number): string | null {
  let depth = 0
  // In an array or object the first value follows a bracket, each other value a comma.
  let values = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === COMMA) values++
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      values++
      depth++
      if (depth > MAX_DEPTH) return `must be nested at most ${MAX_DEPTH} levels deep`
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--
  }
  return values > maxValues ? tooMany(maxValues, 'values', values) : null
}

/** Returns the position of the quote that ends the string that begins at `start`, or the length of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}
