import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase } from '../fixtures/database.ts'
import {
  finishSmsAt,
  jobsOf,
  messageOf,
  PROMOTION,
  sendSms,
  startSmsAt,
  sweepAt,
} from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startApiAt } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

const NOW = '2028-02-29T10:00:00+02:00'
const NOON = '2028-02-29T12:00:00+02:00'
const { base } = await startApiAt(sql, url, NOW)
const PHONE = '+27821234567'
const SCHEDULED = 'The message is scheduled for 2028-02-29T10:00:00.000Z'

const whyAt = async (time: string, id: string) => {
  const [row] = await atTime(sql, time, (tx) => tx<{ why: string }[]>`select ops.why(${id}) as why`)
  return row?.why ?? ''
}
const retryAt = (time: string, id: string) =>
  atTime(sql, time, (tx) => tx`select ops.retry_message(${id})`)
const stuckAt = (time: string, id: string) =>
  atTime(
    sql,
    time,
    (tx) => tx`select scheduled_at, age::text from ops.stuck_messages where id = ${id}`,
  )
const pauseAt = (time: string, organisation: { id: string }) =>
  atTime(sql, time, (tx) => tx`select ops.pause(${organisation.id}, 'a look')`)

/** Registers a process with these roles that does nothing. */
async function pretend(...roles: string[]) {
  const session = connect(url, { max: 1 })
  await session`select api.record_heartbeat('pretended-process', ${roles}::text[], 'here', 1, '1.2.3', now())`
  return async () => {
    await session`select api.deregister('pretended-process')`
    await session.end()
  }
}

t.test('ops.why: a scheduled SMS has its time and what would reject it', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await sendSms(base, organisation, { scheduledAt: NOON })
  t.equal(await whyAt(NOW, id), `${SCHEDULED}.`)

  const promotion = { class: 'marketing', body: PROMOTION, to: PHONE }
  const marketing = await sendSms(base, organisation, { ...promotion, scheduledAt: NOON })
  t.match(
    await whyAt(NOW, marketing),
    new RegExp(`^${SCHEDULED}; it would be rejected at that time: There is no record .*\\.$`),
  )
  await sql`select ops.record_consent(${organisation.id}, ${PHONE}, 'a form')`
  t.equal(await whyAt(NOW, marketing), `${SCHEDULED}.`)
  const sunday = await sendSms(base, organisation, {
    ...promotion,
    scheduledAt: '2028-03-05T12:00:00+02:00',
  })
  t.match(await whyAt(NOW, sunday), /rejected at that time: Marketing is sent from 08:00 to 20:00/)

  await pauseAt(NOW, organisation)
  t.equal(
    await whyAt(NOW, id),
    `${SCHEDULED}; its organisation ${organisation.id} has been paused since 2028-02-29T08:00:00.000Z: a look; ` +
      'unless it is resumed by then, the message waits.',
  )
  await atTime(sql, NOW, (tx) => tx`select ops.suspend(${organisation.id}, 'fraud')`)
  t.match(
    await whyAt(NOW, id),
    /has been suspended since .*: fraud; unless it is reinstated by then, the message is rejected\.$/,
  )
})

t.test('ops.why: a due SMS names the missing worker or clock', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await sendSms(base, organisation, { scheduledAt: NOON })
  t.match(await whyAt(NOON, id), /^The message waits because no worker is running/)
  const leaveWorker = await pretend('worker')
  t.equal(
    await whyAt(NOON, id),
    'The message has been due since 2028-02-29T10:00:00.000Z and waits because no clock is running; start one with the command "start" or "start --only clock".',
  )
  await leaveWorker()
  const leave = await pretend('worker', 'clock')
  t.equal(
    await whyAt(NOON, id),
    'The message has been due since 2028-02-29T10:00:00.000Z; the clock releases it within a minute.',
  )
  await sweepAt(sql, NOON)
  t.match(await whyAt(NOON, id), /^The message waits behind (1 message|\d+ messages)\.$/)
  await sql`delete from graphile_worker._private_jobs`
  t.match(
    await whyAt(NOON, id),
    /^The message is scheduled but has no job; this is a bug, please report it\. select ops\.retry_/,
  )
  await retryAt(NOON, id)
  t.equal((await jobsOf(sql, id)).length, 1)
  t.same(await startSmsAt(sql, NOON, id), [id])
  await leave()
})

t.test('ops.why: a held SMS has the time until which it can be sent', async (t) => {
  const organisation = await createOrganisation(sql)
  const [id, unscheduled] = [
    await sendSms(base, organisation, { scheduledAt: NOON }),
    await sendSms(base, organisation),
  ]
  await pauseAt(NOW, organisation)
  await sweepAt(sql, NOON)
  await startSmsAt(sql, NOON, id, unscheduled)
  t.match(
    await whyAt('2028-02-29T13:00:00+02:00', id),
    /has been paused since .*: a look; select ops\.resume\(…\) sends it until 2028-03-01T10:00:00\.000Z; after that it is rejected\.$/,
  )
  t.match(await whyAt(NOON, unscheduled), /a look; select ops\.resume\(…\) sends it\.$/)
})

t.test('ops.why: a rejected or deferred SMS has the reason', async (t) => {
  const organisation = await createOrganisation(sql)
  const marketing = await sendSms(base, organisation, { class: 'marketing', body: PROMOTION })
  await startSmsAt(sql, NOW, marketing)
  t.match(
    await whyAt(NOW, marketing),
    /^The message does not wait: its status is rejected \(There is no record .*\)\.$/,
  )
  const leave = await pretend('worker', 'clock')
  const id = await sendSms(base, organisation)
  await startSmsAt(sql, NOW, id)
  await sql`delete from graphile_worker._private_jobs`
  await finishSmsAt(sql, NOW, id, { outcome: 'deferred', code: '88', text: 'Throttled.' })
  t.match(await whyAt(NOW, id), /^The message waits for attempt 2 at .* because .*Throttled\.$/)
  await leave()
})

t.test('ops.stuck_messages: a scheduled SMS is stuck only after its time', async (t) => {
  const organisation = await createOrganisation(sql)
  const scheduledAt = '2028-03-20T12:00:00+02:00'
  const isStuck = [{ scheduledAt: new Date(scheduledAt), age: '00:02:00' }]
  const [time, later] = ['2028-03-20T12:01:00+02:00', '2028-03-20T12:02:00+02:00']
  const id = await sendSms(base, organisation, { scheduledAt })
  t.same([...(await stuckAt('2028-03-20T12:00:00+02:00', id))], [])
  t.same([...(await stuckAt(time, id))], [])
  t.match(await stuckAt(later, id), isStuck, 'as no clock released it')
  await sweepAt(sql, scheduledAt)
  t.same([...(await stuckAt(time, id))], [])
  t.match(await stuckAt(later, id), isStuck, 'as no worker took it')
  await startSmsAt(sql, scheduledAt, id)
  await sql`delete from graphile_worker._private_jobs`
  await finishSmsAt(sql, scheduledAt, id, { outcome: 'deferred', text: 'Throttled.' })
  t.match(await stuckAt(later, id), isStuck, 'as the network refuses it')
  await startSmsAt(sql, later, id)
  await finishSmsAt(sql, later, id, { outcome: 'sent', parts: [{ part: 1, network_id: 'it' }] })
  t.same([...(await stuckAt(later, id))], [])
})

t.test('ops.stuck_messages: a scheduled SMS counts from its time, not its creation', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await sendSms(base, organisation, { scheduledAt: NOON })
  await startSmsAt(sql, NOON, id)
  t.same([...(await stuckAt('2028-02-29T12:00:30+02:00', id))], [])
  t.match(await stuckAt('2028-02-29T12:01:30+02:00', id), [{ age: '00:01:30' }])
})

t.test('ops.retry_message: retries a waiting SMS and refuses others', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await sendSms(base, organisation)
  await sql`delete from graphile_worker._private_jobs`
  await retryAt(NOW, id)
  t.equal((await jobsOf(sql, id)).length, 1)

  const scheduled = await sendSms(base, organisation, { scheduledAt: NOON })
  await t.rejects(retryAt(NOW, scheduled), {
    message: 'the SMS is scheduled for 2028-02-29T10:00:00.000Z and cannot be sent earlier',
  })
  await retryAt(NOON, scheduled)
  t.equal((await jobsOf(sql, scheduled)).length, 1)

  await startSmsAt(sql, NOW, id)
  await finishSmsAt(sql, NOW, id, { outcome: 'failed', text: 'No such number.' })
  t.match(await messageOf(sql, id), { status: 'failed' })
  await t.rejects(retryAt(NOW, id), {
    message: /^a failed SMS cannot be retried, as it may have been refunded;/,
  })
  const rejected = await sendSms(base, organisation, { class: 'marketing', body: PROMOTION })
  await startSmsAt(sql, NOW, rejected)
  await t.rejects(retryAt(NOW, rejected), {
    message: /^the message is rejected; only a waiting message/,
  })
})

t.test('ops.messages: SMS have segments, credits and scheduled time', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await sendSms(base, organisation, { scheduledAt: NOON, body: 'x'.repeat(161) })
  t.match(await sql`select * from ops.messages where id = ${id}`, [
    {
      id,
      status: 'scheduled',
      to: '+447700900000',
      from: 'Postgram',
      subject: null,
      segments: 2,
      credits: 0,
      scheduledAt: new Date(NOON),
    },
  ])
})
