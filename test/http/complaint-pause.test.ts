import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post } from '../fixtures/http.ts'
import { anyJson, haveSent, messageOf, send, sendBatch } from '../fixtures/messages.ts'
import {
  aComplaint,
  createOrganisation,
  noticesOf,
  stateOf,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const api = await startTestService(url, { roles: ['api'] })
const service = connect(url, { role: 'postgram_service' })
t.teardown(() => service.end())
const call = caller(service)

const emailsOf = (organisation: TestOrganisation) => anEmail(organisation.domain)

const isPaused = (organisation: TestOrganisation) =>
  until('the pause', async () => (await stateOf(sql, organisation)).state === 'paused')

async function complain(ids: string[]) {
  const receipts = ids.map((id) => aComplaint(id))
  await call('finish_poll', { receipts: anyJson(receipts) })
}

t.test('messages that are queued at a pause wait, and are sent after the resume', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await sendBatch(api.base, organisation, [{}, {}, {}, {}])
  await complain(await haveSent(sql, organisation, 3))
  await isPaused(organisation)
  const statusesOf = async () =>
    (await Promise.all(ids.map((id) => messageOf(sql, id)))).map(({ status }) => status)

  const worker = await startTestService(url, { roles: ['worker'] })
  await until('all to be held', async () => {
    const held = await sql`select from app.due_messages where due_at is null`
    return held.length === ids.length
  })
  t.same(await statusesOf(), ['queued', 'queued', 'queued', 'queued'])
  const [released] = await sql`select ops.resume(${organisation.id}) as count`
  t.equal(released?.count, ids.length)
  await until('their delivery', async () =>
    (await statusesOf()).every((status) => status === 'delivered'),
  )
  await worker.stop()
})

t.test('emails to complaint@ of the sandbox pause the organisation', async (t) => {
  const worker = await startTestService(url, { roles: ['worker'] })
  const organisation = await createOrganisation(sql)
  const { liveKey, testKey } = organisation
  const ids = []
  for (const n of [1, 2, 3]) {
    t.equal((await stateOf(sql, organisation)).state, 'active')
    const id = await send(api.base, organisation, {
      to: `complaint+${n}@sandbox.postgram.test`,
    })
    await until('the complaint', async () => (await messageOf(sql, id)).status === 'complained')
    ids.push(id)
  }
  t.match(await stateOf(sql, organisation), {
    state: 'paused',
    reason: '3 complaints about 3 emails sent within 24 hours',
  })

  isRefused(t, await post(`${api.base}/v1/emails`, liveKey, emailsOf(organisation)), 'org_paused')
  isRefused(
    t,
    await post(`${api.base}/v1/emails/batch`, liveKey, { emails: [emailsOf(organisation)] }),
    'org_paused',
  )
  const read = await get(`${api.base}/v1/emails/${ids[0]}`, liveKey)
  t.match(read, { status: 200, json: { status: 'complained' } })
  const tested = await post(`${api.base}/v1/emails`, testKey, emailsOf(organisation))
  t.match(tested, { status: 200, json: { mode: 'test' } })

  const [notice] = await until('the notice to the owner', async () => {
    const notices = await noticesOf(sql, organisation)
    return notices.every(({ sentAt }) => sentAt) && notices
  })
  t.equal((await noticesOf(sql, organisation)).length, 1)
  const taken = await sql`
    select attempts from ${takenBySandbox(sql)} s where message_id = ${String(notice?.id)}`
  t.match([...taken], [{ attempts: 1 }])

  await sql`select ops.resume(${organisation.id})`
  const id = await send(api.base, organisation)
  await until('delivery', async () => (await messageOf(sql, id)).status === 'delivered')
  t.match(await stateOf(sql, organisation), { state: 'active', reason: null })
  await worker.stop()
})
