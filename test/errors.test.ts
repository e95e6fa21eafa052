import t from 'tap'
import { type Code, catalogue, catalogueJson, errorBody, Refusal } from '../src/errors.ts'
import { STATUS } from './fixtures/refusal.ts'

const codes = Object.keys(catalogue) as Code[]

t.test('every code of the interface has its status, and no other code has one', async (t) => {
  t.same(Object.fromEntries(codes.map((code) => [code, catalogue[code][0]])), STATUS)
})

t.test('what is said of a code is one or two sentences', async (t) => {
  for (const code of codes) t.match(catalogue[code][1], /^[A-Z].{20,150}\.$/, code)
})

t.test('a refusal is an error with its code, status and fields', async (t) => {
  const fields = { to: ['is required'] }
  const refusal = new Refusal('validation_error', fields)
  t.type(refusal, Error)
  t.match(refusal, { code: 'validation_error', status: 422, message: 'validation_error' })
  t.strictSame(refusal.fields, fields)
  for (const none of [new Refusal('not_found'), new Refusal('not_found', null)]) {
    t.equal(none.fields, undefined)
  }
})

t.test('Refusal: words and retryAfter are optional', async (t) => {
  const refusal = new Refusal('rate_limited', null, { words: 'Too much.', retryAfter: 3 })
  t.match(refusal, { words: 'Too much.', retryAfter: 3 })
  const { words, retryAfter } = new Refusal('rate_limited', null, { words: null, retryAfter: null })
  t.strictSame([words, retryAfter], [undefined, undefined])
  const { message } = errorBody('https://mail.example', 'rate_limited', undefined, 'Too much.')
  t.equal(message, 'Too much.')
})

t.test(
  'the error of an answer says where it is explained, and has fields only if there are any',
  async (t) => {
    t.strictSame(errorBody('https://mail.example', 'not_found'), {
      code: 'not_found',
      message: catalogue.not_found[1],
      docs: 'https://mail.example/docs/errors#not_found',
    })
    t.strictSame(
      errorBody('https://mail.example', 'validation_error', { to: ['is required'] }).fields,
      {
        to: ['is required'],
      },
    )
  },
)

t.test('SQL is given the same errors as JSON', async (t) => {
  const given = JSON.parse(catalogueJson('https://mail.example'))
  t.strictSame(Object.keys(given), codes)
  for (const code of codes) t.strictSame(given[code], errorBody('https://mail.example', code))
})
