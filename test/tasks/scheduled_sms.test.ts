import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anSms, get, post } from '../fixtures/http.ts'
import {
  backlogOf,
  createOrganisationAt,
  finishSmsAt,
  jobsOf,
  messageOf,
  movementsOf,
  PROMOTION,
  sendSms,
  startSmsAt,
  sweepAt,
  timelineOf,
} from '../fixtures/messages.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startApiAt, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

// A leap day, a Tuesday; times in these tests are South African.
const NOW = '2028-02-29T10:00:00+02:00'
const at = (time: string, day = '2028-02-29') => `${day}T${time}+02:00`
/** As the service shows it. */
const utc = (time: string, day?: string) => new Date(at(time, day)).toISOString()
const { base } = await startApiAt(sql, url, NOW)
const organisation = await createOrganisationAt(sql, NOW)
await liftRate(sql, organisation)

const schedule = (scheduledAt: string, overrides = {}) =>
  sendSms(base, organisation, { scheduledAt, ...overrides })

// Otherwise the next test would sweep what this one leaves behind.
t.beforeEach(() => sql`delete from app.due_messages`)

const dueOf = async (id: string) => {
  const [row] = await sql<{ dueAt: Date | null; lateAt: Date | null }[]>`
    select due_at, late_at from app.due_messages where message_id = core.decode_id('sm', ${id})`
  return row
}

const typesOf = async (id: string) => (await timelineOf(sql, id)).map(({ type }) => type)

t.test('a scheduled SMS from its acceptance to its delivery to the network', async (t) => {
  const scheduledAt = at('18:30:00', '2028-03-20')
  const { json } = await post(`${base}/v1/sms`, organisation.liveKey, anSms({ scheduledAt }))
  t.match(json, { status: 'scheduled', segments: 1 })
  const retrieve = async () => (await get(`${base}/v1/sms/${json.id}`, organisation.liveKey)).json
  t.match(await retrieve(), {
    status: 'scheduled',
    scheduledAt: utc('18:30:00', '2028-03-20'),
    sentAt: null,
    events: [{ type: 'scheduled', occurredAt: utc('10:00:00') }],
  })
  t.equal(await backlogOf(sql, organisation), 0, 'it counts in no backlog')
  t.same(await jobsOf(sql, json.id), [], 'and waits outside the job table')
  t.match(await dueOf(json.id), { dueAt: new Date(scheduledAt) })

  t.equal(await sweepAt(sql, at('18:28:29.999', '2028-03-20')), 0)
  t.equal(await sweepAt(sql, at('18:28:30', '2028-03-20')), 1)
  t.equal(await dueOf(json.id), undefined)
  t.match(await retrieve(), { status: 'scheduled' }, 'until its attempt starts')
  t.same(await startSmsAt(sql, scheduledAt, json.id), [json.id])
  t.match(await retrieve(), {
    status: 'queued',
    events: [
      { type: 'scheduled', occurredAt: utc('10:00:00') },
      { type: 'queued', occurredAt: utc('18:30:00', '2028-03-20') },
    ],
  })
  await finishSmsAt(sql, at('18:30:01', '2028-03-20'), json.id, {
    outcome: 'sent',
    parts: [{ part: 1, network_id: 'whole' }],
  })
  t.match(await retrieve(), {
    status: 'sent',
    sentAt: utc('18:30:01', '2028-03-20'),
    events: [{ type: 'scheduled' }, { type: 'queued' }, { type: 'sent' }],
  })
  t.same(await movementsOf(sql, json.id), ['sms -1'])
  t.equal(await backlogOf(sql, organisation), 0)
})

t.test(
  'scheduledAt: accepts times from now to 30 days ahead, across years and leap days',
  async (t) => {
    const newYear = await startApiAt(sql, url, '2027-12-31T23:59:59.500+02:00')
    for (const [api, scheduledAt, problem] of [
      [base, NOW, null],
      [base, utc('10:00:00'), null],
      [base, at('09:59:59.999'), 'must not be in the past'],
      [base, at('10:00:00', '2028-03-30'), null],
      [base, '2028-03-30T08:00:00Z', null],
      [base, '2028-03-30T04:00:00-04:00', null],
      [base, at('10:00:00.001', '2028-03-30'), 'must be at most 30 days ahead'],
      [base, '2028-03-30T08:00:00-04:00', 'must be at most 30 days ahead'],
      [newYear.base, '2027-12-31T23:59:59.500+02:00', null],
      [newYear.base, '2028-01-01T00:00:00+02:00', null],
      [newYear.base, '2027-12-31T23:59:59.499+02:00', 'must not be in the past'],
      [newYear.base, '2028-01-30T23:59:59.500+02:00', null],
      [newYear.base, '2028-01-30T23:59:59.501+02:00', 'must be at most 30 days ahead'],
    ] as const) {
      const { status, json } = await post(
        `${api}/v1/sms`,
        organisation.liveKey,
        anSms({ scheduledAt }),
      )
      if (problem === null) {
        t.equal(status, 200, scheduledAt)
        t.equal(json.status, 'scheduled')
      } else {
        t.equal(status, 422, scheduledAt)
        t.same(json.error.fields, { scheduledAt: [problem] })
      }
    }
  },
)

t.test('a scheduled SMS due within 90 s has a job for its exact time', async (t) => {
  const soon = await schedule(at('10:01:30'))
  const later = await schedule(at('10:01:30.001'))
  const now = await schedule(NOW)
  const [[soonJob], [nowJob]] = [await jobsOf(sql, soon), await jobsOf(sql, now)]
  t.equal(await dueOf(soon), undefined)
  t.ok(soonJob && nowJob)
  // Jobs have the server's time, messages the service's; both were accepted just now.
  const [row] = await sql<{ early: number }[]>`
    select extract(epoch from j.run_at - j.created_at)::float8 as early
    from graphile_worker._private_jobs j where j.id = ${soonJob?.id ?? ''}`
  t.equal(row?.early, 90)
  t.same(await jobsOf(sql, later), [])
  t.match(await dueOf(later), { dueAt: new Date(at('10:01:30.001')) })
  t.equal(await sweepAt(sql, NOW), 0)
  t.equal(await sweepAt(sql, at('10:00:00.001')), 1)
  t.same(await startSmsAt(sql, NOW, now), [now])
  t.same(await typesOf(now), ['scheduled', 'queued'], 'in this order, though at the same time')
})

t.test('a sweep adds jobs for the exact times of due SMS', async (t) => {
  const times = ['09:00:00', '09:00:01', '09:00:29.999', '09:00:30', '09:00:30.001']
  const ids = await Promise.all(times.map((time) => schedule(at(time, '2028-03-01'))))
  t.equal(await sweepAt(sql, at('08:59:00', '2028-03-01')), 4)
  const [first] = await jobsOf(sql, ids[0] ?? '')
  const runAts = await Promise.all(
    ids.slice(0, 4).map(async (id) => Number((await jobsOf(sql, id))[0]?.runAt)),
  )
  t.same(
    runAts.map((runAt) => runAt - Number(first?.runAt)),
    [0, 1000, 29_999, 30_000],
  )
  t.same(await jobsOf(sql, ids[4] ?? ''), [])
})

t.test('scheduled SMS of a paused organisation wait until it is resumed', async (t) => {
  const owner = await createOrganisationAt(sql, NOW)
  const scheduledAt = at('12:00:00')
  const id = await sendSms(base, owner, { scheduledAt })
  await sql`select ops.pause(${owner.id}, 'a test')`
  t.equal(await sweepAt(sql, at('11:59:00')), 1)
  t.same(await startSmsAt(sql, scheduledAt, id), [])
  t.match(await messageOf(sql, id), { status: 'scheduled', attempts: 0 })
  t.same(await typesOf(id), ['scheduled'])
  t.match(await dueOf(id), {
    dueAt: null,
    lateAt: new Date(at('12:00:00', '2028-03-01')),
  })
  t.equal(await sweepAt(sql, at('12:00:00', '2028-03-01')), 0, 'for 24 hours')
  await sql`select ops.resume(${owner.id})`
  t.same(await startSmsAt(sql, at('12:00:00', '2028-03-01'), id), [id])
  t.same(await typesOf(id), ['scheduled', 'queued'])
})

t.test(
  'scheduled SMS of a paused organisation are rejected and refunded after 24 hours',
  async (t) => {
    const owner = await createOrganisationAt(sql, NOW)
    const id = await sendSms(base, owner, { scheduledAt: at('12:00:00') })
    const unscheduled = await sendSms(base, owner)
    await sql`select ops.pause(${owner.id}, 'a test')`
    await sweepAt(sql, at('12:00:00'))
    await startSmsAt(sql, at('12:00:00'), id, unscheduled)
    await sql`delete from graphile_worker._private_jobs`

    const late = at('12:00:00.001', '2028-03-01')
    t.equal(await sweepAt(sql, late), 1, 'it is released although its organisation is still paused')
    t.equal((await jobsOf(sql, id)).length, 1)
    t.same(await startSmsAt(sql, late, id), [])
    t.match(await messageOf(sql, id), {
      status: 'rejected',
      errorCode: 'expired',
      errorMessage: 'It could not be sent within 24 hours of the time that it was scheduled for.',
    })
    t.same(await typesOf(id), ['scheduled', 'rejected'])
    t.same(await movementsOf(sql, id), ['sms -1', 'refund 1'])
    t.equal(await sweepAt(sql, late), 0)
    t.match(
      await messageOf(sql, unscheduled),
      { status: 'queued' },
      'unscheduled SMS continue to wait',
    )
    t.equal(await backlogOf(sql, owner), 1)
  },
)

t.test('a scheduled SMS resumed more than 24 hours late is rejected', async (t) => {
  const owner = await createOrganisationAt(sql, NOW)
  const id = await sendSms(base, owner, { scheduledAt: at('12:00:00') })
  await sql`select ops.pause(${owner.id}, 'a test')`
  await sweepAt(sql, at('12:00:00'))
  await startSmsAt(sql, at('12:00:00'), id)
  t.match(await sql`select ops.resume(${owner.id}) as released`, [{ released: 1 }])
  t.same(await startSmsAt(sql, at('12:00:01', '2028-03-01'), id), [])
  t.match(await messageOf(sql, id), { status: 'rejected', errorCode: 'expired' })
})

t.test('a scheduled SMS that no worker took for 24 hours is rejected and refunded', async (t) => {
  const [intime, late] = [await schedule(at('12:00:00')), await schedule(at('12:00:00'))]
  t.same(await startSmsAt(sql, at('12:00:00', '2028-03-01'), intime), [intime])
  t.same(await startSmsAt(sql, at('12:00:00.001', '2028-03-01'), late), [])
  t.match(await messageOf(sql, late), { status: 'rejected', errorCode: 'expired' })
  t.same(await movementsOf(sql, late), ['sms -1', 'refund 1'])
})

t.test(
  'scheduled SMS of a suspended organisation are rejected and refunded at their time',
  async (t) => {
    const owner = await createOrganisationAt(sql, NOW)
    const [held, later, back] = [
      await sendSms(base, owner, { scheduledAt: at('12:00:00') }),
      await sendSms(base, owner, { scheduledAt: at('13:00:00') }),
      await sendSms(base, owner, { scheduledAt: at('14:00:00') }),
    ]
    await sql`select ops.pause(${owner.id}, 'a test')`
    await sweepAt(sql, at('12:00:00'))
    await startSmsAt(sql, at('12:00:00'), held)
    t.match(await sql`select ops.suspend(${owner.id}, 'a test') as released`, [{ released: 1 }])
    await sweepAt(sql, at('13:00:00'))
    t.same(await startSmsAt(sql, at('13:00:00'), held, later), [])
    for (const id of [held, later]) {
      t.match(await messageOf(sql, id), { status: 'rejected', errorCode: 'org_suspended' })
      t.same(await movementsOf(sql, id), ['sms -1', 'refund 1'])
    }
    await sql`select ops.reinstate(${owner.id})`
    await sql`select ops.resume(${owner.id})`
    t.same(await startSmsAt(sql, at('14:00:00'), back), [back], 'not before it')
  },
)

t.test('scheduled marketing SMS: the rules at the scheduled time apply', async (t) => {
  const phone = '+27821234567'
  await sql`select ops.record_consent(${organisation.id}, ${phone}, 'a form')`
  const promotion = { class: 'marketing', body: PROMOTION, to: phone }
  const sunday = await schedule(at('12:00:00', '2028-03-05'), promotion)
  const evening = await schedule(at('20:00:00'), promotion)
  const intime = await schedule(at('19:59:59'), promotion)
  t.same(await startSmsAt(sql, at('12:00:00', '2028-03-05'), sunday), [])
  t.same(await startSmsAt(sql, at('20:00:00'), evening), [])
  t.same(await startSmsAt(sql, at('19:59:59'), intime), [intime])
  for (const id of [sunday, evening]) {
    t.match(await messageOf(sql, id), { status: 'rejected', errorCode: 'outside_sending_hours' })
    t.same(await typesOf(id), ['scheduled', 'rejected'])
    t.same(await movementsOf(sql, id), ['sms -1', 'refund 1'])
  }
})

t.test('SMS released together get priorities by the backlog of their organisation', async (t) => {
  await sql`delete from graphile_worker._private_jobs`
  const [loud, quiet] = [await createOrganisationAt(sql, NOW), await createOrganisationAt(sql, NOW)]
  await sql`select ops.grant_credits(${loud.id}, 1000, 'a test')`
  const scheduledAt = at('09:00:00', '2028-03-02')
  const messages = Array.from({ length: 350 }, () => anSms({ scheduledAt }))
  const batch = await post(`${base}/v1/sms/batch`, loud.liveKey, { messages })
  t.ok(batch.json.results.every(({ ok }: { ok: boolean }) => ok))
  const one = await sendSms(base, quiet, { scheduledAt })
  // The waiting SMS of the organisation are before all of them.
  const waiting = Array.from({ length: 100 }, () => anSms())
  await post(`${base}/v1/sms/batch`, loud.liveKey, { messages: waiting })
  await sql`delete from graphile_worker._private_jobs`
  // As if each had been the first when it was accepted.
  await sql`update app.due_messages set priority = 0`

  t.equal(await sweepAt(sql, at('08:59:00', '2028-03-02')), 351)
  t.match(await jobsOf(sql, one), [{ priority: 0 }])
  const rows = await sql<{ priority: number; jobs: number }[]>`
    select j.priority, count(*)::integer as jobs
    from core.message_jobs() j
    where j.message_id <> core.decode_id('sm', ${one})
    group by j.priority order by j.priority`
  t.same(
    rows.map(({ priority, jobs }) => [priority, jobs]),
    [
      [1, 99],
      [2, 100],
      [3, 100],
      [4, 51],
    ],
  )
})

t.test('a scheduled SMS is sent at its time, not before, by a worker and a clock', async (t) => {
  const { url, sql } = await createDatabase()
  const { base } = await startTestService(url)
  const owner = await createOrganisation(sql)
  // A minute ahead, so that a slow machine accepts it in time; then it is moved close to now.
  const inAMinute = new Date(Date.now() + 60_000).toISOString()
  const id = await sendSms(base, owner, { scheduledAt: inAMinute })
  const [sms] = await sql<{ scheduledAt: Date }[]>`
    with job as (
      update graphile_worker._private_jobs set run_at = run_at - interval '57 seconds'
      where payload ->> 'id' = core.decode_id('sm', ${id})::text
      returning id
    )
    update app.messages m set scheduled_at = m.scheduled_at - interval '57 seconds'
    from job where m.id = core.decode_id('sm', ${id})
    returning m.scheduled_at`
  const scheduledAt = sms?.scheduledAt
  const atOnce = await sendSms(base, owner)
  const { sentAt } = await until('both to be sent', async () => {
    const [first, last] = [await messageOf(sql, atOnce), await messageOf(sql, id)]
    return first.sentAt && last.sentAt ? last : null
  })
  t.ok(Number(sentAt) >= Number(scheduledAt), `${sentAt?.toISOString()}`)
  t.same(
    (await timelineOf(sql, id)).slice(0, 3).map(({ type }) => type),
    ['scheduled', 'queued', 'sent'],
  )
})
