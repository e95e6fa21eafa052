import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { type Answer, anEmail, post, request } from '../fixtures/http.ts'
import { meetAt } from '../fixtures/meet.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { listOf } from '../fixtures/suppressions.ts'

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

t.test('a repeated addition is answered byte for byte, status and all', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey } = organisation
  const body = { email: 'ann@c.example', note: 'Grüße "\\\t" 💌' }
  const first = await post(suppressions, liveKey, body, withKey('a'))
  const second = await post(suppressions, liveKey, body, withKey('b'))
  t.strictSame([first.status, second.status], [201, 200])
  t.notOk(isReplay(first) || isReplay(second))
  for (const [key, answer] of [
    ['a', first],
    ['b', second],
  ] as const) {
    const again = await post(suppressions, liveKey, body, withKey(key))
    t.strictSame([again.status, again.text, isReplay(again)], [answer.status, answer.text, true])
  }
  t.equal(await keysOf(organisation), 2)
})

t.test('it is replayed when the entry is gone, and does not bring it back', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey } = organisation
  const add = () => post(suppressions, liveKey, { email: 'ann@c.example' }, withKey('a'))
  const first = await add()
  await request('DELETE', `${suppressions}/${first.json.id}`, liveKey)
  const again = await add()
  t.strictSame([again.status, again.text, isReplay(again)], [201, first.text, true])
  t.strictSame(await listOf(sql, organisation), [])
})

t.test('without a key nothing is kept', async (t) => {
  const organisation = await createOrganisation(sql)
  await post(suppressions, organisation.liveKey, { email: 'ann@c.example' })
  t.equal(await keysOf(organisation), 0)
})

t.test('a key is refused with another body, and at another endpoint either way', async (t) => {
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

t.test('a key belongs to one organisation and one mode, and for 24 hours', async (t) => {
  const one = await createOrganisation(sql)
  const two = await createOrganisation(sql)
  const add = (key: string) => post(suppressions, key, { email: 'ann@c.example' }, withKey('a'))
  const answers = [await add(one.liveKey), await add(one.testKey), await add(two.liveKey)]
  t.strictSame(
    answers.map((answer) => [answer.status, isReplay(answer)]),
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

t.test('a replay is answered while the organisation is paused', async (t) => {
  const { id, liveKey } = await createOrganisation(sql)
  const add = () => post(suppressions, liveKey, { email: 'ann@c.example' }, withKey('a'))
  const first = await add()
  await sql`select ops.pause(${id}, 'complaints')`
  const again = await add()
  t.strictSame([again.status, again.text, isReplay(again)], [201, first.text, true])
})

t.test('of 64 first uses of a key at a time one adds and 63 replay it', async (t) => {
  const organisation = await createOrganisation(sql)
  const answers = await Promise.all(
    Array.from({ length: 64 }, () =>
      post(suppressions, organisation.liveKey, { email: 'ann@c.example' }, withKey('a')),
    ),
  )
  t.ok(answers.every(({ status }) => status === 201))
  t.equal(new Set(answers.map(({ text }) => text)).size, 1)
  t.equal(answers.filter(isReplay).length, 63)
  t.equal(await keysOf(organisation), 1)
})

t.test('of two bodies or two endpoints with one key at a time one is refused', async (t) => {
  for (const other of [
    (organisation: TestOrganisation) =>
      post(suppressions, organisation.liveKey, { email: 'bob@c.example' }, withKey('a')),
    (organisation: TestOrganisation) =>
      post(emails, organisation.liveKey, anEmail(organisation.domain), withKey('a')),
  ]) {
    for (let round = 0; round < 5; round++) {
      const organisation = await createOrganisation(sql)
      const answers = await meetAt(sql, organisation, 2, () =>
        Promise.all([
          post(suppressions, organisation.liveKey, { email: 'ann@c.example' }, withKey('a')),
          other(organisation),
        ]),
      )
      const [winner, loser] = answers.toSorted((a, b) => a.status - b.status)
      t.ok(winner && winner.status < 300)
      isRefused(t, loser as Answer, 'idempotency_conflict')
      t.equal(await keysOf(organisation), 1)
    }
  }
})

t.test('a transaction that began first and comes second replays all the same', async (t) => {
  const organisation = await createOrganisation(sql)
  const add = (tx: typeof sql) => tx<{ status: number; replayed: boolean; body: string }[]>`
    select * from api.add_suppression(core.decode_id('org', ${organisation.id}), 'live', 'print',
      'ann@c.example', 'manual', '', 'caller:a')`
  await sql.begin(async (early) => {
    // Its clock stands from here on.
    await early`select now()`
    const [late] = await add(sql)
    const [again] = await add(early as unknown as typeof sql)
    t.match([late, again], [{ replayed: false }, { replayed: true, body: late?.body }])
  })
})
