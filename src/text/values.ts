/** Values of environment variables, each read from a string. Their error messages never quote a value. */
import * as v from 'valibot'

/** A whole number from `min` to `max`. */
export function integer(min: number, max: number) {
  return v.pipe(
    v.string(),
    v.regex(/^\d{1,9}$/, 'must be a whole number'),
    v.transform(Number),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

/** A base URL, to which paths are appended. */
export const httpUrl = v.pipe(
  v.string(),
  // URL accepts line ends, surrounding blanks and missing slashes, which would break links.
  v.check(
    (text) => /^https?:\/\/[!#-;=?-~]+$/i.test(text) && URL.canParse(text),
    'must be an http or https URL',
  ),
  v.check((text) => !/^[^/]*\/\/[^/]*@/.test(text), 'must have no user and password in it'),
  v.check((text) => !/[?#]/.test(text), 'must end with its path, without ? and #'),
  v.transform((text) => text.replace(/\/+$/, '')),
)
