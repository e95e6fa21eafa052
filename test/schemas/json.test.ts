import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { Refusal } from '../../src/errors.ts'
import { parseJson, structureProblem } from '../../src/schemas/json.ts'

const TOO_DEEP = 'must be nested at most 20 levels deep'

t.test('parseJson(): parses 20 levels, and refuses 21 before parsing', async (t) => {
  const nested = (open: string, close: string, depth: number) =>
    `${open.repeat(depth)}1${close.repeat(depth)}`
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
    ['[{"a":', '}]'],
  ] as const) {
    const levels = open.startsWith('[{') ? 2 : 1
    t.equal(structureProblem(nested(open, close, 20 / levels), 1000), null)
    t.equal(structureProblem(nested(open, close, 20 / levels + 1), 1000), TOO_DEEP)
  }
  t.equal(structureProblem('['.repeat(1_000_000), 1000), TOO_DEEP, 'brackets that are not closed')
  t.equal(structureProblem('[],'.repeat(500), 1000), null, 'brackets side by side')
})

t.test(
  'structureProblem(): counts values of arrays and objects, not characters in strings',
  async (t) => {
    for (const [text, values] of [
      ['[1,2,3]', 3],
      ['{"a":1,"b":2}', 2],
      ['{"a":[1,2],"b":{"c":3}}', 5],
      ['[[],[],{}]', 6],
      [String.raw`["a,b","[[[","\",\"","\\",",\\\","]`, 5],
      ['"a,b,c,[{', 0],
      [String.raw`"\\\",,,[`, 0],
      ['5', 0],
      ['', 0],
    ] as const) {
      t.equal(structureProblem(text, values), null, text)
      const problem = `must have at most ${values - 1} values but has ${values}`
      if (values > 0) t.equal(structureProblem(text, values - 1), problem, text)
    }
  },
)

t.test(
  'parseJson(): a text that is not JSON gets invalid_json, one that is too large validation_error',
  async (t) => {
    const refusal = (text: string) => {
      try {
        return parseJson(text, 10)
      } catch (error) {
        return error instanceof Refusal ? [error.code, error.fields] : error
      }
    }
    t.strictSame(refusal('{"a":1}'), { a: 1 })
    for (const text of ['', ' ', '{', '"', '[1,]', 'NaN']) {
      t.strictSame(refusal(text), ['invalid_json', undefined], text)
    }
    t.strictSame(refusal('['.repeat(21)), ['validation_error', { _: [TOO_DEEP] }])
    t.strictSame(refusal(`[${'1,'.repeat(10)}1]`), [
      'validation_error',
      { _: ['must have at most 10 values but has 11'] },
    ])
  },
)

/** Counts depth and values of the parsed value. */
function measure(value: unknown): { depth: number; values: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, values: 0 }
  const members = Object.values(value).map(measure)
  return {
    depth: 1 + Math.max(0, ...members.map((member) => member.depth)),
    values: members.reduce((sum, member) => sum + member.values, Math.max(1, members.length)),
  }
}

t.test('structureProblem(): counts depth and values of any JSON text', async () => {
  const jsonText = fc
    .tuple(fc.jsonValue({ stringUnit: 'binary', depthSize: 'medium' }), fc.nat({ max: 2 }))
    .map(([value, indent]) => JSON.stringify(value, null, indent))
  fc.assert(
    fc.property(jsonText, (text) => {
      const { depth, values } = measure(JSON.parse(text))
      assert.equal(structureProblem(text, values) === TOO_DEEP, depth > 20)
      if (depth > 20) return
      assert.equal(structureProblem(text, values), null)
      if (values > 0) assert.notEqual(structureProblem(text, values - 1), null)
    }),
    { numRuns: 3000 },
  )
})
