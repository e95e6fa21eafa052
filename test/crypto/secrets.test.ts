import { randomBytes } from 'node:crypto'
import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'

const [oldKey = '', newKey = '', foreignKey = ''] = [1, 2, 3].map((n) =>
  Buffer.alloc(32, n).toString('base64'),
)

const NOT_OURS = { message: 'a secret in the database was not sealed with SECRET_KEY' }

t.test('seal, open: any text comes back unchanged', async (t) => {
  const { seal, open } = createSecrets([newKey])
  for (const text of ['', 'a', 'Grüße 🎉\0\n', 'x'.repeat(100_000)]) {
    t.equal(open(seal(text)), text)
    t.equal(createSecrets([newKey]).open(seal(text)), text, 'also by another process')
  }
})

t.test('keyOf(): returns the place of the key that sealed a text, or null', async (t) => {
  const secrets = createSecrets([newKey, oldKey])
  t.equal(secrets.keyIds.length, 2)
  t.equal(secrets.keyOf(secrets.seal('a')), 0)
  t.equal(secrets.keyOf(createSecrets([oldKey]).seal('a')), 1)
  t.equal(secrets.keyOf(createSecrets([foreignKey]).seal('a')), null)
  t.equal(secrets.keyOf('no sealed text'), null)
})

t.test('seal: the result contains no part of the text and differs each time', async (t) => {
  const { seal } = createSecrets([newKey])
  const sealed = Array.from({ length: 1000 }, () => seal('the same secret'))
  t.equal(new Set(sealed).size, 1000)
  const nonces = sealed.map((text) => text.slice(0, 16))
  t.equal(new Set(nonces).size, 1000, 'nor two nonces, which would undo the cipher')
  const plain = sealed.map((text) => Buffer.from(text, 'base64').toString('latin1'))
  t.same(
    plain.filter((text) => text.includes('secret')),
    [],
  )
})

t.test('open: refuses a sealed text with any bit changed', async (t) => {
  const { seal, open } = createSecrets([newKey])
  const sealed = Buffer.from(seal('secret'), 'base64')
  let opened = 0
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed)
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
    try {
      open(changed.toString('base64'))
      opened++
    } catch {}
  }
  t.equal(opened, 0)
})

t.test('open: refuses a sealed text that was cut, lengthened or re-encoded', async (t) => {
  const { seal, open } = createSecrets([newKey])
  const sealed = seal('secret!')
  const bytes = Buffer.from(sealed, 'base64')
  t.equal(open(sealed), 'secret!')
  for (let length = 0; length < bytes.length; length++) {
    t.throws(() => open(bytes.subarray(0, length).toString('base64')), NOT_OURS)
  }
  const others = [
    Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64'),
    Buffer.concat([bytes, bytes]).toString('base64'),
    bytes.subarray(1).toString('base64'),
    ` ${sealed}`,
    `${sealed}\n`,
    `${sealed}=`,
    `${sealed}!`,
    bytes.toString('hex'),
    'secret!',
    '',
    Buffer.alloc(1000).toString('base64'),
  ]
  for (const other of others) t.throws(() => open(other), NOT_OURS)
})

t.test('open: refuses another key, with an error that contains no key and no text', async (t) => {
  const sealed = createSecrets([foreignKey]).seal('hunter2')
  for (const keys of [[oldKey], [newKey, oldKey]]) {
    try {
      createSecrets(keys).open(sealed)
      t.fail('it opened')
    } catch (error) {
      const words = `${error} ${(error as Error).stack} ${JSON.stringify(error)}`
      for (const secret of [sealed, 'hunter2', ...keys]) t.notOk(words.includes(secret))
      t.equal((error as Error).cause, undefined)
    }
  }
})

t.test('rotation: the old key still opens and verifies, the new one seals and signs', async (t) => {
  const before = createSecrets([oldKey])
  const after = createSecrets([newKey, oldKey])
  const bytes = Buffer.from('em_1')
  t.equal(after.open(before.seal('kept')), 'kept')
  t.ok(after.isSigned(bytes, before.sign(bytes)))
  t.throws(() => before.open(after.seal('new')), NOT_OURS)
  t.notOk(before.isSigned(bytes, after.sign(bytes)))
  t.equal(createSecrets([newKey]).open(after.seal('new')), 'new')
  t.same(after.sign(bytes), createSecrets([newKey]).sign(bytes))

  const later = createSecrets([foreignKey, newKey])
  t.throws(() => later.open(before.seal('kept')), NOT_OURS, 'until the old one is given up')
  t.notOk(later.isSigned(bytes, before.sign(bytes)))
})

t.test('isSigned: accepts a signature only for its bytes and its key', async (t) => {
  const { sign, isSigned } = createSecrets([newKey, oldKey])
  const bytes = randomBytes(40)
  const signature = sign(bytes)
  t.equal(signature.length, 32)
  t.same(sign(Buffer.from(bytes)), signature, 'the same each time, as links are made anew')
  t.ok(isSigned(bytes, signature))

  const changed = Buffer.from(signature)
  changed.writeUInt8(changed.readUInt8(31) ^ 1, 31)
  const wrong = [
    changed,
    signature.subarray(0, 31),
    Buffer.concat([signature, signature]),
    Buffer.alloc(0),
    Buffer.alloc(32),
    createSecrets([foreignKey]).sign(bytes),
  ]
  for (const other of wrong) t.equal(isSigned(bytes, other), false)
  t.equal(isSigned(bytes.subarray(1), signature), false)
  t.equal(isSigned(Buffer.alloc(0), signature), false)
})

t.test('createSecrets: refuses an invalid key without quoting it', async (t) => {
  const bad = ['', 'hunter2', oldKey.slice(4), `AAAA${oldKey}`, Buffer.alloc(16).toString('base64')]
  for (const key of bad) {
    for (const keys of [[key], [newKey, key]]) {
      t.throws(() => createSecrets(keys), { message: 'a secret key is not 32 bytes in base64' })
    }
  }
  t.throws(() => createSecrets([]), { message: 'there is no secret key' })
  t.ok(createSecrets([Buffer.from(oldKey, 'base64').toString('base64url')]), 'base64url will do')
})
