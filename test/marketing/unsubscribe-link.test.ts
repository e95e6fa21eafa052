import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createUnsubscribeLinks } from '../../src/marketing/unsubscribe-link.ts'

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const linksOf = (...keys: number[]) =>
  createUnsubscribeLinks({ secrets: createSecrets(keys.map(keyOf)), publicUrl: 'https://p.test' })

const links = linksOf(1)
const one = (email = 'ann@example.com') => ({
  organisationId: randomUUID(),
  messageId: randomUUID(),
  email,
})
const tokenOf = (url: string) => url.slice('https://p.test/u/'.length)

t.test('read(): returns recipient, organisation and message of a link', async (t) => {
  for (const of of [
    one(),
    one('a@b'),
    one(`${'x'.repeat(64)}@${'y'.repeat(185)}.com`),
    one('zoë@bücher.example'),
    { ...one(), organisationId: '00000000-0000-0000-0000-000000000000' },
    { ...one(), messageId: 'ffffffff-ffff-ffff-ffff-ffffffffffff' },
  ]) {
    const url = links.url(of)
    t.match(url, /^https:\/\/p\.test\/u\/[\w-]+\.[\w-]{43}$/)
    t.ok(url.length < 500, 'short enough for a line of a header')
    t.strictSame(links.read(tokenOf(url)), of)
  }
})

t.test('url(): a recipient always has the same link, and no other has it', async (t) => {
  const of = one()
  t.equal(links.url(of), links.url(of))
  const others = [
    { ...of, email: 'anne@example.com' },
    { ...of, messageId: randomUUID() },
    { ...of, organisationId: randomUUID() },
  ]
  t.equal(new Set([of, ...others].map(links.url)).size, 4)
})

t.test('read(): a link is valid while its key is listed', async (t) => {
  const of = one()
  const token = tokenOf(linksOf(1).url(of))
  t.strictSame(linksOf(1).read(token), of)
  t.strictSame(linksOf(2, 1).read(token), of)
  t.strictSame(linksOf(3, 2, 1).read(token), of)
  t.equal(linksOf(2).read(token), undefined)
  t.not(tokenOf(linksOf(2, 1).url(of)), token, 'new ones are signed with the new key')
})

t.test('read(): a token with any change is undefined', async (t) => {
  const token = tokenOf(links.url(one()))
  const changes = [...token].flatMap((_, place) =>
    [...'Ab7_.%/+=é\0'].map((one) => token.slice(0, place) + one + token.slice(place + 1)),
  )
  t.same(new Set(changes.filter(links.read)), new Set([token]), 'where nothing was changed')
  for (const changed of [
    '',
    '.',
    token.slice(0, -1),
    token.slice(1),
    `${token}A`,
    `${token}=`,
    ` ${token}`,
    `${token}\n`,
    token.replace('.', ''),
    `${token}.${token}`,
    token.toUpperCase(),
    token.split('.').reverse().join('.'),
    'A'.repeat(100_000),
    `${'A'.repeat(100_000)}.${'A'.repeat(43)}`,
  ]) {
    t.equal(links.read(changed), undefined)
  }
})

t.test('read(): a signature for another purpose is undefined', async (t) => {
  const bytes = Buffer.from(`${'\0'.repeat(32)}ann@example.com`)
  const signature = createSecrets([keyOf(1)]).sign(bytes)
  const token = `${bytes.toString('base64url')}.${signature.toString('base64url')}`
  t.equal(links.read(token), undefined)
})
