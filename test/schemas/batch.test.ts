import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { parseBatch } from '../../src/schemas/batch.ts'

const items = (length: number) => Array.from({ length }, (_, index) => ({ index }))

t.test('parseBatch(): returns 1 to 1 000 items in order, without checking them', async (t) => {
  for (const length of [1, 2, 1000]) {
    t.strictSame(parseBatch({ emails: items(length) }, 'emails'), { value: items(length) })
  }
  const odd = [null, 'text', 5, [], {}]
  t.strictSame(parseBatch({ emails: odd }, 'emails'), { value: odd })
  t.strictSame(parseBatch({ messages: odd }, 'messages'), { value: odd })
})

t.test('parseBatch(): refuses a batch of another shape', async (t) => {
  const refused: [input: unknown, fields: Record<string, string[]>][] = [
    [null, { _: ['must be a JSON object'] }],
    [[], { _: ['must be a JSON object'] }],
    [[{ emails: [1] }], { _: ['must be a JSON object'] }],
    [{}, { emails: ['is required'] }],
    [{ emails: null }, { emails: ['must be an array'] }],
    [{ emails: {} }, { emails: ['must be an array'] }],
    [{ emails: 'a' }, { emails: ['must be an array'] }],
    [{ emails: [] }, { emails: ['must have at least 1 item'] }],
    [{ emails: items(1001) }, { emails: ['must have at most 1000 items but has 1001'] }],
    [
      { emails: [1], a: 1, b: 1 },
      { a: ['unknown field'], b: ['unknown field'] },
    ],
    [{ messages: [1] }, { emails: ['is required'], messages: ['unknown field'] }],
  ]
  for (const [input, fields] of refused) t.strictSame(parseBatch(input, 'emails'), { fields })
  t.strictSame(parseBatch({ emails: [1] }, 'messages'), {
    fields: { messages: ['is required'], emails: ['unknown field'] },
  })
})

t.test('parseBatch(): returns for any JSON', async () => {
  const json = fc.jsonValue({ stringUnit: 'binary' })
  fc.assert(
    fc.property(fc.oneof(json, fc.record({ emails: json })), (input) => {
      const parsed = parseBatch(input, 'emails')
      assert.ok('value' in parsed || Object.keys(parsed.fields).length > 0)
    }),
  )
})
