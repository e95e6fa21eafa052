import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, get, isRefused, post } from '../fixtures/http.ts'
import { anyJson, backlogOf, jobsOf, messageOf, timelineOf } from '../fixtures/messages.ts'
import {
  aComplaint,
  createOrganisation,
  stateOf,
  suppress,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
/** Treats sandbox recipients as beside a real provider. */
const { base } = await startTestService(url, {
  roles: ['api'],
  hasSandboxMessages: true,
  hasSandboxSms: true,
})
/** The sandbox is the provider. */
const { base: sandboxBase } = await startTestService(url, { roles: ['api'] })
const service = connect(url, { role: 'postgram_service' })
t.teardown(() => service.end())
const call = caller(service)

const at = (name: string) => `${name}@sandbox.postgram.test`

type Fields = Record<string, unknown>

type Channel = {
  path: string
  body(organisation: TestOrganisation, fields: Fields): Fields
  list: 'emails' | 'messages'
  /** Recipients of the sandbox alone. */
  sandbox: [Fields, ...Fields[]]
  /** Recipients that are not all of the sandbox, each with what it uses of the allowance. */
  ordinary: [[fields: Fields, used: number], ...[fields: Fields, used: number][]]
  allowanceError: 'plan_allowance_exceeded' | 'insufficient_credits'
}

const channels: Record<string, Channel> = {
  email: {
    path: '/v1/emails',
    body: ({ domain }, fields) => anEmail(domain, fields),
    list: 'emails',
    sandbox: [
      { to: at('delivered') },
      { to: at('bounce+7') },
      { to: `Ann <${at('Slow').toUpperCase()}>` },
      { to: [at('a'), at('b')], cc: at('c'), bcc: [at('d'), at('e'), at('f')] },
    ],
    ordinary: [
      [{ to: 'a@c.example' }, 1],
      [{ to: [at('a'), 'b@c.example'] }, 2],
      [{ to: at('a'), cc: 'b@c.example' }, 2],
      [{ to: at('a'), bcc: 'b@c.example' }, 2],
      [{ to: 'a@sub.sandbox.postgram.test' }, 1],
      [{ to: 'a@xsandbox.postgram.test' }, 1],
    ],
    allowanceError: 'plan_allowance_exceeded',
  },
  sms: {
    path: '/v1/sms',
    body: (_, fields) => anSms(fields),
    list: 'messages',
    sandbox: [{ to: '+447700900000' }, { to: '+447700900001', body: 'x'.repeat(161) }],
    ordinary: [
      [{ to: '+27821234567' }, 1],
      [{ to: '+447700901000' }, 1],
    ],
    allowanceError: 'insufficient_credits',
  },
}

const usedBy = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select emails_used + sms_used as used from app.allowances
    where organisation_id = core.decode_id('org', ${id})`
  return row?.used ?? 0
}

const isSandbox = async (id: string) => {
  const [row] = await sql`
    select is_sandbox from app.messages
    where id = core.decode_id(split_part(${id}, '_', 1), ${id})`
  return row?.isSandbox
}

const send = (
  { liveKey, domain }: TestOrganisation,
  fields: Fields,
  headers?: Record<string, string>,
) => post(`${base}/v1/emails`, liveKey, anEmail(domain, fields), headers)

for (const [name, { path, body, list, sandbox, ordinary, allowanceError }] of Object.entries(
  channels,
)) {
  t.test(`${name} to sandbox recipients alone: is queued and costs nothing`, async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 0, smsIncluded: 0 })
    for (const fields of sandbox) {
      const sent = await post(`${base}${path}`, organisation.liveKey, body(organisation, fields))
      t.match([sent.status, sent.json], [200, { status: 'queued', mode: 'live' }])
      t.equal(await isSandbox(sent.json.id), true, JSON.stringify(fields))
      t.match(await messageOf(sql, sent.json.id), { status: 'queued' })
      t.equal((await jobsOf(sql, sent.json.id)).length, 1)
    }
    t.equal(await usedBy(organisation), 0)
    t.equal(await backlogOf(sql, organisation), sandbox.length)
  })

  t.test(`${name} to any other recipient: is no sandbox message and counts`, async (t) => {
    const organisation = await createOrganisation(sql)
    let used = 0
    for (const [fields, units] of ordinary) {
      const sent = await post(`${base}${path}`, organisation.liveKey, body(organisation, fields))
      t.equal(await isSandbox(sent.json.id), false, JSON.stringify(fields))
      used += units
      t.equal(await usedBy(organisation), used)
    }
  })

  t.test(`${name} batch: sandbox messages use nothing of the allowance`, async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 2, smsIncluded: 2 })
    const [one] = sandbox
    const [[other]] = ordinary
    const items = [one, other, one, other, other, one].map((fields) => body(organisation, fields))
    const { json } = await post(`${base}${path}/batch`, organisation.liveKey, { [list]: items })
    t.same(
      json.results.map(({ ok, error }: { ok: boolean; error?: { code: string } }) =>
        ok ? 'accepted' : error?.code,
      ),
      ['accepted', 'accepted', 'accepted', 'accepted', allowanceError, 'accepted'],
    )
    t.equal(await usedBy(organisation), 2)
    t.equal(await backlogOf(sql, organisation), 5)
  })

  t.test(
    `${name} with the sandbox as provider: sandbox recipients count like others`,
    async (t) => {
      const organisation = await createOrganisation(sql, { emailsIncluded: 1, smsIncluded: 1 })
      const message = body(organisation, sandbox[0])
      const { json } = await post(`${sandboxBase}${path}`, organisation.liveKey, message)
      t.equal(await isSandbox(json.id), false)
      const second = await post(`${sandboxBase}${path}`, organisation.liveKey, message)
      isRefused(t, second, allowanceError)
      t.equal(await usedBy(organisation), 1)
    },
  )

  t.test(`${name} to sandbox recipients: a paused organisation is refused`, async (t) => {
    const organisation = await createOrganisation(sql)
    await sql`select ops.pause(${organisation.id}, 'a test')`
    const message = body(organisation, sandbox[0])
    isRefused(t, await post(`${base}${path}`, organisation.liveKey, message), 'org_paused')
  })
}

t.test(
  'email to sandbox recipients: domain, suppressions and idempotency are checked',
  async (t) => {
    const organisation = await createOrganisation(sql)
    isRefused(
      t,
      await send(organisation, { from: 'a@elsewhere.example', to: at('a') }),
      'domain_not_verified',
    )
    await suppress(sql, organisation, at('gone'))
    isRefused(t, await send(organisation, { to: at('Gone') }), 'recipient_suppressed', {
      to: [`${at('gone')}: manual`],
    })
    const key = { 'Idempotency-Key': 'a' }
    const first = await send(organisation, { to: at('a') }, key)
    const again = await send(organisation, { to: at('a') }, key)
    t.equal(again.text, first.text)
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    isRefused(t, await send(organisation, { to: at('b') }, key), 'idempotency_conflict')
  },
)

t.test('SMS to a sandbox number: shows its segments, and its sender ID is checked', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const price = { segments: 2, credits: 0 }
  const { json } = await post(`${base}/v1/sms`, liveKey, anSms({ body: 'x'.repeat(161) }))
  t.match(json, price)
  t.match((await get(`${base}/v1/sms/${json.id}`, liveKey)).json, price)
  const unknown = anSms({ senderId: 'Unknown' })
  isRefused(t, await post(`${base}/v1/sms`, liveKey, unknown), 'validation_error', {
    senderId: ['is not an approved sender of this organisation'],
  })
})

t.test(
  'complaints about sandbox messages suppress the recipient and do not pause the organisation',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const recipients = [1, 2, 3, 4].map((n) => at(`complaint+${n}`))
    const responses = await Promise.all(recipients.map((to) => send(organisation, { to })))
    const messages = await Promise.all(responses.map(({ json }) => messageOf(sql, json.id)))
    await call('start_emails', { ids: messages.map(({ id }) => id) })
    const receipts = messages.map(({ id }, place) => aComplaint(id, recipients[place]))
    t.equal((await call('finish_poll', { receipts: anyJson(receipts) })).length, 4)
    t.match(await stateOf(sql, organisation), { state: 'active' })
    isRefused(t, await send(organisation, { to: recipients[0] }), 'recipient_suppressed', {
      to: [`${recipients[0]}: complaint`],
    })
    const [row] = await sql`
    select messages_dequeued, emails_sent from app.counters
    where organisation_id = core.decode_id('org', ${organisation.id})`
    t.same(
      row,
      { messagesDequeued: '4', emailsSent: '0' },
      'they count as dequeued, not for the complaint rate',
    )
  },
)

t.test('messages that the sandbox defers: no provider fails and no message is stuck', async (t) => {
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
