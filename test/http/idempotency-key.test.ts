import t from 'tap'
import { parseIdempotencyKey } from '../../src/http/idempotency.ts'

t.test('parseIdempotencyKey(): without the header the key is null', async (t) => {
  t.strictSame(parseIdempotencyKey(undefined), { value: null })
})

t.test('parseIdempotencyKey(): returns 1 to 255 printable characters unchanged', async (t) => {
  for (const key of ['a', 'order 17, part 2', '"~!', 'k'.repeat(255)]) {
    t.strictSame(parseIdempotencyKey(key), { value: key })
  }
})

t.test('parseIdempotencyKey(): refuses any other key', async (t) => {
  const fields = { _: ['Idempotency-Key must be 1 to 255 printable ASCII characters'] }
  for (const key of ['', 'k'.repeat(256), 'a\tb', 'a\nb', 'a\n', 'a\0', 'a\x7f', 'é', '🎉']) {
    t.strictSame(parseIdempotencyKey(key), { fields }, JSON.stringify(key))
  }
})
