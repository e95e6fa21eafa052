import t from 'tap'
import { createDatabase, meetAt } from '../fixtures/database.ts'
import { type Answer, anEmail, errorOf, post } from '../fixtures/http.ts'
import { acceptTogether } from '../fixtures/messages.ts'
import { createOrganisation, liftRate, type TestOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'

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

/** Sends one body with one key concurrently, alternating between the services. */
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
  t.test(
    `${name}: of 64 concurrent sends with one key one is accepted and 63 are replays`,
    async (t) => {
      for (let round = 0; round < 5; round++) {
        const organisation = await createOrganisation(sql)
        const responses = await sendTogether(
          organisation,
          64,
          [...at],
          anEmail(organisation.domain),
        )
        const ids = await idsOf(organisation)
        t.equal(ids.length, 1)
        t.strictSame(
          new Set(responses.map(({ status, text }) => `${status} ${text}`)),
          new Set([`200 {"id":"${ids[0]}","status":"queued","mode":"live"}`]),
        )
        t.equal(responses.filter(isReplay).length, 63)
      }
    },
  )

  t.test(
    `${name}: of two concurrent bodies with one key one is accepted and one refused`,
    async (t) => {
      for (let round = 0; round < 20; round++) {
        const organisation = await createOrganisation(sql)
        const responses = await Promise.all(
          ['One', 'Two'].map((subject, n) =>
            post(
              `${at[n % at.length]}/v1/emails`,
              organisation.liveKey,
              anEmail(organisation.domain, { subject }),
              { 'Idempotency-Key': 'a' },
            ),
          ),
        )
        t.strictSame(responses.map(({ status }) => status).sort(), [200, 409])
        const loser = responses.find(({ status }) => status === 409)
        t.strictSame(loser?.json, { error: errorOf('idempotency_conflict') })
        t.equal((await idsOf(organisation)).length, 1)
      }
    },
  )
}

t.test('a batch in progress is awaited and replayed, also at another process', async (t) => {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  const batch = { emails: Array.from({ length: 50 }, () => anEmail(organisation.domain)) }
  const responses = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      post(`${bases[n % 2]}/v1/emails/batch`, organisation.liveKey, batch, {
        'Idempotency-Key': 'a',
      }),
    ),
  )
  t.equal(new Set(responses.map(({ text }) => text)).size, 1)
  t.equal(responses.filter(isReplay).length, 7)
  t.equal((await idsOf(organisation)).length, 50)
})

t.test('a send waits for the send in progress with its key, and replays it', async (t) => {
  const organisation = await createOrganisation(sql)
  const both = await meetAt(sql, organisation, 2, () =>
    sendTogether(organisation, 2, bases, anEmail(organisation.domain)),
  )
  t.strictSame(both.map(isReplay).sort(), [false, true])
  t.equal(both[0]?.text, both[1]?.text)
  t.equal((await idsOf(organisation)).length, 1)
})

t.test('a transaction that begins first and gets the key second replays', async (t) => {
  const organisation = await createOrganisation(sql)
  const send = { organisation, key: 'caller:a', email: anEmail(organisation.domain) }
  await sql.begin(async (early) => {
    // From here on the clock of this transaction stands still.
    await early`select now()`
    const [late] = await acceptTogether(sql, [send])
    const [again] = await acceptTogether(early as unknown as typeof sql, [send])
    t.equal(late?.isReplayed, false)
    t.equal(again?.isReplayed, true)
    t.equal(again?.body, late?.body)
  })
  t.equal((await idsOf(organisation)).length, 1)
})
