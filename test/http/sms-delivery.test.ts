import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anSms, get, post } from '../fixtures/http.ts'
import { bringForward, jobsOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url)

const typesOf = (events: { type: string }[]) => events.map(({ type }) => type)

t.test('an SMS goes from queued to sent to delivered', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const sent = await post(`${base}/v1/sms`, liveKey, anSms({ body: 'x'.repeat(161) }))
  t.match(sent.json, { status: 'queued', segments: 2 })
  const message = await until('delivery', async () => {
    const { json } = await get(`${base}/v1/sms/${sent.json.id}`, liveKey)
    return json.status === 'delivered' && json
  })
  t.match(message, { sentAt: String, deliveredAt: String, error: null })
  t.strictSame(typesOf(message.events), ['queued', 'sent', 'delivered', 'delivered'], 'two parts')
})

t.test('a scheduled SMS is sent at its time', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const inAMinute = new Date(Date.now() + 60_000)
  const sent = await post(`${base}/v1/sms`, liveKey, anSms({ scheduledAt: inAMinute }))
  t.equal(sent.json.status, 'scheduled')
  t.match(await jobsOf(sql, sent.json.id), [{ runAt: inAMinute }])
  const scheduledAt = await bringForward(sql, sent.json.id)
  const message = await until('delivery', async () => {
    const { json } = await get(`${base}/v1/sms/${sent.json.id}`, liveKey)
    return json.status === 'delivered' && json
  })
  t.ok(message.sentAt >= scheduledAt, 'not before')
  t.strictSame(typesOf(message.events), ['scheduled', 'queued', 'sent', 'delivered'])
})
