import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { createDatabase, rolledBack } from '../fixtures/database.ts'

const { sql } = await createDatabase()

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** Crockford's base32 of a UUID as TypeID writes it: 128 bits behind two zero bits. */
function base32(uuid: string): string {
  let bits = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let text = ''
  for (let place = 0; place < 26; place += 1) {
    text = ALPHABET[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return text
}

const encode = async (uuids: string[]) => {
  const rows = await sql<{ id: string }[]>`
    select core.encode_id('em', i.id) as id
    from unnest(${uuids}::uuid[]) with ordinality i (id, place) order by place`
  return rows.map(({ id }) => id)
}
const decode = async (ids: (string | null)[], prefix = 'em') => {
  const rows = await sql<{ uuid: string | null }[]>`
    select core.decode_id(${prefix}, i.id) as uuid
    from unnest(${ids}::text[]) with ordinality i (id, place) order by place`
  return rows.map(({ uuid }) => uuid)
}

const anyUuid = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) =>
  Buffer.from(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
)

t.test('encode_id: returns prefix and base32 for any UUID', async (t) => {
  const corners = [
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '80000000-0000-0000-0000-000000000001',
    '01890a5d-ac96-774b-bcce-b302099a8057',
  ]
  const made = Array.from({ length: 5000 }, () => randomUUID())
  const uuids = [...corners, ...made]
  const ids = await encode(uuids)
  t.same(
    ids,
    uuids.map((uuid) => `em_${base32(uuid)}`),
  )
  t.same(await decode(ids), uuids)
  // The example of the TypeID specification.
  t.equal(ids[3], 'em_01h455vb4pex5vsknk084sn02q')
})

t.test('decode_id: reverses encode_id for any bits', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyUuid, { minLength: 1, maxLength: 200 }), async (uuids) => {
      const ids = await encode(uuids)
      const decoded = await decode(ids)
      uuids.forEach((uuid, place) => {
        if (ids[place] !== `em_${base32(uuid)}`) throw new Error(`${uuid} became ${ids[place]}`)
        if (decoded[place] !== uuid) throw new Error(`${ids[place]} became ${decoded[place]}`)
      })
    }),
    { numRuns: 50 },
  )
})

t.test('decode_id: returns null for any other text', async (t) => {
  const good = `em_${base32(randomUUID())}`
  const rest = good.slice(3)
  const bad = [
    null,
    '',
    'em_',
    rest,
    `sm_${rest}`,
    `em${rest}`,
    `em-${rest}`,
    `EM_${rest}`,
    `xem_${rest}`,
    ` ${good}`,
    `${good} `,
    `${good}\n`,
    `\n${good}`,
    `${good}0`,
    good.slice(0, -1),
    good.toUpperCase(),
    // More than 128 bits.
    `em_8${rest.slice(1)}`,
    `em_z${rest.slice(1)}`,
    // Letters that Crockford leaves out, and others.
    ...['i', 'l', 'o', 'u', 'A', '-', 'é', '?'].map((letter) => `em_${rest.slice(0, -1)}${letter}`),
    'em_'.padEnd(29, '\u{1F642}'),
    `em_${randomUUID()}`,
    'em_'.padEnd(1_000_000, '0'),
  ]
  t.strictSame(
    await decode(bad),
    bad.map(() => null),
  )
  t.strictSame(await decode([good], 'sm'), [null])
})

t.test('decode_id: any text gives null or a UUID that encodes to it', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\0', '')),
    fc.string({
      unit: fc.constantFrom(...ALPHABET, 'i', 'l', 'o', 'u'),
      minLength: 24,
      maxLength: 28,
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 50 }), async (texts) => {
      const ids = texts.map((text) => `em_${text.toWellFormed()}`)
      const uuids = await decode(ids)
      const known = uuids.filter((uuid) => uuid !== null)
      const again = await encode(known)
      const wanted = ids.filter((_, place) => uuids[place] !== null)
      if (again.join() !== wanted.join()) throw new Error(`${wanted} became ${again}`)
    }),
    { numRuns: 50 },
  )
})

t.test('new_id: returns a UUIDv7 of the given time', async (t) => {
  const times = [
    '1970-01-01T00:00:00Z',
    '2024-02-29T23:59:59.999Z',
    '2038-01-19T03:14:08.001Z',
    '2026-11-23T02:36:21.715999Z',
    '9999-12-31T00:00:00Z',
  ]
  for (const time of times) {
    const [row] = await sql<{ id: string }[]>`select core.new_id(${time}::timestamptz) as id`
    const id = String(row?.id)
    t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    t.equal(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16), Date.parse(time), time)
  }
})

t.test('new_id: 10,000 IDs of one time differ in all random bits', async (t) => {
  const rows = await sql<{ id: string }[]>`
    select core.new_id('2024-01-01') as id from generate_series(1, 10000)`
  t.equal(new Set(rows.map(({ id }) => id)).size, 10_000)
  const bits = rows.map(({ id }) => BigInt(`0x${id.replaceAll('-', '')}`))
  const fixed = new Set<number>()
  for (let bit = 0; bit < 128; bit += 1) {
    const set = bits.filter((id) => (id >> BigInt(127 - bit)) & 1n).length
    if (set === 0 || set === bits.length) fixed.add(bit)
  }
  // The time, the version and the variant.
  t.same([...fixed], [...Array.from({ length: 52 }, (_, bit) => bit), 64, 65])
})

t.test('first_id_at: is below all IDs of its time and above all earlier ones', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.date({ min: new Date(1), max: new Date('9000-01-01'), noInvalidDate: true }),
      async (at) => {
        const [row] = await sql`
        select core.first_id_at(${at}) <= core.new_id(${at}) and core.first_id_at(${at}) <= core.new_id(${at})
          and core.first_id_at(${at}) > core.new_id(${at}::timestamptz - interval '1 millisecond') as holds`
        if (!row?.holds) throw new Error(`not for ${at.toISOString()}`)
      },
    ),
    { numRuns: 200 },
  )
  const [row] = await sql`select core.first_id_at('1970-01-01T00:00:00Z') as id`
  t.equal(row?.id, '00000000-0000-0000-0000-000000000000')
})

t.test('new_id: IDs sort by time, as UUIDs and as text', async (t) => {
  await rolledBack(sql, async (tx) => {
    const [row] = await tx`
      with made as (
        select s, core.new_id('2024-01-01'::timestamptz + s * interval '1 millisecond') as id
        from generate_series(1, 1000) s
      )
      select array_agg(s order by id) = array_agg(s order by s) as as_uuids,
        array_agg(s order by core.encode_id('em', id) collate "C") = array_agg(s order by s) as as_text
      from made`
    t.same(row, { asUuids: true, asText: true })
  })
})
