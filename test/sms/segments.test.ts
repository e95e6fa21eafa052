import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SegmentedMessage } from 'sms-segments-calculator'
import t from 'tap'
import { charactersOutsideGsm7, octetsOf, segmentsOf } from '../../src/sms/segments.ts'
import { anyCharacter } from '../fixtures/strings.ts'

const BASIC = [...'@£$¥èéùìòÇØøÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./059:;<=>?¡AZÄÖÑÜ§¿azäöñüà\n\r']
const EXTENSION = [...'^{}\\[~]|€\f']
/** One unit each; they look like characters of GSM-7 but are not. */
const WIDE = [...'ç`\t“”’–…âêÁ山жא']
const PAIRS = [...'💌🎉𝄞𠮷']

/** Around what fits in one and in two segments; what a few characters more or less bring there. */
const LENGTHS = [59, 66, 67, 68, 70, 71, 80, 133, 134, 135, 145, 152, 153, 154, 160, 161, 306, 307]

/** Runs of characters of one kind, so that boundaries fall into each kind and between two. */
const textOf = (...alphabets: string[][]) =>
  fc
    .array(
      fc
        .constantFrom(...alphabets)
        .chain((alphabet) =>
          fc
            .oneof(fc.constantFrom(...LENGTHS), fc.integer({ min: 1, max: 12 }))
            .chain((length) =>
              fc.array(fc.constantFrom(...alphabet), { minLength: length, maxLength: length }),
            ),
        ),
      { minLength: 1, maxLength: 3 },
    )
    .map((runs) => runs.flat().join(''))

/** The segments of another library, for texts without combined characters. */
const oracle = (text: string) => {
  const { encodingName, segments } = new SegmentedMessage(text)
  return {
    encoding: encodingName === 'GSM-7' ? 'gsm7' : 'ucs2',
    parts: segments.map((segment) =>
      [...segment].map((character) => ('raw' in character ? character.raw : '')).join(''),
    ),
  }
}

const numRuns = 2000
const kinds: Record<string, fc.Arbitrary<string>> = {
  'the default alphabet': textOf(BASIC),
  'the extension table': textOf(EXTENSION),
  'GSM-7': textOf(BASIC, EXTENSION),
  'UCS-2': textOf(BASIC, EXTENSION, WIDE, PAIRS),
  'surrogate pairs': textOf(PAIRS),
}

for (const [kind, arbitrary] of Object.entries(kinds)) {
  t.test(`segmentsOf(): ${numRuns} texts of ${kind} match another library`, async () => {
    fc.assert(
      fc.property(arbitrary, (text) => assert.deepEqual(segmentsOf(text), oracle(text))),
      { numRuns },
    )
  })
}

t.test('segmentsOf(): parts join to the text, fit, and split no surrogate pair', async () => {
  const any = fc.oneof(...Object.values(kinds), fc.string({ unit: anyCharacter, maxLength: 500 }))
  fc.assert(
    fc.property(any, (text) => {
      const { encoding, parts } = segmentsOf(text)
      assert.equal(parts.join(''), text)
      const most = parts.length === 1 ? { gsm7: 160, ucs2: 140 } : { gsm7: 153, ucs2: 134 }
      for (const part of parts) {
        const octets = octetsOf(part, encoding)
        assert.ok(octets.length <= most[encoding])
        assert.notEqual(encoding === 'gsm7' && octets.at(-1), 0x1b, 'an escape ends no part')
        assert.ok(part.isWellFormed())
      }
      assert.equal(
        Buffer.concat(parts.map((part) => octetsOf(part, encoding))).compare(
          octetsOf(text, encoding),
        ),
        0,
      )
    }),
    { numRuns },
  )
})

t.test('segmentsOf(): a new segment begins where one more unit does not fit', async (t) => {
  const counts: [text: string, encoding: string, segments: number][] = [
    ['', 'gsm7', 1],
    ['a'.repeat(160), 'gsm7', 1],
    ['a'.repeat(161), 'gsm7', 2],
    ['a'.repeat(306), 'gsm7', 2],
    ['a'.repeat(307), 'gsm7', 3],
    ['a'.repeat(1530), 'gsm7', 10],
    ['a'.repeat(1531), 'gsm7', 11],
    ['€'.repeat(80), 'gsm7', 1],
    ['€'.repeat(81), 'gsm7', 2],
    // 153 is odd: each part ends one septet early.
    ['€'.repeat(152), 'gsm7', 2],
    ['€'.repeat(153), 'gsm7', 3],
    [`${'a'.repeat(152)}€${'a'.repeat(8)}`, 'gsm7', 2],
    ['ж'.repeat(70), 'ucs2', 1],
    ['ж'.repeat(71), 'ucs2', 2],
    ['ж'.repeat(134), 'ucs2', 2],
    ['ж'.repeat(135), 'ucs2', 3],
    ['ж'.repeat(670), 'ucs2', 10],
    ['ж'.repeat(671), 'ucs2', 11],
    ['💌'.repeat(35), 'ucs2', 1],
    ['💌'.repeat(36), 'ucs2', 2],
    // 67 is odd too.
    ['💌'.repeat(66), 'ucs2', 2],
    ['💌'.repeat(67), 'ucs2', 3],
    // Extension characters are one unit of UCS-2.
    [`ж${'€'.repeat(69)}`, 'ucs2', 1],
  ]
  for (const [text, encoding, count] of counts) {
    const segments = segmentsOf(text)
    const name = `${text.slice(0, 1)}… of ${text.length}`
    t.strictSame([segments.encoding, segments.parts.length], [encoding, count], name)
    t.strictSame(segments, oracle(text), name)
  }
})

t.test('segmentsOf(): CR and LF are two GSM-7 characters', async (t) => {
  const { encoding, parts } = segmentsOf(`${'a'.repeat(152)}\r\n${'b'.repeat(10)}`)
  t.equal(encoding, 'gsm7')
  t.strictSame(parts, [`${'a'.repeat(152)}\r`, `\n${'b'.repeat(10)}`])
})

t.test('octetsOf(): characters have the codes of 3GPP TS 23.038', async (t) => {
  t.equal(octetsOf('@£$¥èéùìòÇ\n', 'gsm7').toString('hex'), '000102030405060708090a')
  t.equal(octetsOf('Aa¡¿à', 'gsm7').toString('hex'), '416140607f')
  t.equal(
    octetsOf('\f^{}\\[~]|€', 'gsm7').toString('hex'),
    '1b0a1b141b281b291b2f1b3c1b3d1b3e1b401b65',
  )
  t.equal(octetsOf('Aж💌', 'ucs2').toString('hex'), '00410436d83ddc8c')
})

t.test('charactersOutsideGsm7: returns those that make a text UCS-2, each once', async (t) => {
  t.same(charactersOutsideGsm7([...BASIC, ...EXTENSION].join('')), [])
  t.same(charactersOutsideGsm7([...WIDE, 'a', ...PAIRS, ...WIDE].join('')), [...WIDE, ...PAIRS])
})
