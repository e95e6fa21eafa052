import t from 'tap'
import { acceptTogether } from '../fixtures/accept.ts'
import { createDatabase } from '../fixtures/database.ts'
import { type Answer, anEmail, post } from '../fixtures/http.ts'
import { meetAt } from '../fixtures/meet.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { liftRate } from '../fixtures/rate.ts'
import { errorOf } from '../fixtures/refusal.ts'
import { spawnService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const processes = await Promise.all([spawnService(url, 'api'), spawnService(url, 'api')])
const bases = processes.map(({ base }) => base)

const idsOf = async ({ id }: TestOrganisation) => {
  const rows = await sql`
    select core.encode_id('em', id) as id from app.messages
    where organisation_id = core.decode_id('org', ${id})`
  return rows.map((row) => row.id)
}

const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true'

/** So many sends of one body under one key at a time, in turns at each of the bases. */
function sendTogether(organisation: TestOrganisation, count: number, at: string[], body: object) {
  return Promise.all(
    Array.from({ length: count }, (_, n) =>
      post(`${at[n % at.length]}/v1/emails`, organisation.liveKey, body, {
        'Idempotency-Key': 'a',
      }),
    ),
  )
}

for (const [name, at] of [
  ['one process', bases.slice(0, 1)],
  ['two processes', bases],
] as const) {
  t.test(`of 64 sends with one key at ${name} one is accepted and 63 replay it`, async (t) => {
    for (let round = 0; round < 5; round++) {
      const organisation = await createOrganisation(sql)
      const answers = await sendTogether(organisation, 64, [...at], anEmail(organisation.domain))
      const ids = await idsOf(organisation)
      t.equal(ids.length, 1)
      t.strictSame(
        new Set(answers.map(({ status, text }) => `${status} ${text}`)),
        new Set([`200 {"id":"${ids[0]}","status":"queued","mode":"live"}`]),
      )
      t.equal(answers.filter(isReplay).length, 63)
    }
  })

  t.test(`of two bodies with one key at ${name} one is accepted and one refused`, async (t) => {
    for (let round = 0; round < 20; round++) {
      const organisation = await createOrganisation(sql)
      const answers = await Promise.all(
        ['One', 'Two'].map((subject, n) =>
          post(
            `${at[n % at.length]}/v1/emails`,
            organisation.liveKey,
            anEmail(organisation.domain, { subject }),
            { 'Idempotency-Key': 'a' },
          ),
        ),
      )
      t.strictSame(answers.map(({ status }) => status).sort(), [200, 409])
      const loser = answers.find(({ status }) => status === 409)
      t.strictSame(loser?.json, { error: errorOf('idempotency_conflict') })
      t.equal((await idsOf(organisation)).length, 1)
    }
  })
}

t.test('a batch under way is waited for and replayed, at the other process too', async (t) => {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  const batch = { emails: Array.from({ length: 50 }, () => anEmail(organisation.domain)) }
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      post(`${bases[n % 2]}/v1/emails/batch`, organisation.liveKey, batch, {
        'Idempotency-Key': 'a',
      }),
    ),
  )
  t.equal(new Set(answers.map(({ text }) => text)).size, 1)
  t.equal(answers.filter(isReplay).length, 7)
  t.equal((await idsOf(organisation)).length, 50)
})

t.test('a send waits for the one that has its key, and replays it', async (t) => {
  const organisation = await createOrganisation(sql)
  const both = await meetAt(sql, organisation, 2, () =>
    sendTogether(organisation, 2, bases, anEmail(organisation.domain)),
  )
  t.strictSame(both.map(isReplay).sort(), [false, true])
  t.equal(both[0]?.text, both[1]?.text)
  t.equal((await idsOf(organisation)).length, 1)
})

t.test('a transaction that began first and comes second replays all the same', async (t) => {
  const organisation = await createOrganisation(sql)
  const send = { organisation, key: 'caller:a', email: anEmail(organisation.domain) }
  await sql.begin(async (early) => {
    // Its clock stands from here on.
    await early`select now()`
    const [late] = await acceptTogether(sql, [send])
    const [again] = await acceptTogether(early as unknown as typeof sql, [send])
    t.equal(late?.isReplayed, false)
    t.equal(again?.isReplayed, true)
    t.equal(again?.body, late?.body)
  })
  t.equal((await idsOf(organisation)).length, 1)
})
