import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { type Answer, get, isRefused, post } from '../fixtures/http.ts'
import { messageOf, send } from '../fixtures/messages.ts'
import {
  createOrganisation,
  liftRate,
  suppress,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const suppressions = `${base}/v1/suppressions`

type Entry = { id: string; email: string }

const list = ({ liveKey }: TestOrganisation, query: Record<string, string> = {}) =>
  get(`${suppressions}?${new URLSearchParams(query)}`, liveKey)

const emailsOf = ({ json }: Answer): string[] => json.data.map(({ email }: Entry) => email)

/** Suppresses addresses a0@, a1@ …, the last one newest, each in a different millisecond. */
const fill = ({ id }: TestOrganisation, count: number) => sql`
  insert into app.suppressions (id, organisation_id, email, reason)
  select core.new_id(now() - make_interval(secs => (${count}::integer - n) / 1000.0)),
    core.decode_id('org', ${id}), 'a' || n || '@c.example', 'manual'
  from generate_series(0, ${count}::integer - 1) n`

const newestFirst = (count: number) =>
  Array.from({ length: count }, (_, n) => `a${count - 1 - n}@c.example`)

/** Returns all pages, and runs `between` before each further one. */
async function walk(
  organisation: TestOrganisation,
  query: Record<string, string>,
  between: () => Promise<unknown> = async () => undefined,
) {
  const pages: Answer[] = []
  let cursor: string | null | undefined
  do {
    const [page] = await Promise.all([
      list(organisation, cursor ? { ...query, cursor } : query),
      between(),
    ])
    pages.push(page)
    cursor = page.json.nextCursor
  } while (cursor)
  return pages
}

t.test('GET /v1/suppressions: an empty list is one empty page', async (t) => {
  const { status, text } = await list(await createOrganisation(sql))
  t.strictSame([status, text], [200, '{"data":[],"nextCursor":null}'])
})

t.test('GET /v1/suppressions: limit is 1 to 200 and defaults to 50', async (t) => {
  const organisation = await createOrganisation(sql)
  await fill(organisation, 201)
  for (const [limit, length] of [
    [undefined, 50],
    ['1', 1],
    ['50', 50],
    ['200', 200],
  ] as const) {
    const response = await list(organisation, limit ? { limit } : {})
    t.strictSame(emailsOf(response), newestFirst(201).slice(0, length))
    t.match(response.json.nextCursor, String)
  }
})

t.test(
  'GET /v1/suppressions: the pages are the list, newest first, and the last has no cursor',
  async (t) => {
    for (const [count, limit, sizes] of [
      [20, 7, [7, 7, 6]],
      [21, 7, [7, 7, 7]],
      [22, 7, [7, 7, 7, 1]],
      [3, 1, [1, 1, 1]],
      [7, 7, [7]],
    ] as const) {
      const organisation = await createOrganisation(sql)
      await fill(organisation, count)
      const pages = await walk(organisation, { limit: String(limit) })
      t.strictSame(
        pages.map(({ json }) => json.data.length),
        sizes,
        `${count} by ${limit}`,
      )
      t.strictSame(pages.flatMap(emailsOf), newestFirst(count))
    }
  },
)

t.test('GET /v1/suppressions: entries of the same millisecond are each on one page', async (t) => {
  const organisation = await createOrganisation(sql)
  await sql`
    insert into app.suppressions (id, organisation_id, email, reason)
    select core.new_id('2026-01-01'), core.decode_id('org', ${organisation.id}), 'a' || n || '@c.example', 'manual'
    from generate_series(0, 40) n`
  const emails = (await walk(organisation, { limit: '3' })).flatMap(emailsOf)
  t.strictSame(emails.toSorted(), newestFirst(41).toSorted())
})

t.test(
  'GET /v1/suppressions: no entry is skipped or repeated while others are added and deleted',
  async (t) => {
    const organisation = await createOrganisation(sql)
    await liftRate(sql, organisation)
    await fill(organisation, 60)
    let made = 0
    const between = async () => {
      const responses = await Promise.all(
        Array.from({ length: 5 }, () =>
          post(suppressions, organisation.liveKey, { email: `a-new-${made++}@c.example` }),
        ),
      )
      if (responses.some(({ status }) => status !== 201)) throw new Error('not added')
      // Old entries that were not shown yet are deleted as well.
      if (made === 10) {
        await sql`
        delete from app.suppressions
        where organisation_id = core.decode_id('org', ${organisation.id})
          and email in ('a0@c.example', 'a1@c.example')`
      }
    }
    for (const query of [{ limit: '7' }, { limit: '7', email: 'C.EXAMPLE' }]) {
      const shown = (await walk(organisation, query, between)).flatMap(emailsOf)
      t.equal(new Set(shown).size, shown.length, 'no entry is shown twice')
      t.strictSame(
        shown.filter((email) => !email.startsWith('a-new-')),
        newestFirst(60).slice(0, -2),
      )
    }
    t.ok(made > 60)
  },
)

t.test('GET /v1/suppressions: a cursor works after its entry is deleted', async (t) => {
  const organisation = await createOrganisation(sql)
  await fill(organisation, 6)
  const first = await list(organisation, { limit: '2' })
  await sql`
    delete from app.suppressions where organisation_id = core.decode_id('org', ${organisation.id})
      and email in ('a4@c.example', 'a3@c.example')`
  const second = await list(organisation, { limit: '2', cursor: first.json.nextCursor })
  t.strictSame(emailsOf(second), ['a2@c.example', 'a1@c.example'])
})

t.test('GET /v1/suppressions: email finds any part of an address in any case', async (t) => {
  const organisation = await createOrganisation(sql)
  const emails = [
    'ann@c.example',
    'joann@c.example',
    'a_n@c.example',
    'a%n@c.example',
    "o'brien+tag@corp.example",
    'x@xn--bcher-kva.example',
  ]
  for (const email of emails) await suppress(sql, organisation, email)
  for (const [part, found] of [
    ['', emails],
    ['ann', ['ann@c.example', 'joann@c.example']],
    ['ANN@C', ['ann@c.example', 'joann@c.example']],
    ['joann@c.example', ['joann@c.example']],
    ['a_n', ['a_n@c.example']],
    ['a%n', ['a%n@c.example']],
    ['%', ['a%n@c.example']],
    ['_', ['a_n@c.example']],
    ['\\', []],
    ['a\\_n', []],
    ["o'b", ["o'brien+tag@corp.example"]],
    ['+', ["o'brien+tag@corp.example"]],
    ['.example', emails],
    ['@', emails],
    ['bcher', ['x@xn--bcher-kva.example']],
    ['bücher', ['x@xn--bcher-kva.example']],
    ['x@BÜCHER.example', ['x@xn--bcher-kva.example']],
    ['.bücher', []],
    ['büch', []],
    ['example ', []],
    ['$', []],
    ['.*', []],
    ['\u{1F48C}', []],
  ] as const) {
    const response = await list(organisation, { email: part })
    t.strictSame(emailsOf(response).toSorted(), [...found].sort(), part)
    t.equal(response.json.nextCursor, null)
  }
})

t.test(
  'GET /v1/suppressions: lists the entries of the organisation with live and test keys',
  async (t) => {
    const one = await createOrganisation(sql)
    const two = await createOrganisation(sql)
    await suppress(sql, one, 'ann@c.example')
    await suppress(sql, two, 'bob@c.example')
    await sql`select ops.suppress_globally('gone@c.example')`
    for (const key of [one.liveKey, one.testKey]) {
      t.strictSame(emailsOf(await get(suppressions, key)), ['ann@c.example'])
    }
    const { json } = await list(two, { cursor: 'cur_7zzzzzzzzzzzzzzzzzzzzzzzzz' })
    t.strictSame(
      json.data.map(({ email }: Entry) => email),
      ['bob@c.example'],
      'also with a cursor that no page returned',
    )
  },
)

t.test(
  'GET /v1/suppressions: an automatic entry has the message ID and the diagnostic',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const id = await send(base, organisation, { to: ['Absent@c.example', 'cross@c.example'] })
    const message = { message_id: (await messageOf(sql, id)).id, occurred_at: new Date() }
    await sql`select api.finish_poll(${sql.json([
      {
        ...message,
        provider_event_id: '1',
        type: 'bounced',
        recipient: 'absent@c.example',
        text: '550 5.1.1 no such user',
        is_hard: true,
      },
      {
        ...message,
        provider_event_id: '2',
        type: 'complained',
        recipient: 'cross@c.example',
      },
    ] as never)})`
    const { json } = await list(organisation)
    t.match(
      json.data.toSorted((a: Entry, b: Entry) => (a.email < b.email ? -1 : 1)),
      [
        {
          email: 'absent@c.example',
          reason: 'hard_bounce',
          messageId: id,
          note: '550 5.1.1 no such user',
        },
        { email: 'cross@c.example', reason: 'complaint', messageId: id, note: '' },
      ],
    )
  },
)

t.test('GET /v1/suppressions: reports all wrong, unknown and repeated parameters', async (t) => {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  const limit = ['must be a number from 1 to 200']
  const cursor = ['must be the nextCursor of an earlier page']
  const once = ['must be given once']
  const unknown = ['unknown field']
  const wrong: [query: string, fields: Record<string, string[]>][] = [
    ...[
      '',
      '0',
      '201',
      '-1',
      '1.5',
      '1e2',
      ' 1',
      '+1',
      '0x10',
      'all',
      '1000000000000',
      '\u0661',
    ].map((value): [string, Record<string, string[]>] => [
      `limit=${encodeURIComponent(value)}`,
      { limit },
    ]),
    ...[
      '',
      'cur_',
      '1',
      'cur_8zzzzzzzzzzzzzzzzzzzzzzzzz',
      'sup_01h455vb4pex5vsknk084sn02q',
      'cur_01h455vb4pex5vsknk084sn02q\n',
      'cur_01h455vb4pex5vsknk084sn02ü',
      'CUR_01h455vb4pex5vsknk084sn02q',
      `cur_${'0'.repeat(5000)}`,
    ].map((value): [string, Record<string, string[]>] => [
      `cursor=${encodeURIComponent(value)}`,
      { cursor },
    ]),
    ['email=%00', { email: ['must not contain NUL characters'] }],
    [`email=${'x'.repeat(255)}`, { email: ['must be at most 254 characters but has 255'] }],
    ['email=a&email=b', { email: once }],
    ['limit=1&limit=1', { limit }],
    ['cursor=a&cursor=b', { cursor: once }],
    ['page=2', { page: unknown }],
    ['email%00=a', { 'email\uFFFD': unknown }],
    ['limit=0&cursor=x&offset=1&email[]=a', { limit, cursor, offset: unknown, 'email[]': unknown }],
  ]
  for (const [query, fields] of wrong) {
    const response = await get(`${suppressions}?${query}`, organisation.liveKey)
    isRefused(t, response, 'validation_error', fields, { name: query.slice(0, 80) })
  }
  const { text } = await get(`${suppressions}?__proto__=a&constructor=b`, organisation.liveKey)
  t.match(text, '{"__proto__":["unknown field"],"constructor":["unknown field"]}')
})

t.test('GET /v1/suppressions: odd encodings of a query never cause a 500', async (t) => {
  const organisation = await createOrganisation(sql)
  await suppress(sql, organisation, 'ann@c.example')
  for (const [query, found] of [
    ['email=%61nn', 1],
    ['email=%', 0],
    ['email=%zz', 0],
    ['email=%ff%fe', 0],
    ['email=%ED%A0%80', 0],
    ['email=%F0%9F%92%A9', 0],
    ['&&', 1],
    ['', 1],
  ] as const) {
    const response = await get(`${suppressions}?${query}`, organisation.liveKey)
    t.strictSame([response.status, response.json.data?.length], [200, found], query)
  }
})
