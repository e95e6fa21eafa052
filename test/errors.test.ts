import t from 'tap'
import { type Code, catalogue, catalogueJson, errorBody, Refusal } from '../src/errors.ts'
import { STATUS } from './fixtures/http.ts'

const codes = Object.keys(catalogue) as Code[]

t.test(
  'catalogue: has every code of the API reference with its status, and no other',
  async (t) => {
    t.same(Object.fromEntries(codes.map((code) => [code, catalogue[code][0]])), STATUS)
  },
)

t.test('catalogue: each message is one or two short sentences', async (t) => {
  for (const code of codes) t.match(catalogue[code][1], /^[A-Z].{20,150}\.$/, code)
})

t.test(
  'Refusal: is an Error with a code, a status, fields and the default message of its code',
  async (t) => {
    const fields = { to: ['is required'] }
    const refusal = new Refusal('validation_error', fields)
    t.type(refusal, Error)
    t.match(refusal, {
      code: 'validation_error',
      status: 422,
      message: catalogue.validation_error[1],
    })
    t.strictSame(refusal.fields, fields)
    for (const none of [new Refusal('not_found'), new Refusal('not_found', null)]) {
      t.equal(none.fields, undefined)
    }
  },
)

t.test('Refusal: message and retryAfter are optional', async (t) => {
  const refusal = new Refusal('rate_limited', null, { message: 'Too much.', retryAfter: 3 })
  t.match(refusal, { message: 'Too much.', retryAfter: 3 })
  const bare = new Refusal('rate_limited', null, { message: null, retryAfter: null })
  t.strictSame([bare.message, bare.retryAfter], [catalogue.rate_limited[1], undefined])
  const { message } = errorBody('https://mail.example', 'rate_limited', undefined, 'Too much.')
  t.equal(message, 'Too much.')
})

t.test(
  'errorBody(): links to the errors page, and has fields only when some are given',
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

t.test('catalogueJson(): has the same errors as errorBody()', async (t) => {
  const errors = JSON.parse(catalogueJson('https://mail.example'))
  t.strictSame(Object.keys(errors), codes)
  for (const code of codes) t.strictSame(errors[code], errorBody('https://mail.example', code))
})
