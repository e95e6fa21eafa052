import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anSms, get, post } from '../fixtures/http.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { errorOf, isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { atTime, createOrganisationAt, startApiAt } from '../fixtures/sms-clock.ts'
import { traces } from '../fixtures/traces.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const send = ({ testKey }: TestOrganisation, fields: Record<string, unknown> = {}) =>
  post(`${base}/v1/sms`, testKey, anSms(fields))

const show = ({ testKey }: TestOrganisation, id: string) => get(`${base}/v1/sms/${id}`, testKey)

t.test('a test SMS is shown as sent, is never queued and costs nothing', async (t) => {
  const organisation = await createOrganisation(sql)
  const before = await traces(sql)
  const { status, json } = await send(organisation)
  t.equal(status, 200)
  t.strictSame(json, { id: json.id, status: 'queued', segments: 1, credits: 0, mode: 'test' })
  const shown = (await show(organisation, json.id)).json
  t.match(shown, { status: 'sent', error: null, deliveredAt: null })
  t.equal(shown.sentAt, shown.createdAt)
  t.strictSame(shown.events, [
    { type: 'queued', occurredAt: shown.createdAt, detail: {} },
    { type: 'sent', occurredAt: shown.createdAt, detail: {} },
  ])
  t.strictSame(await traces(sql), {
    ...before,
    messages: before.messages + 1,
    keys: before.keys + 1,
  })
})

t.test('it is answered the credits that a live one would have taken', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 3 })
  const body = 'x'.repeat(307)
  const price = { segments: 3, credits: 0 }
  t.match((await send(organisation, { body })).json, price)
  t.match((await send(organisation, { body })).json, price, 'nothing was taken by the first')
  t.match((await post(`${base}/v1/sms`, organisation.liveKey, anSms({ body }))).json, price)
  const dear = await send(organisation, { body })
  t.match(dear.json, { segments: 3, credits: 3 }, 'with the plan used up all would be credits')
  t.match((await show(organisation, dear.json.id)).json, { segments: 3, credits: 3 })
})

t.test('no credits are needed', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 0 })
  isRefused(t, await post(`${base}/v1/sms`, organisation.liveKey, anSms()), 'insufficient_credits')
  const { status, json } = await send(organisation)
  t.strictSame([status, json.credits], [200, 1])
  const messages = [anSms({ body: 'x'.repeat(1530) }), anSms()]
  const batch = await post(`${base}/v1/sms/batch`, organisation.testKey, { messages })
  t.match(batch.json.results, [
    { ok: true, data: { segments: 10, credits: 10 } },
    { ok: true, data: { segments: 1, credits: 1 } },
  ])
})

t.test('within one batch credits are counted as a live one would take them', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 2 })
  const messages = [anSms(), anSms({ body: 'x'.repeat(161) }), anSms()]
  for (const key of [organisation.testKey, organisation.testKey]) {
    const { json } = await post(`${base}/v1/sms/batch`, key, { messages })
    t.match(
      json.results.map(({ data }: { data: { credits: number } }) => data.credits),
      [0, 1, 1],
    )
  }
})

t.test('test SMS are validated like live ones', async (t) => {
  const organisation = await createOrganisation(sql)
  const before = await traces(sql)
  isRefused(t, await send(organisation, { to: '', more: 1 }), 'validation_error', {
    to: ['must be a phone number in E.164, as +27821234567'],
    more: ['unknown field'],
  })
  const fields = {
    scheduledAt: ['must not be in the past'],
    senderId: ['is not an approved sender of this organisation'],
  }
  const bad = { senderId: 'Unknown', scheduledAt: '2000-01-01T00:00:00Z' }
  isRefused(t, await send(organisation, bad), 'validation_error', fields)
  const messages = [anSms(bad)]
  const batch = await post(`${base}/v1/sms/batch`, organisation.testKey, { messages })
  const error = errorOf('validation_error', fields)
  t.strictSame(batch.json.results, [{ index: 0, ok: false, error }])
  t.strictSame(await traces(sql), before, 'nothing is kept')
})

t.test('marketing is judged at once, and shown as sent or rejected', async (t) => {
  // A Wednesday whose next Monday is no holiday.
  const wednesday = '2026-03-04T10:00:00Z'
  const noon = '2026-03-09T12:00:00+02:00'
  const night = '2026-03-09T20:00:00+02:00'
  const { base } = await startApiAt(sql, url, wednesday)
  const organisation = await createOrganisationAt(sql, wednesday)
  const { testKey } = organisation
  const consenting = '+447700900010'
  await atTime(
    sql,
    wednesday,
    (tx) => tx`select ops.record_consent(${organisation.id}, ${consenting}, 'web form')`,
  )
  const news = { class: 'marketing', body: 'News. Reply STOP to opt out' }
  const cases: [fields: Record<string, unknown>, code: string | null][] = [
    [{ to: consenting, scheduledAt: noon }, null],
    [{ to: '+447700900011', scheduledAt: noon }, 'consent_missing'],
    [{ to: consenting, scheduledAt: noon, body: 'News.' }, 'opt_out_footer_missing'],
    [{ to: consenting, scheduledAt: night }, 'outside_sending_hours'],
  ]
  for (const [fields, code] of cases) {
    const { status, json } = await post(`${base}/v1/sms`, testKey, anSms({ ...news, ...fields }))
    t.strictSame([status, json.status], [200, 'scheduled'], `${code}: accepted all the same`)
    const shown = (await get(`${base}/v1/sms/${json.id}`, testKey)).json
    if (code === null) {
      t.match(shown, { status: 'sent', error: null })
      continue
    }
    t.match(shown, { status: 'rejected', sentAt: null, error: { code, message: String } })
    t.strictSame(shown.events, [
      { type: 'queued', occurredAt: shown.createdAt, detail: {} },
      {
        type: 'rejected',
        occurredAt: shown.createdAt,
        detail: { code, text: shown.error.message },
      },
    ])
  }
})
