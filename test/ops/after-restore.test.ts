import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, post } from '../fixtures/http.ts'
import {
  messageOf,
  movementsOf,
  PROMOTION,
  send,
  sendSms,
  startSmsAt,
} from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startApiAt } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

// A Tuesday; hours are South Africa's.
const NOW = '2028-02-29T10:00:00+02:00'
const LATER = '2028-02-29T10:20:00+02:00'
const { base } = await startApiAt(sql, url, NOW, true)

const PHONE = '+27821234567'
const organisation = await createOrganisation(sql)
await sql`select ops.record_consent(${organisation.id}, ${PHONE}, 'the form on the web site')`

const afterRestore = async () => {
  const [row] = await atTime(
    sql,
    LATER,
    (tx) => tx<{ count: number }[]>`select ops.after_restore() as count`,
  )
  return row?.count
}
const isDoubted = async (id: string) => (await messageOf(sql, id)).attemptStartedAt !== null

t.test(
  'ops.after_restore: a message that may have been sent counts as attempted with an unknown outcome',
  async (t) => {
    const { liveKey, testKey, domain } = organisation
    const email = await send(base, organisation)
    const promotion = { class: 'marketing', body: PROMOTION, to: PHONE }
    const marketing = await sendSms(base, organisation, promotion)
    const transactional = await sendSms(base, organisation, { to: PHONE })
    const inTenMinutes = { to: PHONE, scheduledAt: '2028-02-29T10:10:00+02:00' }
    const due = await sendSms(base, organisation, inTenMinutes)
    const doubted = [email, marketing, transactional, due]

    const inAnHour = { to: PHONE, scheduledAt: '2028-02-29T11:00:00+02:00' }
    const certain = [await sendSms(base, organisation, inAnHour)]
    const rehearsal = await post(`${base}/v1/sms`, liveKey, anSms())
    const test = await post(`${base}/v1/emails`, testKey, anEmail(domain))
    certain.push(rehearsal.json.id, test.json.id)

    t.equal(await afterRestore(), doubted.length)
    for (const id of doubted) t.ok(await isDoubted(id), id)
    for (const id of certain) t.notOk(await isDoubted(id), id)
    t.equal(await afterRestore(), 0, 'each once')

    t.same(await startSmsAt(sql, LATER, marketing, transactional, due), [transactional, due])
    t.match(await messageOf(sql, marketing), {
      status: 'failed',
      errorCode: 'provider_unavailable',
    })
    t.same(await movementsOf(sql, marketing), ['sms -1'], 'which may have cost its price')
  },
)

t.test('ops.after_restore: a held message counts as attempted too', async (t) => {
  const held = await send(base, organisation)
  const { id: uuid } = await messageOf(sql, held)
  await sql`select ops.pause(${organisation.id}, 'a look')`
  await sql`select from api.start_emails(${[uuid]}::uuid[])`
  await sql`delete from graphile_worker._private_jobs where payload ->> 'id' = ${uuid}`
  t.notOk(await isDoubted(held))
  t.equal(await afterRestore(), 1)
  t.ok(await isDoubted(held))
})
