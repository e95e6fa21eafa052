import t from 'tap'
import { createDatabase, raisedBy, rolledBack } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { sendSms } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startApiAt, startTestService } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
// The start of a service creates what every service needs.
await startTestService(url, { roles: ['api'] })

const createdAt = '2031-01-31T10:00:00.000Z'

/** Creates an organisation at that time. */
async function organisationOf(smsIncluded: number): Promise<TestOrganisation> {
  const organisation = await createOrganisation(sql, { emailsIncluded: 100, smsIncluded })
  await sql`
    with made as (
      update app.organisations set created_at = ${createdAt} where id = core.decode_id('org', ${organisation.id}) returning id
    )
    update app.allowances a set (period_start, period_end) = (select p.* from core.period_at(${createdAt}, ${createdAt}) p)
    from made m where a.organisation_id = m.id`
  return organisation
}

async function statementAt(time: string, { id }: TestOrganisation, period: string | null = null) {
  const [row] = await atTime(
    sql,
    time,
    (tx) => tx`select s.* from ops.statement(${id}, ${period}) s`,
  )
  return Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [
      name,
      value instanceof Date
        ? value.toISOString()
        : typeof value === 'string' && /^-?\d+$/.test(value)
          ? Number(value)
          : value,
    ]),
  )
}

t.test('ops.statement: returns what to invoice for open and closed periods', async (t) => {
  const organisation = await organisationOf(2)
  const { id, domain, liveKey } = organisation
  const february = '2031-02-10T12:00:00.000Z'
  const march = '2031-03-10T12:00:00.000Z'
  const { base } = await startApiAt(sql, url, february)
  await atTime(sql, february, async (tx) => {
    await tx`select ops.grant_credits(${id}, 10, 'invoice 7')`
    await tx`select ops.create_plan('bigger', 'Bigger', 99, 200, 2, 5)`
  })
  await post(`${base}/v1/emails`, liveKey, anEmail(domain, { to: ['a@c.example', 'b@c.example'] }))
  for (let n = 0; n < 5; n += 1) await sendSms(base, organisation)
  await atTime(sql, february, (tx) => tx`select ops.set_plan(${id}, 'bigger')`)

  const first = {
    periodStart: createdAt,
    periodEnd: '2031-02-28T10:00:00.000Z',
    plan: 'bigger',
    priceRand: 99,
    planChanges: `${february} from plan-100-2 to bigger`,
    emailsIncluded: 200,
    emailsUsed: 2,
    smsIncluded: 2,
    smsUsed: 2,
    creditsBefore: 0,
    creditsGranted: 10,
    creditsSpent: 3,
    creditsRefunded: 0,
    creditsAfter: 7,
  }
  t.strictSame(await statementAt(february, organisation), { ...first, isClosed: false })
  t.strictSame(
    await statementAt(march, organisation, february),
    { ...first, isClosed: false },
    'the same when it has ended and nobody has closed it yet',
  )
  await atTime(sql, march, (tx) => tx`select api.close_periods()`)
  await atTime(sql, march, async (tx) => {
    await tx`select ops.set_plan(${id}, 'starter')`
    await tx`select ops.grant_credits(${id}, 1, 'invoice 8')`
  })
  t.strictSame(
    await statementAt(march, organisation, february),
    { ...first, isClosed: true },
    'a closed period does not change',
  )
  t.match(await statementAt(march, organisation), {
    isClosed: false,
    periodStart: '2031-02-28T10:00:00.000Z',
    plan: 'starter',
    planChanges: `${march} from bigger to starter`,
    emailsUsed: 0,
    smsUsed: 0,
    creditsBefore: 7,
    creditsGranted: 1,
    creditsAfter: 8,
  })
})

t.test('ops.statement: refuses a time outside all periods', async (t) => {
  const { id } = await organisationOf(0)
  await rolledBack(sql, async (tx) => {
    await tx`select set_config('postgram.now', '2031-03-01T00:00:00Z', true)`
    for (const time of ['2031-01-31T09:59:59Z', '2031-03-31T10:00:00Z', '-infinity', 'infinity']) {
      const { message } = await raisedBy(
        tx,
        (inner) => inner`select ops.statement(${id}, ${time}::text::timestamptz)`,
      )
      t.match(message, /^no billing period of org_\w+ contains \S+$/)
    }
    const [row] = await tx`select s.* from ops.statement(${id}, '2031-03-31T09:59:59Z') s`
    t.match(
      row,
      { isClosed: false, periodEnd: new Date('2031-03-31T10:00:00Z') },
      'the present one lasts until its end',
    )
    const unknown = await raisedBy(tx, (inner) => inner`select ops.statement('org_x')`)
    t.match(unknown.message, /^there is no organisation/)
  })
})
