import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

// Two cells that have nothing in common but the server of their databases.

/** A cell with an organisation and a message of it. */
async function startCell(number: number) {
  const { url, sql } = await createDatabase()
  await sql`select ops.set_cell(${number}, ${`cell ${number}`})`
  const { base } = await startTestService(url, { roles: ['api'] })
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  const sent = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  return { ...organisation, base, sent }
}

const first = await startCell(1)
const second = await startCell(2)

t.test('API keys with the letter of their cell: are admitted there', async (t) => {
  t.match(second.liveKey, /^sk_live_b_/)
  t.equal(second.sent.status, 200)
  t.equal(
    (await get(`${second.base}/v1/emails/${second.sent.json.id}`, second.liveKey)).status,
    200,
  )
  t.match(second.testKey, /^sk_test_b_/)
  const email = anEmail(second.domain)
  t.equal((await post(`${second.base}/v1/emails`, second.testKey, email)).status, 200)
})

for (const [name, cell, other] of [
  ['first', first, second],
  ['second', second, first],
] as const) {
  t.test(`API keys of another cell: the ${name} cell responds 401`, async (t) => {
    for (const key of [other.liveKey, other.testKey]) {
      isRefused(t, await post(`${cell.base}/v1/emails`, key, anEmail(other.domain)), 'unauthorized')
      isRefused(t, await get(`${cell.base}/v1/emails/${other.sent.json.id}`, key), 'unauthorized')
    }
  })

  t.test(`id of another cell's message: the ${name} cell responds 404`, async (t) => {
    isRefused(
      t,
      await get(`${cell.base}/v1/emails/${other.sent.json.id}`, cell.liveKey),
      'not_found',
    )
  })
}
