import assert from 'node:assert/strict'
import { domainToASCII } from 'node:url'
import emailAddresses from 'email-addresses'
import fc from 'fast-check'
import t from 'tap'
import { formatAddress, parseAddress, parseBareAddress } from '../../src/schemas/address.ts'
import { anyCharacter } from '../fixtures/strings.ts'

const NOT_AN_ADDRESS = 'must be an email address, as name@example.com or Name <name@example.com>'
const NOT_A_DOMAIN = 'must have a domain such as example.com after the @'
const NOT_ONE = 'must be one address, not a list or a group'
const QUOTE_THE_NAME = 'a name with any of ( ) < > [ ] : ; @ \\ , must be in double quotes'
const NO_COMMENTS = `must not have comments; ${QUOTE_THE_NAME}`
const NO_IP = 'must not have an IP address after the @'

const long = (length: number) => 'a'.repeat(length)
const domainOf253 = `${`${long(63)}.`.repeat(3)}${long(58)}.za`

t.test('parseAddress(): parses every form, with the domain in lower-case ASCII', async (t) => {
  const accepted: [text: string, name: string | null, address: string][] = [
    ['jane@example.com', null, 'jane@example.com'],
    ['Jane.Doe+tag@Mail.EXAMPLE.com', null, 'Jane.Doe+tag@mail.example.com'],
    ["!#$%&'*+-/=?^_`{|}~@example.com", null, "!#$%&'*+-/=?^_`{|}~@example.com"],
    ['a@b.co', null, 'a@b.co'],
    ['a@1.2.x', null, 'a@1.2.x'],
    ['a@example.c0m', null, 'a@example.c0m'],
    ['a@example.4u', null, 'a@example.4u'],
    ['a@a--b.example', null, 'a@a--b.example'],
    ['a@bücher.de', null, 'a@xn--bcher-kva.de'],
    ['a@BÜCHER.DE', null, 'a@xn--bcher-kva.de'],
    ['a@XN--BCHER-KVA.de', null, 'a@xn--bcher-kva.de'],
    ['a@例え.jp', null, 'a@xn--r8jz45g.jp'],
    ['a@example。com', null, 'a@example.com'],
    ['a@b\u200b.co', null, 'a@b.co'],
    ['  a@b.co ', null, 'a@b.co'],
    ['<a@b.co>', null, 'a@b.co'],
    [' < a@b.co > ', null, 'a@b.co'],
    ['"" <a@b.co>', null, 'a@b.co'],
    ['Jane <a@b.co>', 'Jane', 'a@b.co'],
    ['Jane<a@b.co>', 'Jane', 'a@b.co'],
    ['Jane   van der  Merwe   <a@b.co>', 'Jane van der Merwe', 'a@b.co'],
    ['Acme Inc. <a@b.co>', 'Acme Inc.', 'a@b.co'],
    ['J. R. R. Tolkien <a@b.co>', 'J. R. R. Tolkien', 'a@b.co'],
    ["O'Neil & Sons <a@b.co>", "O'Neil & Sons", 'a@b.co'],
    ['Zoë Müller <a@b.co>', 'Zoë Müller', 'a@b.co'],
    ['山田 太郎 🎉 <a@b.co>', '山田 太郎 🎉', 'a@b.co'],
    ['Zoë <zoe@bücher.de>', 'Zoë', 'zoe@xn--bcher-kva.de'],
    ['"Doe, Jane" <a@b.co>', 'Doe, Jane', 'a@b.co'],
    ['"  Doe,   Jane "  <a@b.co>', 'Doe, Jane', 'a@b.co'],
    ['"Jane (Sales) <x@y.z>" <a@b.co>', 'Jane (Sales) <x@y.z>', 'a@b.co'],
    ['"Jane \\"JD\\" Doe \\\\" <a@b.co>', 'Jane "JD" Doe \\', 'a@b.co'],
    ['"Jane" Doe <a@b.co>', 'Jane Doe', 'a@b.co'],
    ['Jane "J, D" Doe <a@b.co>', 'Jane J, D Doe', 'a@b.co'],
    [`${long(989)} <a@b.co>`, long(989), 'a@b.co'],
    [`"${long(980)}" x <a@b.co>`, `${long(980)} x`, 'a@b.co'],
    [`${'"" '.repeat(300)}x <a@b.co>`, 'x', 'a@b.co'],
    [`${'🎉'.repeat(989)} <a@b.co>`, '🎉'.repeat(989), 'a@b.co'],
    [`a@u\u0308.co`, null, 'a@xn--tda.co'],
    [`${long(64)}@b.co`, null, `${long(64)}@b.co`],
    [`a@${long(63)}.co`, null, `a@${long(63)}.co`],
    [`${long(64)}@${domainOf253.slice(64)}`, null, `${long(64)}@${domainOf253.slice(64)}`],
  ]
  for (const [text, name, address] of accepted) {
    const domain = address.slice(address.lastIndexOf('@') + 1)
    t.strictSame(parseAddress(text), { name, address, domain }, JSON.stringify(text))
  }
})

t.test('parseAddress(): refuses other texts with the problem', async (t) => {
  const refused: [text: string, problem: string][] = [
    ['', 'must not be empty'],
    ['   ', 'must not be empty'],
    ['jane', NOT_AN_ADDRESS],
    ['@example.com', NOT_AN_ADDRESS],
    ['jane@', NOT_AN_ADDRESS],
    ['.jane@example.com', NOT_AN_ADDRESS],
    ['jane.@example.com', NOT_AN_ADDRESS],
    ['ja..ne@example.com', NOT_AN_ADDRESS],
    ['ja ne@example.com', NOT_AN_ADDRESS],
    ['jane@doe@example.com', NOT_AN_ADDRESS],
    ['Jane jane@example.com', NOT_AN_ADDRESS],
    ['Jane <jane@example.com', NOT_AN_ADDRESS],
    ['Jane <jane@example.com> Doe', NOT_AN_ADDRESS],
    ['Jane <<jane@example.com>>', NOT_AN_ADDRESS],
    ['Jane <>', NOT_AN_ADDRESS],
    ['.Jane "D" <a@b.co>', NOT_AN_ADDRESS],
    ['<@x.example:a@b.co>', NOT_AN_ADDRESS],
    ['a@b.co\r\nBcc: c@d.co', 'must not contain control characters'],
    ['Jane\r\n Doe <a@b.co>', 'must not contain control characters'],
    ['"Jane\\\nDoe" <a@b.co>', 'must not contain control characters'],
    ['Jane\tDoe <a@b.co>', 'must not contain control characters'],
    ['Jane\0 <a@b.co>', 'must not contain control characters'],
    ['Jane\x7f <a@b.co>', 'must not contain control characters'],
    ['Jane\x85 <a@b.co>', 'must not contain control characters'],
    ['Jane \ud83c <a@b.co>', 'must not contain lone surrogates'],
    ['"\udf89" <a@b.co>', 'must not contain lone surrogates'],
    ['a@b.co, c@d.co', NOT_ONE],
    ['a@b.co,', NOT_ONE],
    ['a@b.co; c@d.co', NOT_ONE],
    ['Jane <a@b.co>, Joe <c@d.co>', NOT_ONE],
    ['a@b.co, Joe <c@d.co>', NOT_ONE],
    ['friends: a@b.co;', NOT_ONE],
    ['friends:;', NOT_ONE],
    ['Doe, Jane <a@b.co>', QUOTE_THE_NAME],
    ['jane@b.co <a@b.co>', QUOTE_THE_NAME],
    ['Re: Jane <a@b.co>', QUOTE_THE_NAME],
    ['Jane \\" <a@b.co>', 'must not have a double quote that is not closed'],
    ['"Jane <a@b.co>', 'must not have a double quote that is not closed'],
    ['"Jane\\" <a@b.co>', 'must not have a double quote that is not closed'],
    ['"Jane\\', 'must not have a double quote that is not closed'],
    ['a@b.co (work)', NO_COMMENTS],
    ['Jane (work) <a@b.co>', NO_COMMENTS],
    ['('.repeat(998), NO_COMMENTS],
    ['"jane"@example.com', 'must not have quotes before the @'],
    ['"a b"@example.com', 'must not have quotes before the @'],
    ['Jane <"a b"@example.com>', 'must not have quotes before the @'],
    ['zoë@example.com', 'must have only ASCII characters before the @'],
    [`${long(65)}@b.co`, 'must have at most 64 characters before the @ but has 65'],
    ['a@[127.0.0.1]', NO_IP],
    ['a@[IPv6:::1]', NO_IP],
    ['a@127.0.0.1', NO_IP],
    ['a@localhost', NOT_A_DOMAIN],
    ['a@example.com.', NOT_A_DOMAIN],
    ['a@.example.com', NOT_A_DOMAIN],
    ['a@example..com', NOT_A_DOMAIN],
    ['a@-example.com', NOT_A_DOMAIN],
    ['a@example-.com', NOT_A_DOMAIN],
    ['a@ex_ample.com', NOT_A_DOMAIN],
    ['a@ex%61mple.com', NOT_A_DOMAIN],
    ['a@bü%61.com', NOT_A_DOMAIN],
    ['a@exa mple.com', NOT_A_DOMAIN],
    ['a@example.123', NOT_A_DOMAIN],
    ['a@example.0x7f', NOT_A_DOMAIN],
    ['a@１２７.0.0.1', NOT_A_DOMAIN],
    [`a@${long(64)}.co`, NOT_A_DOMAIN],
    [`a@${domainOf253}`, 'must be an address of at most 254 characters but has 255'],
    [`a@${domainOf253}z`, 'must have at most 253 characters after the @ but has 254'],
    [`a@${'ü.'.repeat(60)}co`, 'must have at most 253 characters after the @ but has 482'],
    [`${long(990)} <a@b.co>`, 'must be at most 998 characters but has 999'],
    [`${'🎉'.repeat(990)} <a@b.co>`, 'must be at most 998 characters but has 999'],
    [`a@${long(63)}ü.co`, NOT_A_DOMAIN],
  ]
  for (const [text, problem] of refused) {
    t.strictSame(parseAddress(text), { problem }, JSON.stringify(text))
  }
})

t.test('parseBareAddress(): refuses a name and angle brackets', async (t) => {
  t.strictSame(parseBareAddress(' Jane@BÜCHER.de '), {
    name: null,
    address: 'Jane@xn--bcher-kva.de',
    domain: 'xn--bcher-kva.de',
  })
  const NOT_BARE = 'must be a bare email address, as name@example.com'
  for (const [text, problem] of [
    ['Jane <a@b.co>', NOT_BARE],
    ['<a@b.co>', NOT_BARE],
    ['a@b.co>', NOT_BARE],
    ['Jane', NOT_BARE],
    ['a@', NOT_BARE],
    ['Jane a@b.co', NOT_BARE],
    ['', 'must not be empty'],
    ['a@b.co, c@d.co', NOT_ONE],
    ['a@localhost', NOT_A_DOMAIN],
  ] as const) {
    t.strictSame(parseBareAddress(text), { problem }, text)
  }
})

t.test(
  'formatAddress(): quotes a name only where needed and does not change its letters',
  async (t) => {
    const forms: [name: string | null, form: string][] = [
      [null, 'a@b.co'],
      ['', 'a@b.co'],
      ['Jane Doe', 'Jane Doe <a@b.co>'],
      ['Zoë 山田 🎉', 'Zoë 山田 🎉 <a@b.co>'],
      ['Doe, Jane', '"Doe, Jane" <a@b.co>'],
      ['Acme Inc.', '"Acme Inc." <a@b.co>'],
      ['Jane "JD" \\ Doe', '"Jane \\"JD\\" \\\\ Doe" <a@b.co>'],
      ['x@y.z', '"x@y.z" <a@b.co>'],
      ['Jane\u00a0Doe', '"Jane\u00a0Doe" <a@b.co>'],
    ]
    for (const [name, form] of forms) t.equal(formatAddress({ name, address: 'a@b.co' }), form)
  },
)

const oneOf = (characters: string) => fc.constantFrom(...characters)
const atom = fc.string({ unit: oneOf("abzAZ09!#$%&'*+-/=?^_`{|}~"), minLength: 1, maxLength: 12 })
const local = fc.array(atom, { minLength: 1, maxLength: 4 }).map((atoms) => atoms.join('.'))
const label = fc.stringMatching(/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,20}[A-Za-z0-9])?$/)
const domain = fc
  .tuple(fc.array(label, { minLength: 1, maxLength: 3 }), fc.stringMatching(/^[A-Za-z]{2,6}$/))
  .map(([labels, top]) => [...labels, top].join('.'))
  .filter((domain) => !/(?:^|\.)xn--/i.test(domain))
const spec = fc.tuple(local, domain).map((parts) => parts.join('@'))
const word = fc.string({
  unit: oneOf("abzAZ09!'&.-éß山🎉\u00a0\u3000"),
  minLength: 1,
  maxLength: 8,
})
const phrase = fc
  .array(word, { minLength: 1, maxLength: 4 })
  .map((words) => words.join(' '))
  .filter((phrase) => !phrase.startsWith('.'))
const quoted = fc
  .string({ unit: oneOf('ab ,;:@<>()[].é山🎉"\\\u00a0'), maxLength: 12 })
  .map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`)
const named = fc
  .tuple(fc.oneof(phrase, quoted, fc.constant('')), fc.constantFrom('', ' ', '  '), spec)
  .map(([name, space, address]) => (name === '' ? `<${address}>` : `${name}${space}<${address}>`))
const ordinary = fc.oneof(spec, named)
const twisted = fc
  .tuple(
    fc.oneof(ordinary, fc.constant('Zoë <a@bücher.de>'), fc.constant('"J, D" van "M" <a@b.co>')),
    fc.array(fc.tuple(fc.nat(), fc.nat(3), oneOf('a. @<>",;:()[]\\éü山\u00a0\t\n\0-_%'))),
  )
  .map(([text, edits]) =>
    edits.reduce((text, [place, cut, character]) => {
      const at = place % (text.length + 1)
      return text.slice(0, at) + character + text.slice(at + cut)
    }, text),
  )

// The result of the library for the whole text: the most that parseAddress may accept.
function readByLibrary(text: string) {
  const parsed = emailAddresses.parseOneAddress({ input: text, rfc6532: true })
  if (parsed?.type !== 'mailbox') return null
  const domain = domainToASCII(parsed.domain)
  return { name: parsed.name || null, address: `${parsed.local.trim()}@${domain}`, domain }
}

t.test('parseAddress(): accepts ordinary forms with the same result as the library', async () => {
  fc.assert(
    fc.property(ordinary, (text) => {
      assert.deepEqual(parseAddress(text), readByLibrary(text))
    }),
    { numRuns: 2000 },
  )
})

const mixed = fc
  .tuple(fc.array(fc.oneof(phrase, quoted, word), { maxLength: 8 }), oneOf(' '), spec)
  .map(([words, space, address]) => `${words.join(space)}<${address}>`)
const withoutSpaces = (name: string | null | undefined) => name?.replaceAll(' ', '') || null

t.test(
  'a name of quoted and plain words is accepted exactly when the library accepts it',
  async () => {
    fc.assert(
      fc.property(mixed, (text) => {
        const parsed = parseAddress(text)
        const read = readByLibrary(text)
        assert.equal('problem' in parsed, read === null)
        if ('problem' in parsed) return
        // The library loses the space between a quoted word and the next.
        assert.equal(withoutSpaces(parsed.name), withoutSpaces(read?.name))
        assert.deepEqual([parsed.address, parsed.domain], [read?.address, read?.domain])
      }),
      { numRuns: 1000 },
    )
  },
)

t.test('parseAddress(): the fast path has the same result as the slow one', async () => {
  fc.assert(
    fc.property(ordinary, (text) => {
      // Texts with spaces around them are not ordinary.
      assert.deepEqual(parseAddress(text), parseAddress(` ${text} `))
    }),
    { numRuns: 2000 },
  )
})

t.test('parseAddress(): accepts only what the library accepts as the same mailbox', async () => {
  fc.assert(
    fc.property(fc.oneof(twisted, fc.string({ unit: anyCharacter, maxLength: 40 })), (text) => {
      const parsed = parseAddress(text)
      if ('problem' in parsed) return
      const read = readByLibrary(text)
      // The library loses the space between a quoted word and the next.
      assert.equal(withoutSpaces(parsed.name), withoutSpaces(read?.name))
      assert.deepEqual([parsed.address, parsed.domain], [read?.address, read?.domain])
    }),
    { numRuns: 5000 },
  )
})

t.test('formatAddress(): parses back to the same mailbox', async () => {
  fc.assert(
    fc.property(fc.oneof(ordinary, twisted), (text) => {
      const parsed = parseAddress(text)
      if (!('problem' in parsed)) assert.deepEqual(parseAddress(formatAddress(parsed)), parsed)
    }),
    { numRuns: 5000 },
  )
})

t.test('parseAddress(): returns for any text, and accepts no control character', async () => {
  fc.assert(
    fc.property(fc.oneof(twisted, fc.string({ unit: anyCharacter })), (text) => {
      const parsed = parseAddress(text)
      if ('problem' in parsed) return assert.match(parsed.problem, /^(?:must|a name) /)
      const form = formatAddress(parsed)
      assert.ok(form.isWellFormed() && !/\p{Cc}/u.test(form))
    }),
    { numRuns: 5000 },
  )
})
