import t from 'tap'
import type { Receipt } from '../../src/db/api.gen.ts'
import type { Sql } from '../../src/db/client.ts'
import { createDatabase, rolledBack, serviceCall } from '../fixtures/database.ts'
import { anSms, post } from '../fixtures/http.ts'
import { messageOf, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation, listOf } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

// Two cells. What replication does between them, carry() does here.

const here = await createDatabase()
const there = await createDatabase()
await there.sql`select ops.set_cell(2, 'second')`
const call = serviceCall(here.url)
const callThere = serviceCall(there.url)
const cells = [
  [here.sql, 2],
  [there.sql, 1],
] as const
for (const [sql, other] of cells) {
  await sql`
    insert into app.cells (number, name, subscription, joined_at)
    values (${other}, 'other', ${`postgram_cell_${other}`}, now())`
}

const moved = await createOrganisation(there.sql, { name: 'Moved' })
const { base } = await startTestService(there.url, { roles: ['api'] })

type Row = { cell: number; id: string; kind: string; content: unknown; receivedAt: Date }

const forwarded = (sql: Sql) => sql<Row[]>`
  select f.cell, f.id, f.kind, f.content, f.received_at
  from app.forwarded_receipts f where f.cell = (select c.number from app.cell c) order by f.kind`

const kinds = async (sql: Sql) => (await forwarded(sql)).map(({ kind }) => kind)

/** Brings the rows of this cell to the other one. */
async function carry() {
  for (const { cell, id, kind, content, receivedAt } of await forwarded(here.sql)) {
    await there.sql`
      insert into app.forwarded_receipts (cell, id, kind, content, received_at)
      values (${cell}, ${id}, ${kind}, ${JSON.stringify(content)}::text::jsonb, ${receivedAt})
      on conflict do nothing`
  }
}

/** Brings the rows of this cell to the other one, which takes them. Returns how many it took. */
async function take(): Promise<number> {
  await carry()
  let total = 0
  for (;;) {
    const count = await callThere('take_forwarded_receipts', {})
    total += count
    if (count === 0) return total
  }
}

/** Sends a message there, which a provider has taken. Returns its ID and its UUID. */
async function aSentMessage(body: Record<string, unknown> | null = null) {
  const sms = body && (await post(`${base}/v1/sms`, moved.liveKey, anSms(body)))
  const id: string = sms ? sms.json.id : await send(base, moved, { to: 'jane@acme.example' })
  const { id: uuid } = await messageOf(there.sql, id)
  await there.sql`
    update app.messages set status = 'sent', sent_at = now(), attempts = 1, provider = 'smpp'
    where id = ${uuid}`
  await there.sql`delete from graphile_worker._private_jobs`
  return { id, uuid }
}

const bounceOf = (message_id: string, recipient = 'jane@acme.example'): Receipt => ({
  message_id,
  provider_event_id: `mailgun:${message_id}`,
  type: 'bounced',
  occurred_at: new Date().toISOString(),
  recipient,
  is_hard: true,
  text: 'gone',
})

const stopFrom = (from: string) => ({
  provider: 'smpp',
  from,
  to: '+27820000009',
  keyword: 'stop' as const,
  word: 'STOP',
  received_at: new Date().toISOString(),
})

t.afterEach(async () => {
  for (const [sql] of cells) {
    await sql`delete from app.forwarded_receipts`
    await sql`delete from app.suppressions`
    await sql`delete from app.hard_bounces`
  }
})

t.test('an email receipt of an unknown message: the other cell records it, once', async (t) => {
  const { id, uuid } = await aSentMessage()
  const receipts = [bounceOf(uuid)]
  for (const _ of [1, 2]) t.same(await call('finish_poll', { receipts }), [])
  t.same(await kinds(here.sql), ['receipt'], 'a repeated receipt is forwarded once')
  t.equal(await take(), 1)
  t.equal((await messageOf(there.sql, id)).status, 'bounced')
  t.match(await listOf(there.sql, moved), [{ email: 'jane@acme.example', reason: 'hard_bounce' }])
  t.equal(await take(), 0)
  t.equal((await timelineOf(there.sql, id)).filter(({ type }) => type === 'bounced').length, 1)
})

t.test(
  'a receipt that no cell knows: the other cell ignores it and forwards nothing',
  async (t) => {
    const unknown = '01890000-0000-7000-8000-000000000000'
    await call('finish_poll', { receipts: [bounceOf(unknown)] })
    t.equal(await take(), 1)
    t.same(await kinds(there.sql), [])
  },
)

t.test(
  'receipts of known messages, and a service without other cells: nothing is stored',
  async (t) => {
    const { uuid } = await aSentMessage()
    await callThere('finish_poll', { receipts: [bounceOf(uuid)] })
    t.same(await kinds(there.sql), [])
    await rolledBack(here.sql, async (tx) => {
      await tx`delete from app.cells`
      await tx`select core.record_receipts(${JSON.stringify([bounceOf(uuid)])}::text::jsonb)`
      t.same([...(await tx`select from app.forwarded_receipts`)], [])
    })
  },
)

t.test('an SMS receipt of an unknown part: the cell with the part records it', async (t) => {
  const phone = '+447700900001'
  const { id, uuid } = await aSentMessage({ to: phone })
  await there.sql`
    insert into app.sms_parts (message_id, part, provider, network_id, phone, taken_at)
    values (${uuid}, 1, 'smpp', 'aa01', ${phone}, now())`
  const receipt = (network_id: string, of: string) => ({
    provider: 'smpp',
    network_ids: [network_id],
    phone: of,
    type: 'delivered',
    occurred_at: new Date().toISOString(),
  })
  await call('record_sms_receipts', {
    receipts: [
      receipt('aa01', phone),
      receipt('aa02', '+447700900002'),
      receipt('aa01', '+447700900003'),
    ],
  })
  t.same(await kinds(here.sql), ['sms_receipt', 'sms_receipt', 'sms_receipt'])
  t.equal(await take(), 3)
  t.equal((await messageOf(there.sql, id)).status, 'delivered')
  t.same([...(await there.sql`select from app.early_receipts`)], [], 'the others are ignored')
  t.same(await kinds(there.sql), [])
})

t.test('STOP to a number of the other cell: the phone is opted out there', async (t) => {
  await there.sql`select ops.approve_sender(${moved.id}, '+27820000009')`
  t.same(await call('record_keywords', { messages: [stopFrom('+27821230005')] }), ['unknown'])
  t.equal(await take(), 1)
  t.match(
    [...(await there.sql`select phone, opted_out_by from ops.consents`)],
    [{ phone: '+27821230005', optedOutBy: 'STOP' }],
  )
})

t.test('an organisation that moved: what arrives for it changes nothing here', async (t) => {
  const { id, uuid } = await aSentMessage()
  const [{ org } = {}] = await there.sql<
    { org: string }[]
  >`select core.decode_id('org', ${moved.id}) as org`
  const unsubscribe = { organisation_id: `${org}`, email: 'reader@acme.example', message_id: uuid }
  t.equal(await call('organisation_name', { organisation_id: `${org}` }), null, 'not known before')

  // As a division leaves it in the old cell, before its messages are purged.
  const left = await createOrganisation(here.sql, { name: 'Moved' })
  const [{ uuid: old } = {}] = await here.sql<{ uuid: string }[]>`
    select core.decode_id('org', ${left.id}) as uuid`
  await here.sql`
    insert into app.organisations (id, name, owner_email, plan_id, suspended_at, suspension_reason, activated_at)
    select ${`${org}`}, o.name, o.owner_email, o.plan_id, now(), 'moved to cell 2', now()
    from app.organisations o where o.id = ${`${old}`}`
  await here.sql`
    insert into app.moved_organisations (organisation_id, cell, moved_at, numbers)
    values (${`${org}`}, 2, now(), '{+27820000009}')`
  const [message] = await there.sql<{ row: unknown }[]>`
    select to_jsonb(m) as row from app.messages m where m.id = ${uuid}`
  await here.sql`
    insert into app.messages
    select m.* from jsonb_populate_record(null::app.messages, ${JSON.stringify(message?.row)}::text::jsonb) m`

  t.equal(await call('organisation_name', { organisation_id: `${org}` }), 'Moved')
  t.equal(await call('unsubscribe', unsubscribe), 'Moved')
  await call('finish_poll', { receipts: [bounceOf(uuid)] })
  t.equal((await messageOf(here.sql, id)).status, 'sent')
  t.same([...(await here.sql`select from app.suppressions`)], [])
  t.same([...(await here.sql`select from app.hard_bounces`)], [])
  t.same(await kinds(here.sql), ['receipt', 'unsubscribe'])

  // Without the numbers of the organisation, the STOP would be one to the alphanumeric sender of another one.
  await here.sql`
    insert into app.messages (id, organisation_id, channel, mode, class, status, from_address, to_address, tags,
      recipients, segments, credits, created_at, sent_at)
    values (core.new_id(now()), ${`${old}`}, 'sms', 'live', 'transactional', 'sent', 'Acme', '+27821230006', '{}',
      1, 1, 0, now(), now())`
  t.same(await call('record_keywords', { messages: [stopFrom('+27821230006')] }), ['unknown'])
  t.same([...(await here.sql`select from app.consents`)], [])

  await there.sql`delete from app.suppressions`
  t.equal(await take(), 3)
  t.equal(
    (
      await there.sql`select from ops.consents where phone = '+27821230006' and opted_out_by = 'STOP'`
    ).length,
    1,
  )
  t.equal((await messageOf(there.sql, id)).status, 'bounced')
  t.match(await listOf(there.sql, moved), [
    { email: 'jane@acme.example', reason: 'hard_bounce' },
    { email: 'reader@acme.example', reason: 'unsubscribe' },
  ])
  t.same(await kinds(there.sql), [])
})

t.test('forwarded receipts are deleted after a day, unless a cell is behind', async (t) => {
  await call('finish_poll', { receipts: [bounceOf('01890000-0000-7000-8000-000000000001')] })
  await rolledBack(here.sql, async (tx) => {
    const removed = async () =>
      (await tx<{ count: number }[]>`select api.delete_old_early_receipts() as count`)[0]?.count
    t.equal(await removed(), 0)
    await tx`update app.forwarded_receipts set received_at = now() - interval '25 hours'`
    await tx`update app.cells set joined_at = now() - interval '1 hour'`
    t.equal(await removed(), 0, 'the other cell is behind')
    await tx`insert into app.cell_heartbeats (cell, heartbeat_at) values (2, now())`
    t.equal(await removed(), 1)
  })
})

t.test('ops.erase_person: deletes forwarded receipts that name the person', async (t) => {
  await call('finish_poll', { receipts: [bounceOf('01890000-0000-7000-8000-000000000002')] })
  const [record] = await here.sql`
    select kind, data from ops.export_person('jane@acme.example') where kind = 'forwarded receipt'`
  t.match(record, { data: { recipient: 'jane@acme.example' } })
  await here.sql`select ops.erase_person('jane@acme.example')`
  t.same(await kinds(here.sql), [])
})
