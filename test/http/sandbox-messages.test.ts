import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { aComplaint, stateOf } from '../fixtures/complaints.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, post } from '../fixtures/http.ts'
import { backlogOf, jobsOf, messageOf, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { isRefused } from '../fixtures/refusal.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/until.ts'

const { url, sql } = await createDatabase()
/** As beside a real provider, and as where the sandbox is the provider. */
const { base } = await startTestService(url, { roles: ['api'], hasSandboxMessages: true })
const { base: sandboxBase } = await startTestService(url, { roles: ['api'] })
const service = connect(url, { role: 'postgram_service' })
t.teardown(() => service.end())
const call = caller(service)

const at = (name: string) => `${name}@sandbox.postgram.test`

const usedBy = async ({ id }: TestOrganisation) => {
  const [row] = await sql`select emails_used from ops.organisations where id = ${id}`
  return row?.emailsUsed
}

const isSandbox = async (id: string) => {
  const [row] = await sql`
    select is_sandbox from app.messages where id = core.decode_id('em', ${id})`
  return row?.isSandbox
}

const send = (
  { liveKey, domain }: TestOrganisation,
  fields: Record<string, unknown>,
  headers?: Record<string, string>,
) => post(`${base}/v1/emails`, liveKey, anEmail(domain, fields), headers)

t.test('an email to sandbox addresses alone is a rehearsal and costs nothing', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 5 })
  for (const fields of [
    { to: at('delivered') },
    { to: at('bounce+7') },
    { to: `Ann <${at('Slow').toUpperCase()}>` },
    { to: [at('a'), at('b')], cc: at('c'), bcc: [at('d'), at('e'), at('f')] },
  ]) {
    const { status, json } = await send(organisation, fields)
    t.equal(status, 200)
    t.equal(await isSandbox(json.id), true, JSON.stringify(fields))
    t.match(await messageOf(sql, json.id), { status: 'queued' })
    t.equal((await jobsOf(sql, json.id)).length, 1, 'it is queued like any other')
  }
  t.equal(await usedBy(organisation), 0)
  t.equal(await backlogOf(sql, organisation), 4)
})

t.test('with any other recipient it is none', async (t) => {
  const organisation = await createOrganisation(sql)
  let used = 0
  for (const [fields, recipients] of [
    [{ to: [at('a'), 'b@c.example'] }, 2],
    [{ to: at('a'), cc: 'b@c.example' }, 2],
    [{ to: at('a'), bcc: 'b@c.example' }, 2],
    [{ to: 'a@sub.sandbox.postgram.test' }, 1],
    [{ to: 'a@xsandbox.postgram.test' }, 1],
  ] as const) {
    const { json } = await send(organisation, fields)
    t.equal(await isSandbox(json.id), false, JSON.stringify(fields))
    used += recipients
    t.equal(await usedBy(organisation), used)
  }
})

t.test('a rehearsal is accepted though the allowance is used up', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 1 })
  t.equal((await send(organisation, { to: 'a@c.example' })).status, 200)
  isRefused(t, await send(organisation, { to: 'b@c.example' }), 'plan_allowance_exceeded')
  t.equal((await send(organisation, { to: [at('a'), at('b')] })).status, 200)
  t.equal(await usedBy(organisation), 1)
})

t.test('rehearsals in a batch take nothing from the other items', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 2 })
  const recipients = [at('a'), 'a@c.example', at('b'), 'b@c.example', 'c@c.example', at('c')]
  const { json } = await post(`${base}/v1/emails/batch`, organisation.liveKey, {
    emails: recipients.map((to) => anEmail(organisation.domain, { to })),
  })
  t.same(
    json.results.map(({ ok }: { ok: boolean }) => ok),
    [true, true, true, true, false, true],
  )
  t.equal(json.results[4].error.code, 'plan_allowance_exceeded')
  t.equal(await usedBy(organisation), 2)
  t.equal(await backlogOf(sql, organisation), 5)
})

t.test('all other rules hold for a rehearsal', async (t) => {
  const organisation = await createOrganisation(sql)
  isRefused(
    t,
    await send(organisation, { from: 'a@elsewhere.example', to: at('a') }),
    'domain_not_verified',
  )
  await sql`
    insert into app.suppressions (id, organisation_id, email, reason)
    values (gen_random_uuid(), core.decode_id('org', ${organisation.id}), ${at('gone')}, 'manual')`
  isRefused(t, await send(organisation, { to: at('Gone') }), 'recipient_suppressed', {
    to: [`${at('gone')}: manual`],
  })
  const key = { 'Idempotency-Key': 'rehearsal' }
  const first = await send(organisation, { to: at('a') }, key)
  const again = await send(organisation, { to: at('a') }, key)
  t.equal(again.text, first.text)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  isRefused(t, await send(organisation, { to: at('b') }, key), 'idempotency_conflict')
  await sql`select ops.pause(${organisation.id}, 'a test')`
  isRefused(t, await send(organisation, { to: at('a') }), 'org_paused')
})

t.test('where the sandbox is the provider its addresses count like others', async (t) => {
  const { id, liveKey, domain } = await createOrganisation(sql, { emailsIncluded: 1 })
  const email = anEmail(domain, { to: at('a') })
  const { json } = await post(`${sandboxBase}/v1/emails`, liveKey, email)
  t.equal(await isSandbox(json.id), false)
  isRefused(t, await post(`${sandboxBase}/v1/emails`, liveKey, email), 'plan_allowance_exceeded')
  const [row] = await sql`select emails_used from ops.organisations where id = ${id}`
  t.match(row, { emailsUsed: 1 })
})

t.test('complaints about rehearsals suppress, and do not pause', async (t) => {
  const organisation = await createOrganisation(sql)
  const recipients = [1, 2, 3, 4].map((n) => at(`complaint+${n}`))
  const answers = await Promise.all(recipients.map((to) => send(organisation, { to })))
  const messages = await Promise.all(answers.map(({ json }) => messageOf(sql, json.id)))
  await call('start_emails', { ids: messages.map(({ id }) => id) })
  const receipts = messages.map(({ id }, place) => aComplaint(id, recipients[place]))
  t.equal(await call('record_receipts', { receipts: JSON.stringify(receipts) }), 4)
  t.match(await stateOf(sql, organisation), { state: 'active' })
  isRefused(t, await send(organisation, { to: recipients[0] }), 'recipient_suppressed', {
    to: [`${recipients[0]}: complaint`],
  })
  const [row] = await sql`
    select messages, emails_sent from app.counters
    where organisation_id = core.decode_id('org', ${organisation.id})`
  t.same(row, { messages: '4', emailsSent: '0' }, 'they left the queue and are not in the rate')
})

t.test('messages that the sandbox keeps waiting raise no alarm', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const ids: string[] = []
  for (const [path, body] of [
    [`${base}/v1/emails`, anEmail(domain, { to: at('unavailable') })],
    [`${sandboxBase}/v1/emails`, anEmail(domain, { to: at('unavailable') })],
    [`${sandboxBase}/v1/sms`, anSms({ to: '+447700900004' })],
  ] as const) {
    ids.push((await post(path, liveKey, body)).json.id)
  }
  const { stop } = await startTestService(url, { roles: ['worker'] })
  for (const id of ids) {
    await until(`${id} to be deferred`, async () =>
      (await timelineOf(sql, id)).some(({ type }) => type === 'deferred'),
    )
  }
  await sql`update app.messages set created_at = now() - interval '1 hour'`
  const [why] = await sql<{ why: string }[]>`select ops.why(${ids[0] ?? ''}) as why`
  await stop()
  t.match(why?.why, /because the last attempt was deferred: The sandbox is not available\.$/)
  t.strictSame([...(await sql`select * from ops.failing_providers`)], [])
  t.strictSame([...(await sql`select * from ops.stuck_messages where id = any (${ids})`)], [])
  t.strictSame(
    [...(await sql`select * from api.metrics() where name = 'provider_failing_seconds'`)],
    [],
  )
})
