import t from 'tap'
import { createDatabase, serviceCall, untilLocked } from '../fixtures/database.ts'
import { anyJson, haveSent, type Sent } from '../fixtures/messages.ts'
import {
  aComplaint,
  createOrganisation,
  noticesOf,
  stateOf,
  type TestOrganisation,
} from '../fixtures/organisation.ts'

const { url, sql } = await createDatabase()
const call = serviceCall(url, { max: 20 })

const record = (receipts: object[]) => call('finish_poll', { receipts: anyJson(receipts) })

/** Returns the state of an organisation that sent `sent` emails, after `complaints` receipts one by one. */
async function afterComplaints(complaints: number, sent: number, how?: Sent) {
  const organisation = await createOrganisation(sql)
  const ids = await haveSent(sql, organisation, sent, how)
  for (const id of ids.slice(0, complaints)) await record([aComplaint(id)])
  return { organisation, ids, ...(await stateOf(sql, organisation)) }
}

const countedOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::integer as n from app.complaints
    where organisation_id = core.decode_id('org', ${id})`
  return row?.n
}

/** Moves an organisation's complaints into the past, by the database's clock. */
const ageComplaints = ({ id }: TestOrganisation, hours: number) => sql`
  update app.complaints set received_at = received_at - ${hours}::float8 * interval '1 hour'
  where organisation_id = core.decode_id('org', ${id})`

t.test('complaints: the third one pauses sending, the second does not', async (t) => {
  t.match(await afterComplaints(2, 2), { state: 'active', reason: null })
  const { organisation, state, reason } = await afterComplaints(3, 10)
  t.equal(state, 'paused')
  t.equal(reason, '3 complaints about 10 emails sent within 24 hours')
  const [since] = await sql`
    select state_since > now() - interval '1 minute' as is_now from ops.organisations
    where id = ${organisation.id}`
  t.match(since, { isNow: true })
})

t.test('complaints: a rate of 0.1 % pauses sending, a lower one does not', async (t) => {
  t.match(await afterComplaints(3, 3000), { state: 'paused' })
  const busy = await afterComplaints(3, 3001)
  t.match(busy, { state: 'active' })
  await record([aComplaint(String(busy.ids[4]))])
  t.match(await stateOf(sql, busy.organisation), {
    state: 'paused',
    reason: '4 complaints about 3001 emails sent within 24 hours',
  })
})

t.test('complaints: one call with several counts like several calls', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await haveSent(sql, organisation, 3)
  await record(ids.map((id) => aComplaint(id)))
  t.match(await stateOf(sql, organisation), { state: 'paused' })
})

t.test('complaints: each counts once for message and recipient', async (t) => {
  const organisation = await createOrganisation(sql)
  const [one = '', two = ''] = await haveSent(sql, organisation, 2)
  const again = aComplaint(one)
  await record([again, again, aComplaint(one), aComplaint(one, 'B@C.example')])
  await record([again])
  await record([aComplaint(one)])
  t.equal(await countedOf(organisation), 1)
  await record([aComplaint(one, 'another@c.example')])
  t.equal(await countedOf(organisation), 2)
  t.match(await stateOf(sql, organisation), { state: 'active' })
  await record([aComplaint(two)])
  t.equal(await countedOf(organisation), 3)
  t.match(await stateOf(sql, organisation), { state: 'paused' })
})

t.test('complaints: each counts for 24 hours after it was received', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await haveSent(sql, organisation, 10)
  const longAgo = new Date(Date.now() - 100 * 3_600_000).toISOString()
  for (const id of ids.slice(0, 2)) await record([{ ...aComplaint(id), occurred_at: longAgo }])
  await ageComplaints(organisation, 24.1)
  await record([aComplaint(String(ids[2]))])
  t.match(await stateOf(sql, organisation), { state: 'active' }, 'two are too old')
  await ageComplaints(organisation, -1)
  await record([{ ...aComplaint(String(ids[3])), occurred_at: longAgo }])
  t.match(await stateOf(sql, organisation), {
    state: 'paused',
    reason: '4 complaints about 10 emails sent within 24 hours',
  })
})

t.test('complaints: the rate counts only live emails sent within 24 hours', async (t) => {
  for (const [how, state] of [
    [{}, 'active'],
    [{ acceptedAgo: 23.9, sentAgo: 23.9 }, 'active'],
    [{ acceptedAgo: 24.1, sentAgo: 24.1 }, 'paused'],
    // Deferred, or held by a pause.
    [{ acceptedAgo: 30, sentAgo: 20 }, 'active'],
    [{ acceptedAgo: 150, sentAgo: 1 }, 'active'],
    [{ sentAgo: null }, 'paused'],
    [{ mode: 'test' }, 'paused'],
    [{ isSandbox: true }, 'paused'],
  ] as [Sent, string][]) {
    const organisation = await createOrganisation(sql)
    const ids = await haveSent(sql, organisation, 3)
    await haveSent(sql, organisation, 3000, how)
    await record(ids.map((id) => aComplaint(id)))
    t.match(await stateOf(sql, organisation), { state }, JSON.stringify(how))
  }
})

t.test('complaints: emails since the first complaint alone can keep the rate low', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await haveSent(sql, organisation, 4)
  await record(ids.slice(0, 2).map((id) => aComplaint(id)))
  const sendMore = (count: number) => sql`
    update app.counters set emails_sent = emails_sent + ${count}
    where organisation_id = core.decode_id('org', ${organisation.id})`
  await sendMore(3001)
  await record([aComplaint(String(ids[2]))])
  t.match(await stateOf(sql, organisation), { state: 'active' })
  const [rate] = await sql`
    select complaints, sent::integer, rate::float8 from ops.complaint_rates
    where organisation = ${organisation.id}`
  t.same(rate, { complaints: 3, sent: 3001, rate: 0.001 })
  await record([aComplaint(String(ids[3]))])
  t.match(
    await stateOf(sql, organisation),
    { state: 'paused' },
    'the next complaint reaches the rate',
  )
})

t.test('complaints: those about sandbox and test messages do not count', async (t) => {
  for (const how of [{ isSandbox: true }, { mode: 'test' }] as const) {
    const { organisation, state } = await afterComplaints(5, 5, how)
    t.equal(state, 'active', JSON.stringify(how))
    t.equal(await countedOf(organisation), 0)
  }
})

t.test('complaints: the owner gets one notice however many follow', async (t) => {
  const { organisation, ids } = await afterComplaints(3, 20)
  await record(ids.slice(3, 9).map((id) => aComplaint(id)))
  t.equal(await countedOf(organisation), 9, 'later ones are counted as well')
  t.match(await stateOf(sql, organisation), {
    reason: '3 complaints about 20 emails sent within 24 hours',
  })
  const notices = await noticesOf(sql, organisation)
  t.match([...notices], [{ kind: 'org_paused', detail: { complaints: 3, sent: 20 }, sentAt: null }])
  const jobs = await sql`
    select from graphile_worker._private_jobs where payload ->> 'id' = ${String(notices[0]?.id)}`
  t.equal(jobs.length, 1)
})

t.test('complaints: a suspended organisation is paused too, also once reinstated', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await haveSent(sql, organisation, 5)
  await sql`select ops.suspend(${organisation.id}, 'unpaid')`
  await record(ids.map((id) => aComplaint(id)))
  t.same(await stateOf(sql, organisation), { state: 'suspended', reason: 'unpaid' })
  t.match([...(await noticesOf(sql, organisation))], [{ kind: 'org_paused' }])
  await sql`select ops.reinstate(${organisation.id})`
  const reason = '5 complaints about 5 emails sent within 24 hours'
  t.same(await stateOf(sql, organisation), { state: 'paused', reason })
})

t.test('complaints: a pause stays after a later suspension ends', async (t) => {
  const { organisation } = await afterComplaints(3, 20)
  const before = await stateOf(sql, organisation)
  t.match(before, { state: 'paused' })
  await sql`select ops.suspend(${organisation.id}, 'unpaid')`
  await sql`select ops.reinstate(${organisation.id})`
  t.same(await stateOf(sql, organisation), before)
  t.equal((await noticesOf(sql, organisation)).length, 1)
})

t.test('complaints: those about one organisation do not pause another', async (t) => {
  const [one, other] = [await createOrganisation(sql), await createOrganisation(sql)]
  const mine = await haveSent(sql, one, 2)
  const theirs = await haveSent(sql, other, 3)
  await record([...mine, ...theirs].map((id) => aComplaint(id)))
  t.match(await stateOf(sql, one), { state: 'active' })
  t.match(await stateOf(sql, other), { state: 'paused' })
})

t.test('complaints: after a resumption only new ones pause again', async (t) => {
  const { organisation, ids } = await afterComplaints(3, 20)
  await sql`select ops.resume(${organisation.id})`
  t.same(await stateOf(sql, organisation), { state: 'active', reason: null })
  await record(ids.slice(0, 3).map((id) => aComplaint(id)))
  t.equal(await countedOf(organisation), 3, 'a repeated complaint is not counted again')
  await record(ids.slice(3, 5).map((id) => aComplaint(id)))
  t.match(await stateOf(sql, organisation), { state: 'active' })
  await record([aComplaint(String(ids[5]))])
  t.match(await stateOf(sql, organisation), {
    state: 'paused',
    reason: '3 complaints about 20 emails sent within 24 hours',
  })
  t.equal((await noticesOf(sql, organisation)).length, 2, 'and the owner gets another notice')
})

t.test('complaints: those that came before the resumption do not pause again', async (t) => {
  const { organisation, ids } = await afterComplaints(3, 20)
  await sql.begin(async (tx) => {
    await tx`select * from ops.complaint_rates`
    await record(ids.slice(3, 6).map((id) => aComplaint(id)))
    await tx`select ops.resume(${organisation.id})`
  })
  await record([aComplaint(String(ids[6]))])
  t.match(await stateOf(sql, organisation), { state: 'active' })
})

/** Runs `begin` while the organisations' rows are locked, and unlocks them once `count` transactions wait. */
async function meet<Result>(
  organisations: TestOrganisation[],
  count: number,
  begin: () => Promise<Result>,
): Promise<Result> {
  const ids = organisations.map(({ id }) => id)
  const { work } = await sql.begin(async (tx) => {
    await tx`
      select from app.organisations
      where id in (select core.decode_id('org', o) from unnest(${ids}::text[]) o) for no key update`
    const work = begin()
    await untilLocked(sql, count)
    return { work }
  })
  return work
}

t.test('complaints: concurrent ones are all counted', async (t) => {
  for (let round = 0; round < 5; round++) {
    const organisation = await createOrganisation(sql)
    const ids = await haveSent(sql, organisation, 8)
    await meet([organisation], 8, () => Promise.all(ids.map((id) => record([aComplaint(id)]))))
    t.equal(await countedOf(organisation), 8)
    t.match(await stateOf(sql, organisation), {
      state: 'paused',
      reason: '3 complaints about 8 emails sent within 24 hours',
    })
    t.equal((await noticesOf(sql, organisation)).length, 1)
  }
})

t.test('complaints: concurrent receipts of several organisations do not deadlock', async (t) => {
  const organisations = [
    await createOrganisation(sql),
    await createOrganisation(sql),
    await createOrganisation(sql),
  ]
  const ids = (await Promise.all(organisations.map((one) => haveSent(sql, one, 40)))).flat()
  const calls = Array.from({ length: 12 }, (_, caller) => {
    const receipts = ids.flatMap((id, place) => [
      { ...aComplaint(id), type: 'delivered' },
      ...((place + caller) % 7 === 0 ? [aComplaint(id, `${caller}@c.example`)] : []),
    ])
    return caller % 2 ? receipts : receipts.toReversed()
  })
  await meet(organisations.slice(0, 1), 12, () => Promise.all(calls.map(record)))
  for (const organisation of organisations) {
    t.match(await stateOf(sql, organisation), { state: 'paused' })
    t.equal((await noticesOf(sql, organisation)).length, 1)
  }
})

t.test("complaints: concurrent with an operator's change one of both states wins", async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await haveSent(sql, organisation, 60)
  const operate = (name: string) =>
    sql.unsafe(`select ops.${name}($1)`, [organisation.id]).catch((error) => {
      t.match(error.message, /^the organisation is active, not paused$/)
    })
  await Promise.all(
    ids.flatMap((id, place) => [
      record([aComplaint(id)]),
      ...(place % 10 === 0 ? [operate('resume')] : []),
    ]),
  )
  const { state } = await stateOf(sql, organisation)
  const [row] = await sql`
    select complaints from ops.complaint_rates where organisation = ${organisation.id}`
  t.equal(state, row?.complaints >= 3 ? 'paused' : 'active')
})

t.test('complaints: deleted after a week', async (t) => {
  await sql`delete from app.complaints`
  const { organisation } = await afterComplaints(2, 2)
  t.equal(await call('delete_old_complaints', {}), 0)
  await ageComplaints(organisation, 24 * 7 - 1)
  t.equal(await call('delete_old_complaints', {}), 0)
  await ageComplaints(organisation, 2)
  t.equal(await call('delete_old_complaints', {}), 2)
  t.equal(await countedOf(organisation), 0)
})
