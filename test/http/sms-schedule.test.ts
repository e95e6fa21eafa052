import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anSms, errorOf, get, isRefused, post } from '../fixtures/http.ts'
import { backlogOf, jobsOf } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

/** The service's clock stands still, so that the limits can be tested exactly. */
const NOW = Math.floor(Date.now() / 1000) * 1000 + 250
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, {
  roles: ['api'],
  clock: { 'postgram.now': new Date(NOW).toISOString() },
})

const SECOND = 1000
const HOUR = 3600 * SECOND
const DAY = 24 * HOUR

const inMs = (ms: number) => new Date(NOW + ms).toISOString()

const send = ({ liveKey }: TestOrganisation, fields: Record<string, unknown>) =>
  post(`${base}/v1/sms`, liveKey, anSms(fields))

const dueOf = (id: string) => sql`
  select d.due_at, d.late_at from app.due_messages d
  where d.message_id = core.decode_id('sm', ${id})`

t.test('a scheduled SMS has status scheduled and is paid at once', async (t) => {
  const organisation = await createOrganisation(sql)
  const scheduledAt = inMs(5 * DAY)
  const { status, json } = await send(organisation, { scheduledAt, body: 'x'.repeat(161) })
  t.equal(status, 200)
  t.strictSame(json, { id: json.id, status: 'scheduled', segments: 2, credits: 0, mode: 'live' })
  const shown = await get(`${base}/v1/sms/${json.id}`, organisation.liveKey)
  t.match(shown.json, { status: 'scheduled', scheduledAt, sentAt: null, segments: 2 })
  const [row] = await sql`select sms_used from ops.organisations where id = ${organisation.id}`
  t.equal(row?.smsUsed, 2)
  t.equal(await backlogOf(sql, organisation), 0, 'it does not wait for a worker')
})

t.test('scheduledAt: accepts from exactly now to exactly 30 days ahead', async (t) => {
  const organisation = await createOrganisation(sql)
  for (const ms of [0, 1, SECOND, DAY, 30 * DAY - 1, 30 * DAY]) {
    const { status, json } = await send(organisation, { scheduledAt: inMs(ms) })
    t.strictSame([status, json.status], [200, 'scheduled'], `${ms} ms ahead`)
  }
  const past = { scheduledAt: ['must not be in the past'] }
  const far = { scheduledAt: ['must be at most 30 days ahead'] }
  const before = await traces(sql)
  for (const [ms, fields] of [
    [-1, past],
    [-DAY, past],
    [30 * DAY + 1, far],
    [31 * DAY, far],
  ] as const) {
    const name = `${ms} ms ahead`
    const response = await send(organisation, { scheduledAt: inMs(ms) })
    isRefused(t, response, 'validation_error', fields, { name })
  }
  for (const [scheduledAt, fields] of [
    ['0001-01-01T00:00:00Z', past],
    ['9999-12-31T23:59:59Z', far],
  ] as const) {
    isRefused(t, await send(organisation, { scheduledAt }), 'validation_error', fields)
  }
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('scheduledAt: the offset does not change the moment', async (t) => {
  const organisation = await createOrganisation(sql)
  const local = (ms: number) => inMs(ms).slice(0, -1)
  for (const scheduledAt of [
    `${local(DAY)}Z`,
    `${local(DAY + 2 * HOUR)}+02:00`,
    `${local(DAY + 2 * HOUR)}+0200`,
    `${local(DAY + 2 * HOUR)}+02`,
    `${local(DAY - 9.5 * HOUR)}-09:30`,
  ]) {
    const { json } = await send(organisation, { scheduledAt })
    const shown = await get(`${base}/v1/sms/${json.id}`, organisation.liveKey)
    t.equal(shown.json.scheduledAt, inMs(DAY), scheduledAt)
  }
  // In an hour by its digits, an hour ago by its offset.
  const response = await send(organisation, { scheduledAt: `${local(HOUR)}+02:00` })
  isRefused(t, response, 'validation_error', { scheduledAt: ['must not be in the past'] })
})

t.test(
  'scheduled SMS: one that is due soon has a job, others wait outside of the queue',
  async (t) => {
    const organisation = await createOrganisation(sql)
    for (const ms of [0, 1, 90 * SECOND]) {
      const { json } = await send(organisation, { scheduledAt: inMs(ms) })
      t.equal((await jobsOf(sql, json.id)).length, 1, `${ms} ms ahead: a job`)
      t.same(await dueOf(json.id), [], `${ms} ms ahead: a job alone`)
    }
    for (const ms of [90 * SECOND + 1, DAY]) {
      const { json } = await send(organisation, { scheduledAt: inMs(ms) })
      t.same(await jobsOf(sql, json.id), [], `${ms} ms ahead: no job`)
      t.same(await dueOf(json.id), [
        { dueAt: new Date(NOW + ms), lateAt: new Date(NOW + ms + DAY) },
      ])
    }
  },
)

t.test(
  'the problems of senderId and scheduledAt are reported together, also in a batch',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const fields = {
      scheduledAt: ['must not be in the past'],
      senderId: ['is not an approved sender of this organisation'],
    }
    const bad = { scheduledAt: inMs(-1), senderId: 'Unknown' }
    isRefused(t, await send(organisation, bad), 'validation_error', fields)
    const messages = [anSms({ scheduledAt: inMs(DAY) }), anSms(bad), anSms()]
    const { json } = await post(`${base}/v1/sms/batch`, organisation.liveKey, { messages })
    t.match(json.results, [
      { index: 0, ok: true, data: { status: 'scheduled' } },
      { index: 1, ok: false, error: errorOf('validation_error', fields) },
      { index: 2, ok: true, data: { status: 'queued' } },
    ])
  },
)

t.test('test SMS: is not scheduled', async (t) => {
  const organisation = await createOrganisation(sql)
  const before = await traces(sql)
  const body = anSms({ scheduledAt: inMs(DAY) })
  const { json } = await post(`${base}/v1/sms`, organisation.testKey, body)
  t.match(json, { status: 'scheduled', mode: 'test' })
  const shown = await get(`${base}/v1/sms/${json.id}`, organisation.testKey)
  t.match(shown.json, { status: 'sent', scheduledAt: inMs(DAY), sentAt: shown.json.createdAt })
  const after = await traces(sql)
  t.strictSame([after.jobs, after.due, after.ledger], [before.jobs, before.due, before.ledger])
  const late = anSms({ scheduledAt: inMs(30 * DAY + 1) })
  isRefused(t, await post(`${base}/v1/sms`, organisation.testKey, late), 'validation_error', {
    scheduledAt: ['must be at most 30 days ahead'],
  })
})
