import t from 'tap'
import { networkIdOf, spellingsOf } from '../../../src/providers/smpp/network-id.ts'

t.test('networkIdOf(): an id is stored in lower case and at most 64 characters', async (t) => {
  t.equal(networkIdOf(' 00A1b2 '), '00a1b2')
  t.equal(networkIdOf('x'.repeat(100)), 'x'.repeat(64))
  t.equal(networkIdOf(''), undefined)
  t.equal(networkIdOf(undefined), undefined)
})

/** Known networks: the id in the response, and the id of the same message in the receipt. */
const pairs: [answer: string, receipt: string, why: string][] = [
  ['a1b2c3d4', 'A1B2C3D4', 'the same'],
  ['0a1b2c3d', '169552957', 'hex, then decimal'],
  ['a1b2c3d', '169552957', 'hex without zeros, then decimal'],
  ['000a1b2c3d', '0169552957', 'hex of ten digits, then decimal with zeros'],
  ['169552957', '0A1B2C3D', 'decimal, then hex'],
  ['0169552957', 'a1b2c3d', 'decimal with zeros, then hex'],
  ['169552957', '0169552957', 'zeros only in the receipt'],
  ['0169552957', '169552957', 'zeros only in the answer'],
  ['0a1b2c3d', 'a1b2c3d', 'zeros only in the answer, in hex'],
  ['000000012a05f200', '5000000000', 'hex of 64 bits, then decimal'],
  ['12345678', '305419896', 'hex without letters, then decimal'],
  ['305419896', '12345678', 'decimal, then hex without letters'],
  ['550e8400-e29b-41d4', '550E8400-E29B-41D4', 'no number at all'],
]

for (const [answer, receipt, why] of pairs) {
  t.test(`spellingsOf(): includes the spelling of the submit_sm_resp: ${why}`, async (t) => {
    const spellings = spellingsOf(networkIdOf(receipt) ?? '')
    t.ok(spellings.includes(answer), spellings.join(' '))
    t.equal(spellings[0], receipt.toLowerCase(), 'the spelling of the receipt comes first')
  })
}

t.test('spellingsOf(): at most 8 spellings, each once and none too long', async (t) => {
  for (const id of [
    '0',
    '00',
    '7',
    '0000000001',
    '09999999999999999999',
    'f'.repeat(20),
    'a'.repeat(64),
  ]) {
    const spellings = spellingsOf(id)
    t.ok(spellings.length >= 1 && spellings.length <= 8)
    t.equal(new Set(spellings).size, spellings.length)
    t.ok(spellings.every((one) => /^.{1,64}$/.test(one)))
  }
})
