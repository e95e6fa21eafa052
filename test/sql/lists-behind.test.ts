import t from 'tap'
import type { Sql } from '../../src/db/client.ts'
import { createDatabase, rolledBack, serviceCall, type Tx } from '../fixtures/database.ts'
import { anEmail, anSms, post } from '../fixtures/http.ts'
import { acceptSmsTogether, acceptTogether, messageOf, PROMOTION } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { runTask, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const organisation = await createOrganisation(sql)

/** Joins a cell whose last heartbeat has this age. */
async function joinCell(tx: Tx | Sql, age: string) {
  await tx`
    insert into app.cells (number, name, subscription, joined_at)
    values (2, 'second', 'postgram_cell_2', now() - interval '1 day')`
  await tx`
    insert into app.cell_heartbeats (cell, heartbeat_at) values (2, now() - ${age}::interval)`
}

const isOk = async (tx: Tx, name: string) => {
  const [row] = await tx`select ok from ops.checks where name = ${name}`
  return row?.ok
}

/** Accepts an email and an SMS of each class, starts all, and returns channel and class of those that were started. */
async function started(tx: Tx) {
  for (const name of ['transactional', 'marketing']) {
    const call = { organisation, mode: 'live', key: `caller:${name}`, isBatch: false } as const
    const email = anEmail(organisation.domain, { class: name })
    await acceptTogether(tx as never, [{ ...call, email }])
    const sms = anSms({ class: name, body: PROMOTION })
    await acceptSmsTogether(tx as never, [{ ...call, key: `sms:${name}`, messages: [sms] }])
  }
  const begin = (channel: 'email' | 'sms') => tx`
    select m.channel, m.class
    from ${channel === 'email' ? tx`api.start_emails` : tx`api.start_sms`}(array(
      select m.id from app.messages m where m.channel = ${channel} and m.status = 'queued')) s
    join app.messages m on m.id = s.id
    order by m.class`
  return [...(await begin('email')), ...(await begin('sms'))].map(
    (row) => `${row.channel} ${row.class}`,
  )
}

t.test('lists of another cell behind: marketing is deferred, the rest is sent', async (t) => {
  await rolledBack(sql, async (tx) => {
    await joinCell(tx, '6 minutes')
    t.equal(await isOk(tx, 'cells'), false)
    t.same(await started(tx), ['email transactional', 'sms transactional'])
    const due = await tx`
      select m.channel, m.class, m.status, d.due_at between now() + interval '4 minutes' and now() + interval '6 minutes' as soon
      from app.due_messages d join app.messages m on m.id = d.message_id order by m.channel`
    const waits = { class: 'marketing', status: 'queued', soon: true }
    t.match(
      [...due],
      [
        { ...waits, channel: 'email' },
        { ...waits, channel: 'sms' },
      ],
    )
  })
})

t.test('lists of another cell in step: marketing is attempted', async (t) => {
  await rolledBack(sql, async (tx) => {
    await joinCell(tx, '4 minutes')
    t.equal(await isOk(tx, 'cells'), true)
    t.ok((await started(tx)).includes('email marketing'))
  })
})

t.test('marketing that waited for lists: is sent once they have caught up', async (t) => {
  const { base, stop } = await startTestService(url, { roles: ['api', 'worker'] })
  t.teardown(async () => {
    await stop()
    await sql`delete from app.cells`
    await sql`delete from app.cell_heartbeats`
  })
  await joinCell(sql, '6 minutes')
  const { json } = await post(
    `${base}/v1/emails`,
    organisation.liveKey,
    anEmail(organisation.domain, { class: 'marketing' }),
  )
  await until('deferral', async () => (await sql`select from app.due_messages`).length === 1)
  const [row] = await sql`select ops.why(${json.id}) as why`
  t.match(
    row?.why,
    /because marketing waits until the lists of all cells are up to date: select \* from ops\.cells\.$/,
  )
  await sql`update app.cell_heartbeats set heartbeat_at = now()`
  await sql`update app.due_messages set due_at = now()`
  t.equal(await runTask('enqueue-due-messages', { call: serviceCall(url) }), 1)
  await until('delivery', async () => (await messageOf(sql, json.id)).status === 'delivered')
})

t.test('ops.checks: reports a cell whose subscription is missing', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.equal(await isOk(tx, 'cell subscriptions'), true, 'without other cells')
    await joinCell(tx, '1 second')
    t.equal(await isOk(tx, 'cell subscriptions'), false)
  })
})

t.test(
  'core.record_cell_heartbeat: writes at most every 4 s, and nothing without cells',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      const heartbeats = () => tx`
      select cell, heartbeat_at = now() as is_new from app.cell_heartbeats`
      await tx`select core.record_cell_heartbeat()`
      t.same([...(await heartbeats())], [])
      await tx`insert into app.cell_heartbeats (cell, heartbeat_at) values (1, now() - interval '3 seconds')`
      await tx`select core.record_cell_heartbeat()`
      t.same([...(await heartbeats())], [{ cell: 1, isNew: false }])
      await tx`update app.cell_heartbeats set heartbeat_at = now() - interval '5 seconds'`
      await tx`select core.record_cell_heartbeat()`
      t.same([...(await heartbeats())], [{ cell: 1, isNew: true }])
    })
  },
)
