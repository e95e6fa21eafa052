import * as v from 'valibot'
import { isObject, judged, reportAll, reportPrototype, text } from './fields.ts'

export type Variables = Record<string, string | number | boolean>

// Design 8, where the interface is silent.
const MAX_VARIABLES = 200
const MAX_VARIABLE_LENGTH = 10_000
// What a placeholder can name.
const VARIABLE_NAME = /^[A-Za-z0-9_.-]{1,64}$/

const variableText = v.pipe(
  text(),
  v.maxLength(MAX_VARIABLE_LENGTH, `must be at most ${MAX_VARIABLE_LENGTH} characters`),
)

/** What fills a template's placeholders (interface 4.1), as it came. */
export const variables = judged(
  v.record(v.string(), v.union([v.string(), v.number(), v.boolean()])),
  (value, report): Variables | undefined => {
    if (!isObject(value)) {
      report('must be an object')
      return
    }
    const names = Object.keys(value)
    if (names.length > MAX_VARIABLES) report(`must have at most ${MAX_VARIABLES} variables`)
    for (const name of names.slice(0, MAX_VARIABLES)) {
      if (!VARIABLE_NAME.test(name)) {
        report('must have a name of 1 to 64 letters, digits, dots, hyphens or underscores', name)
      }
      reportPrototype(name, report)
      const variable = value[name]
      if (typeof variable === 'string') reportAll(variableText, variable, report, name)
      else if (typeof variable === 'number') {
        if (!Number.isFinite(variable)) report('must be a finite number', name)
      } else if (typeof variable !== 'boolean') {
        report('must be a string, a number or a boolean', name)
      }
    }
    return value as Variables
  },
)
