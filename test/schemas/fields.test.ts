import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import * as v from 'valibot'
import {
  checkedBy,
  crossFieldCheck,
  isObject,
  line,
  list,
  parseBody,
  text,
} from '../../src/schemas/fields.ts'
import { anyCharacter } from '../fixtures/strings.ts'

const schema = v.pipe(
  v.strictObject({
    name: line(5),
    note: v.exactOptional(text()),
    tags: v.exactOptional(list(line(3), 2, 'tags')),
    nested: v.exactOptional(v.strictObject({ id: v.number('must be a number') })),
    pairs: v.exactOptional(
      checkedBy(v.record(v.string(), v.number()), (value, report) => {
        if (!isObject(value)) {
          report('must be an object')
          return
        }
        for (const key of Object.keys(value)) report('is refused', key, 0)
        return value
      }),
    ),
  }),
  crossFieldCheck((body, report) => {
    if ('note' in body && body.name === body.note) report('name and note must differ')
  }),
)

const fieldsOf = (input: unknown) => {
  const parsed = parseBody(schema, input)
  return 'fields' in parsed ? parsed.fields : null
}

t.test('parseBody(): returns a valid body unchanged', async (t) => {
  const body = { name: 'Jane', tags: ['a', 'b'], nested: { id: 1 } }
  t.strictSame(parseBody(schema, body), { value: body })
})

t.test('parseBody(): refuses a body that is not an object', async (t) => {
  for (const input of [null, undefined, [], [{ name: 'Jane' }], 'Jane', 5, true]) {
    t.strictSame(fieldsOf(input), { _: ['must be a JSON object'] })
  }
})

t.test('parseBody(): reports every problem under its dotted path', async (t) => {
  t.strictSame(
    fieldsOf({
      name: 'too\nlong',
      tags: ['ok', 5, 'abcd'],
      nested: { ID: 1, x: 2 },
      one: 1,
      two: 2,
    }),
    {
      name: ['must be at most 5 characters but has 8', 'must not contain control characters'],
      tags: ['must have at most 2 tags but has 3'],
      'tags.1': ['must be a string'],
      'nested.id': ['is required'],
      'nested.ID': ['unknown field'],
      one: ['unknown field'],
      two: ['unknown field'],
    },
  )
  t.strictSame(fieldsOf({}), { name: ['is required'] })
  t.strictSame(fieldsOf({ name: 'a', nested: null, tags: null, pairs: [] }), {
    nested: ['must be an object'],
    tags: ['must be an array'],
    pairs: ['must be an object'],
  })
  t.strictSame(fieldsOf({ name: 'a', pairs: { b: 1, c: 2 } }), {
    'pairs.b.0': ['is refused'],
    'pairs.c.0': ['is refused'],
  })
})

t.test('crossFieldCheck(): runs although another field has the wrong type', async (t) => {
  t.strictSame(fieldsOf({ name: 'a', note: 'a', tags: 5, nested: 5 }), {
    tags: ['must be an array'],
    nested: ['must be an object'],
    _: ['name and note must differ'],
  })
})

t.test(
  'parseBody(): names that objects inherit or treat specially are ordinary fields',
  async (t) => {
    const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '']
    const body = JSON.parse(`{"name":"a",${names.map((name) => `"${name}":1`)}}`)
    t.strictSame(
      Object.entries(fieldsOf(body) ?? {}),
      names.map((name) => [name, ['unknown field']]),
    )
    t.match(JSON.stringify(fieldsOf(body)), '"__proto__":["unknown field"]')
    t.strictSame(fieldsOf(JSON.parse('{"name":"a","__proto__":{"note":5}}')), {
      ['__proto__']: ['unknown field'],
    })
    t.strictSame(
      Object.keys(
        fieldsOf(JSON.parse('{"name":"a","pairs":{"__proto__":1,"constructor":2}}')) ?? {},
      ),
      ['pairs.__proto__.0', 'pairs.constructor.0'],
    )
  },
)

t.test(
  'parseBody(): a key in fields has a limited length, and Postgres can store it',
  async (t) => {
    const body = {
      name: 'a',
      'NUL\0': 1,
      '\ud83d': 1,
      ['k'.repeat(200)]: 1,
      ['l'.repeat(201)]: 1,
      [`${'m'.repeat(198)}🎉🎉`]: 1,
    }
    t.strictSame(Object.keys(fieldsOf(body) ?? {}), [
      'NUL\ufffd',
      '\ufffd',
      'k'.repeat(200),
      `${'l'.repeat(199)}…`,
      `${'m'.repeat(198)}\ufffd…`,
    ])
  },
)

t.test('parseBody(): reports at most 1 000 fields, known ones first', async (t) => {
  const unknown = Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`x${n}`, n]))
  const keys = Object.keys(fieldsOf({ ...unknown, tags: 5 }) ?? {})
  t.equal(keys.length, 1000)
  t.strictSame(keys.slice(0, 4), ['name', 'tags', 'x0', 'x1'])
})

t.test('line(): checks length, control characters and tabs', async (t) => {
  const problems = (schema: v.GenericSchema, value: unknown) =>
    v.safeParse(schema, value).issues?.map((issue) => issue.message) ?? []
  t.strictSame(problems(line(3), 'a 🎉'.slice(0, 3)), ['must not contain lone surrogates'])
  t.strictSame(problems(line(3), ''), ['must not be empty'])
  t.strictSame(problems(line(3), 'abc'), [])
  t.strictSame(problems(line(3), '🎉🎉🎉'), [])
  t.strictSame(problems(line(3), 'a🎉🎉🎉'), ['must be at most 3 characters but has 4'])
  t.strictSame(problems(line(3), 'abcdefg'), ['must be at most 3 characters but has 7'])
  t.strictSame(problems(line(3), 'a\tb'), ['must not contain control characters'])
  t.strictSame(problems(line(3, { tabs: true }), 'a\tb'), [])
  for (const control of ['\0', '\n', '\r', '\x1b', '\x7f', '\x85']) {
    t.strictSame(problems(line(3, { tabs: true }), control), [
      'must not contain control characters',
    ])
  }
  t.strictSame(problems(text(), ''), [])
  t.strictSame(problems(text(), 'a\r\n\tb'), [])
  t.strictSame(problems(text(), 'a\0\ud800'), [
    'must not contain NUL characters',
    'must not contain lone surrogates',
  ])
})

t.test('parseBody(): returns fields that Postgres can store for any JSON', async () => {
  const json = fc.jsonValue({ stringUnit: 'binary' })
  fc.assert(
    fc.property(fc.oneof(json, fc.dictionary(fc.string({ unit: anyCharacter }), json)), (input) => {
      const fields = JSON.stringify(fieldsOf(input))
      assert.doesNotMatch(fields, /\\u0000|\\ud[89a-f]/)
    }),
    { numRuns: 1000 },
  )
})
