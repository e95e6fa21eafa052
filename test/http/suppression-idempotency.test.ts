import t from 'tap'
import { createDatabase, meetAt } from '../fixtures/database.ts'
import { type Answer, anEmail, isRefused, post, request } from '../fixtures/http.ts'
import { createOrganisation, listOf, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const emails = `${base}/v1/emails`
const suppressions = `${base}/v1/suppressions`

const withKey = (key: string) => ({ 'Idempotency-Key': key })
const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true'

const keysOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select count(*)::integer as count from app.idempotency_keys
    where organisation_id = core.decode_id('org', ${id})`
  return row?.count
}

t.test('suppressions: a repeated addition gets the same status and bytes', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey } = organisation
  const body = { email: 'ann@c.example', note: 'Grüße "\\\t" 💌' }
  const first = await post(suppressions, liveKey, body, withKey('a'))
  const second = await post(suppressions, liveKey, body, withKey('b'))
  t.strictSame([first.status, second.status], [201, 200])
  t.notOk(isReplay(first) || isReplay(second))
  for (const [key, response] of [
    ['a', first],
    ['b', second],
  ] as const) {
    const again = await post(suppressions, liveKey, body, withKey(key))
    t.strictSame(
      [again.status, again.text, isReplay(again)],
      [response.status, response.text, true],
    )
  }
  t.equal(await keysOf(organisation), 2)
})

t.test('suppressions: a replay after the deletion does not recreate the entry', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey } = organisation
  const add = () => post(suppressions, liveKey, { email: 'ann@c.example' }, withKey('a'))
  const first = await add()
  await request('DELETE', `${suppressions}/${first.json.id}`, liveKey)
  const again = await add()
  t.strictSame([again.status, again.text, isReplay(again)], [201, first.text, true])
  t.strictSame(await listOf(sql, organisation), [])
})

t.test('suppressions: without an Idempotency-Key no response is stored', async (t) => {
  const organisation = await createOrganisation(sql)
  await post(suppressions, organisation.liveKey, { email: 'ann@c.example' })
  t.equal(await keysOf(organisation), 0)
})

t.test('suppressions: a key with another body or endpoint is a conflict', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const body = { email: 'ann@c.example' }
  await post(suppressions, liveKey, body, withKey('ours'))
  await post(emails, liveKey, anEmail(domain), withKey('theirs'))
  for (const [path, other, key] of [
    [suppressions, { ...body, note: '' }, 'ours'],
    [suppressions, `${JSON.stringify(body)} `, 'ours'],
    [emails, anEmail(domain), 'ours'],
    [`${emails}/batch`, { emails: [anEmail(domain)] }, 'ours'],
    [suppressions, body, 'theirs'],
    [suppressions, { email: 'bob@c.example' }, 'theirs'],
  ] as const) {
    isRefused(t, await post(path, liveKey, other, withKey(key)), 'idempotency_conflict')
  }
  t.equal((await listOf(sql, organisation)).length, 1)
  t.equal(await keysOf(organisation), 2)
  t.ok(isReplay(await post(suppressions, liveKey, body, withKey('ours'))))
  t.ok(isReplay(await post(emails, liveKey, anEmail(domain), withKey('theirs'))))
})

t.test('suppressions: a key is valid for one organisation, one mode and 24 hours', async (t) => {
  const one = await createOrganisation(sql)
  const two = await createOrganisation(sql)
  const add = (key: string) => post(suppressions, key, { email: 'ann@c.example' }, withKey('a'))
  const responses = [await add(one.liveKey), await add(one.testKey), await add(two.liveKey)]
  t.strictSame(
    responses.map((response) => [response.status, isReplay(response)]),
    [
      [201, false],
      [200, false],
      [201, false],
    ],
  )
  const age = (by: string) => sql`
    update app.idempotency_keys set created_at = created_at - ${by}::interval
    where organisation_id = core.decode_id('org', ${one.id})`
  await age('23 hours 59 minutes')
  t.ok(isReplay(await add(one.liveKey)))
  await age('2 minutes')
  const later = await add(one.liveKey)
  t.strictSame([later.status, isReplay(later)], [200, false])
})

t.test('suppressions: a replay is returned while the organisation is paused', async (t) => {
  const { id, liveKey } = await createOrganisation(sql)
  const add = () => post(suppressions, liveKey, { email: 'ann@c.example' }, withKey('a'))
  const first = await add()
  await sql`select ops.pause(${id}, 'complaints')`
  const again = await add()
  t.strictSame([again.status, again.text, isReplay(again)], [201, first.text, true])
})

t.test('suppressions: of 64 concurrent uses of a key one adds and 63 are replays', async (t) => {
  const organisation = await createOrganisation(sql)
  const responses = await Promise.all(
    Array.from({ length: 64 }, () =>
      post(suppressions, organisation.liveKey, { email: 'ann@c.example' }, withKey('a')),
    ),
  )
  t.ok(responses.every(({ status }) => status === 201))
  t.equal(new Set(responses.map(({ text }) => text)).size, 1)
  t.equal(responses.filter(isReplay).length, 63)
  t.equal(await keysOf(organisation), 1)
})

t.test(
  'suppressions: of two concurrent bodies or endpoints with one key one is refused',
  async (t) => {
    for (const other of [
      (organisation: TestOrganisation) =>
        post(suppressions, organisation.liveKey, { email: 'bob@c.example' }, withKey('a')),
      (organisation: TestOrganisation) =>
        post(emails, organisation.liveKey, anEmail(organisation.domain), withKey('a')),
    ]) {
      for (let round = 0; round < 5; round++) {
        const organisation = await createOrganisation(sql)
        const responses = await meetAt(sql, organisation, 2, () =>
          Promise.all([
            post(suppressions, organisation.liveKey, { email: 'ann@c.example' }, withKey('a')),
            other(organisation),
          ]),
        )
        const [winner, loser] = responses.toSorted((a, b) => a.status - b.status)
        t.ok(winner && winner.status < 300)
        isRefused(t, loser as Answer, 'idempotency_conflict')
        t.equal(await keysOf(organisation), 1)
      }
    }
  },
)

t.test('a transaction that begins first and gets the key second replays', async (t) => {
  const organisation = await createOrganisation(sql)
  const add = (tx: typeof sql) => tx<{ status: number; replayed: boolean; body: string }[]>`
    select * from api.add_suppression(core.decode_id('org', ${organisation.id}), 'live', 'print',
      'ann@c.example', 'manual', '', 'caller:a')`
  await sql.begin(async (early) => {
    // From here on the clock of this transaction stands still.
    await early`select now()`
    const [late] = await add(sql)
    const [again] = await add(early as unknown as typeof sql)
    t.match([late, again], [{ replayed: false }, { replayed: true, body: late?.body }])
  })
})
