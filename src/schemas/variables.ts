import * as v from 'valibot'
import { atMost, checkedBy, isObject, reportAll, reportPrototype, text } from './fields.ts'
import { tooMany } from './limits.ts'

type Variables = Record<string, string | number | boolean>

const MAX_VARIABLES = 200
const MAX_VARIABLE_LENGTH = 10_000
// The names that a placeholder can have.
const VARIABLE_NAME = /^[A-Za-z0-9_.-]{1,64}$/

const variableText = v.pipe(text(), atMost(MAX_VARIABLE_LENGTH))

/** The values of a template's placeholders, unchanged. */
export const variables = checkedBy(
  v.record(v.string(), v.union([v.string(), v.number(), v.boolean()])),
  (value, report): Variables | undefined => {
    if (!isObject(value)) {
      report('must be an object')
      return
    }
    const names = Object.keys(value)
    if (names.length > MAX_VARIABLES) report(tooMany(MAX_VARIABLES, 'variables', names.length))
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
