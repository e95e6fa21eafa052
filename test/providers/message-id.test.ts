import { randomUUID } from 'node:crypto'
import t from 'tap'
import { messageIdOf, readMessageId } from '../../src/providers/message-id.ts'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

const HOST = 'mail.sender.example'
const idOf = (id: string, copy: number | null = null) =>
  messageIdOf({ id, copy, mailFromDomain: HOST })

/** UUIDs of all kinds: random ones, each single bit, and the ends. */
const uuids = [
  ...Array.from({ length: 5000 }, () => randomUUID()),
  ...Array.from({ length: 128 }, (_, bit) => uuidOf(1n << BigInt(bit))),
  uuidOf(0n),
  uuidOf((1n << 128n) - 1n),
]

function uuidOf(value: bigint): string {
  const hex = value.toString(16).padStart(32, '0')
  return [0, 8, 12, 16, 20].map((at, n) => hex.slice(at, [8, 12, 16, 20, 32][n])).join('-')
}

t.test('messageIdOf(): the id as the database writes it, at the MAIL FROM host', async (t) => {
  const rows = await sql<{ id: string }[]>`
    select core.encode_id('em', u.id) as id
    from unnest(${uuids}::uuid[]) with ordinality as u (id, place)
    order by u.place`
  t.same(
    uuids.map((uuid) => idOf(uuid)),
    rows.map(({ id }) => `${id}@${HOST}`),
  )
})

t.test('readMessageId(): reads ids as the database does, with or without brackets', async (t) => {
  const ids = uuids.map((uuid) => idOf(uuid))
  const rows = await sql<{ id: string }[]>`
    select core.decode_id('em', split_part(m.id, '@', 1)) as id
    from unnest(${ids}::text[]) with ordinality as m (id, place)
    order by m.place`
  t.same(ids.map(readMessageId), uuids)
  t.same(
    ids.map((id) => readMessageId(`<${id}>`)),
    rows.map(({ id }) => id),
  )
})

t.test('messageIdOf(): each copy has its own Message-ID for the same email', async (t) => {
  const uuid = randomUUID()
  const copies = Array.from({ length: 50 }, (_, n) => idOf(uuid, n + 1))
  t.equal(new Set([...copies, idOf(uuid)]).size, 51)
  t.match(copies, [/^em_\w{26}\.1@/, /^em_\w{26}\.2@/])
  for (const copy of copies) t.equal(readMessageId(copy), uuid)
  t.equal(readMessageId(`<${copies[49]}>`), uuid)
})

t.test('readMessageId(): a foreign Message-ID is undefined', async (t) => {
  const [name = ''] = idOf(randomUUID()).split('@')
  const digits = name.slice(3)
  const foreign = [
    '',
    '<>',
    '@',
    '<20261120.1234@mail.sender.example>',
    'CAF+abc=123@mail.gmail.com',
    name,
    `${name}@`,
    `@${HOST}`,
    `sm_${digits}@${HOST}`,
    `EM_${digits}@${HOST}`,
    `em_${digits.toUpperCase()}@${HOST}`,
    `em_8${digits.slice(1)}@${HOST}`,
    `em_${digits.slice(1)}@${HOST}`,
    `em_${digits}0@${HOST}`,
    ...['i', 'l', 'o', 'u', '-', '٣'].map((letter) => `em_${digits.slice(1)}${letter}@${HOST}`),
    `${name}.@${HOST}`,
    `${name}.100@${HOST}`,
    `${name}.1.2@${HOST}`,
    `${name}.x@${HOST}`,
    `${name}.-1@${HOST}`,
    `${name}@${HOST}@elsewhere.example`,
    `${name}@${HOST} ${name}@${HOST}`,
    `<${name}@${HOST}> (comment)`,
    ` ${name}@${HOST}`,
    `${name}@${HOST}\n`,
    `<${name}@${HOST}>\r\nBcc: x`,
    `<<${name}@${HOST}>>`,
    `x${name}@${HOST}`,
    `<x.${name}@${HOST}>`,
  ]
  for (const messageId of foreign) {
    t.equal(readMessageId(messageId), undefined, JSON.stringify(messageId))
  }
})

t.test('readMessageId(): a long malformed id is refused in linear time', async (t) => {
  const long = 'a'.repeat(10_000_000)
  const [name = ''] = idOf(randomUUID()).split('@')
  for (const messageId of [
    long,
    `<${long}>`,
    `em_${long}@${HOST}`,
    `${name}.${'1'.repeat(1_000_000)}@${HOST}`,
    `${name}@${long} `,
    `${name}@${'>'.repeat(1_000_000)}`,
    '<'.repeat(1_000_000),
    '@'.repeat(1_000_000),
  ]) {
    t.equal(readMessageId(messageId), undefined)
  }
})
