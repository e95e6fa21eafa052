import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anSms, get, post } from '../fixtures/http.ts'
import { jobsOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { traces } from '../fixtures/traces.ts'

const { url, sql } = await createDatabase()
/** As beside a real provider, and as where the sandbox is the provider. */
const { base } = await startTestService(url, { roles: ['api'], hasSandboxSms: true })
const { base: sandboxBase } = await startTestService(url, { roles: ['api'] })

const isSandbox = async (id: string) => {
  const [row] = await sql`
    select is_sandbox from app.messages where id = core.decode_id('sm', ${id})`
  return row?.isSandbox
}

t.test('an SMS to a sandbox number is a rehearsal and costs nothing', async (t) => {
  const { liveKey } = await createOrganisation(sql, { smsIncluded: 0 })
  const before = await traces(sql)
  const body = 'x'.repeat(161)
  const { status, json } = await post(`${base}/v1/sms`, liveKey, anSms({ body }))
  t.equal(status, 200)
  t.match(json, { status: 'queued', segments: 2, credits: 0, mode: 'live' })
  t.equal(await isSandbox(json.id), true)
  t.equal((await jobsOf(sql, json.id)).length, 1, 'it is queued like any other')
  t.match((await get(`${base}/v1/sms/${json.id}`, liveKey)).json, { segments: 2, credits: 0 })
  const after = await traces(sql)
  t.strictSame([after.used, after.ledger], [before.used, before.ledger])
})

t.test('to any other number it is none, also beside rehearsals in a batch', async (t) => {
  const { liveKey } = await createOrganisation(sql, { smsIncluded: 1 })
  const numbers = ['+447700900001', '+447700901000', '+447700900002', '+27821234567']
  const messages = [...numbers, '+447700900003'].map((to) => anSms({ to }))
  const { json } = await post(`${base}/v1/sms/batch`, liveKey, { messages })
  const results: { ok: boolean; data: { id: string }; error: { code: string } }[] = json.results
  t.strictSame(
    await Promise.all(results.map(({ ok, data, error }) => (ok ? isSandbox(data.id) : error.code))),
    [true, false, true, 'insufficient_credits', true],
  )
})

t.test('all other rules hold for a rehearsal', async (t) => {
  const { id, liveKey } = await createOrganisation(sql)
  const unknown = anSms({ senderId: 'Unknown' })
  isRefused(t, await post(`${base}/v1/sms`, liveKey, unknown), 'validation_error', {
    senderId: ['is not an approved sender of this organisation'],
  })
  await sql`select ops.pause(${id}, 'a test')`
  isRefused(t, await post(`${base}/v1/sms`, liveKey, anSms()), 'org_paused')
})

t.test('where the sandbox is the provider its numbers cost like others', async (t) => {
  const { liveKey } = await createOrganisation(sql, { smsIncluded: 1 })
  const { json } = await post(`${sandboxBase}/v1/sms`, liveKey, anSms())
  t.equal(await isSandbox(json.id), false)
  isRefused(t, await post(`${sandboxBase}/v1/sms`, liveKey, anSms()), 'insufficient_credits')
})
