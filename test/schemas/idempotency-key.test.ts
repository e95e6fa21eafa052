import t from 'tap'
import { parseIdempotencyKey } from '../../src/schemas/idempotency-key.ts'

t.test('a request without the header has no key', async (t) => {
  t.strictSame(parseIdempotencyKey(undefined), { key: null })
})

t.test('a key is 1 to 255 printable characters, kept as given', async (t) => {
  for (const key of ['a', 'order 17, part 2', '"~!', 'k'.repeat(255)]) {
    t.strictSame(parseIdempotencyKey(key), { key })
  }
})

t.test('any other key is refused', async (t) => {
  const fields = { _: ['Idempotency-Key must be 1 to 255 printable ASCII characters'] }
  for (const key of ['', 'k'.repeat(256), 'a\tb', 'a\nb', 'a\n', 'a\0', 'a\x7f', 'é', '🎉']) {
    t.strictSame(parseIdempotencyKey(key), { fields }, JSON.stringify(key))
  }
})
