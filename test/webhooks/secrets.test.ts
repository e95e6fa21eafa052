import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { caller } from '../../src/db/call.ts'
import { createSecretOpener, prepareSealing } from '../../src/webhooks/secrets.ts'
import { createDatabase } from '../fixtures/database.ts'

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const before = createSecrets([keyOf(1)])
const { sql } = await createDatabase()
const call = caller(sql)

const makeSecret = async () => {
  const [row] = await sql<{ secret: string; sealed: string }[]>`select * from core.make_secret()`
  if (!row) throw new Error('no secret was made')
  return row
}

t.test('before a service ran, no secret is made', async (t) => {
  await t.rejects(makeSecret, /no key yet/)
})

t.test('a secret is made in the database and opened by the service alone', async (t) => {
  await Promise.all([prepareSealing(call, before), prepareSealing(call, before)])
  t.equal((await call('sealing_keys', {})).length, 1, 'of two starts at once one key is kept')
  const open = createSecretOpener(call, before)
  const made = await Promise.all(Array.from({ length: 20 }, makeSecret))
  t.equal(new Set(made.map(({ secret }) => secret)).size, 20)
  for (const { secret, sealed } of made) {
    t.match(secret, /^whsec_[0-9a-f]{64}$/)
    t.notMatch(sealed, secret.slice(6))
    t.equal(await open(sealed), secret)
    t.equal(await open(sealed), secret, 'again')
  }
})

t.test('a new SECRET_KEY opens what the old one sealed while both are set', async (t) => {
  const old = await makeSecret()
  const after = createSecrets([keyOf(2)])
  await prepareSealing(call, after)
  t.equal((await call('sealing_keys', {})).length, 2)
  const recent = await makeSecret()
  t.equal(await createSecretOpener(call, after)(recent.sealed), recent.secret)
  await t.rejects(createSecretOpener(call, after)(old.sealed), /not sealed with SECRET_KEY/)
  const both = createSecrets([keyOf(2), keyOf(1)])
  await prepareSealing(call, both)
  t.equal((await call('sealing_keys', {})).length, 2, 'no other is made')
  const open = createSecretOpener(call, both)
  t.equal(await open(old.sealed), old.secret)
  t.equal(await open(recent.sealed), recent.secret)
})

t.test('once both were set the old SECRET_KEY can go', async (t) => {
  const made = await makeSecret()
  await prepareSealing(call, createSecrets([keyOf(3), keyOf(2), keyOf(1)]))
  const keys = await call('sealing_keys', {})
  const after = createSecrets([keyOf(3)])
  t.equal(await createSecretOpener(call, after)(made.sealed), made.secret)
  for (const { privateKey } of keys) t.equal(after.reseal(privateKey), null)
  await prepareSealing(call, after)
  t.same(await call('sealing_keys', {}), keys, 'nothing is left to be done')
})
