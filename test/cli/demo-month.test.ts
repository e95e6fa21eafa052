import t from 'tap'
import { seed } from '../../src/cli/demo.ts'
import { fillMonth } from '../../src/cli/demo-month/index.ts'
import { beginOf, planMonth } from '../../src/cli/demo-month/plan.ts'
import { createDatabase } from '../fixtures/database.ts'
import { unbalancedLedgers } from '../fixtures/organisation.ts'
import { runCommand } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'

const { sql } = await createDatabase()
// As in an installation: the database follows no clock of a test.
await sql`create or replace function core.has_test_clock() returns boolean language sql stable as 'select false'`
const { organisation } = await seed(sql)
const before = await clockOf()
// As in an installation that has been running: the index of the search is past the month that begins.
await sql`update app.search_progress set indexed_until = core.first_id_at(now() - interval '2 minutes')`
const { messages } = await fillMonth(sql, organisation)

async function clockOf() {
  const [row] = await sql`
    select pg_get_functiondef(p.oid) as code, obj_description(p.oid) as comment
    from pg_proc p where p.oid = 'core.has_test_clock()'::regprocedure`
  return { ...row }
}

async function numberOf(query: Promise<{ n: number }[]>): Promise<number> {
  const [row] = await query
  return row?.n ?? -1
}

t.test('planMonth: the same month for the same end, within its 29 days', async (t) => {
  const end = new Date('2026-11-20T09:30:00Z')
  const steps = planMonth(end)
  t.same(planMonth(end), steps)
  t.ok(steps.every(({ at }) => at > beginOf(end) && at < end))
  t.not(JSON.stringify(planMonth(new Date('2026-11-21T09:30:00Z'))), JSON.stringify(steps))
})

t.test('fillMonth: messages have every outcome, and the sums count each', async (t) => {
  t.ok(messages > 4500 && messages < 5500, String(messages))
  const rows = await sql<{ status: string }[]>`
    select distinct m.channel || ' ' || m.status as status from app.messages m order by 1`
  t.same(
    rows.map(({ status }) => status).join(', '),
    [
      'email bounced, email complained, email delivered, email failed, email rejected, email sent',
      'sms delivered, sms expired, sms failed, sms rejected, sms scheduled',
    ].join(', '),
  )
  const [sums] = await sql`
    select sum(accepted)::integer as accepted, sum(delivered)::integer as delivered, sum(bounced)::integer as bounced,
      sum(complained)::integer as complained, sum(failed)::integer as failed, sum(expired)::integer as expired,
      sum(rejected)::integer as rejected
    from app.daily_volume where tag is null`
  const [counts] = await sql`
    select count(*)::integer as accepted, count(delivered_at)::integer as delivered,
      count(*) filter (where status = 'bounced')::integer as bounced,
      count(*) filter (where status = 'complained')::integer as complained,
      count(*) filter (where status = 'failed')::integer as failed,
      count(*) filter (where status = 'expired')::integer as expired,
      count(*) filter (where status = 'rejected')::integer as rejected
    from app.messages where tags <> '{opt-out-confirmation}'`
  const [confirmed] = await sql`
    select count(*)::integer as n from app.messages where tags = '{opt-out-confirmation}'`
  // The confirmation of an opt-out is not accepted from a caller, so the sums count its outcome only.
  t.ok(confirmed?.n > 0)
  t.same({ ...sums, delivered: sums?.delivered - confirmed?.n }, { ...counts })
})

t.test('fillMonth: ledger, usage and checks agree', async (t) => {
  t.same(await unbalancedLedgers(sql), [])
  const failing = await sql<
    { name: string }[]
  >`select name from ops.checks where not ok order by name`
  // No process runs here, and one endpoint fails.
  t.same(
    failing.map(({ name }) => name),
    ['clock', 'webhook endpoints', 'worker'],
  )
  const used = numberOf(sql`
    select (a.emails_used + c.emails_used)::integer as n from app.allowances a
    join app.closed_periods c on c.organisation_id = a.organisation_id`)
  const emails = numberOf(sql`
    select count(*)::integer as n from app.messages where channel = 'email'`)
  t.equal(await used, await emails)
})

t.test('fillMonth: one endpoint works, one fails for 30 hours with a notice', async (t) => {
  const endpoints = await sql`
    select url ~ 'hooks' as works, failing_since is null as is_well, warned_at is not null as is_warned
    from app.webhook_endpoints order by 1`
  t.same(
    [...endpoints],
    [
      { works: false, isWell: false, isWarned: true },
      { works: true, isWell: true, isWarned: false },
    ],
  )
  const [failing] = await sql`
    select core.now() - failing_since between '29 hours' and '31 hours' as is_long
    from app.webhook_endpoints where failing_since is not null`
  t.equal(failing?.isLong, true)
  t.ok(
    (await numberOf(
      sql`select count(*)::integer as n from app.webhook_attempts where error is not null`,
    )) > 10,
  )
  const overdue = sql`select count(*)::integer as n from app.webhook_deliveries where due_at < now() - interval '1 minute'`
  t.equal(await numberOf(overdue as never), 0)
  t.equal(
    await numberOf(sql`select count(*)::integer as n from app.notices where sent_at is null`),
    0,
  )
})

t.test('fillMonth: what belongs to the organisation is there', async (t) => {
  const [there] = await sql`
    select (select string_agg(d.name || ' ' || d.status, ', ' order by d.name) from app.domains d) as domains,
      (select count(*)::integer from app.templates) as templates,
      (select count(*)::integer from app.members) as members,
      (select count(distinct reason)::integer from app.suppressions) as reasons,
      (select count(*)::integer from app.consents where opted_out_at is not null) > 0 as has_opt_outs,
      (select count(*)::integer from app.credit_ledger where kind = 'refund') > 0 as has_refunds`
  t.same(
    { ...there },
    {
      domains:
        'karoo-books.example verified, sandbox.postgram.test verified, wrong-karoo-books.example pending',
      templates: 3,
      members: 3,
      reasons: 4,
      hasOptOuts: true,
      hasRefunds: true,
    },
  )
})

t.test('fillMonth: leaves no job, and the clock as it was', async (t) => {
  t.equal(await numberOf(sql`select count(*)::integer as n from graphile_worker._private_jobs`), 0)
  t.equal(
    await numberOf(sql`select count(*)::integer as n from app.due_messages where due_at < now()`),
    0,
  )
  t.same(await clockOf(), before)
})

t.test('fillMonth: the clock indexes the messages for the search', async (t) => {
  const terms = () => sql`
    select t.term from app.message_terms t
    join (select m.* from app.messages m order by m.id limit 1) m
      on t.term = core.recipient_term(m.to_address) and t.first_id = m.id`
  t.equal((await terms()).length, 0)
  await until('the oldest message to be indexed', async () => {
    await sql`select api.index_messages()`
    return (await sql`select from app.message_terms limit 1`).length > 0
  })
  t.equal((await terms()).length, 1)
})

t.test('fillMonth: a second month is refused and changes nothing', async (t) => {
  await t.rejects(fillMonth(sql, organisation), {
    message: `The organisation ${organisation} has its month already, or has sent an SMS. Set POSTGRAM_DATA to another folder to begin again.`,
  })
  t.same(await clockOf(), before)
})

t.test(
  'seed --demo: refused beside a real database or provider, and with other arguments',
  async (t) => {
    const refused =
      'seed --demo fills only an embedded database whose messages go to the sandbox: run it without DATABASE_URL, EMAIL_PROVIDER and SMS_PROVIDER.\n'
    const DATABASE_URL = 'postgres://127.0.0.1:1/none'
    t.match(await runCommand(['seed', '--demo'], { DATABASE_URL }), { code: 1, stderr: refused })
    const smtp = {
      EMAIL_PROVIDER: 'smtp',
      SMTP_URL: 'smtp://127.0.0.1:1?name=mx.example.com',
      POSTGRAM_DATA: t.testdir(),
    }
    t.match(await runCommand(['seed', '--demo'], smtp), { code: 1, stderr: refused })
    t.match(await runCommand(['seed', '--other'], { DATABASE_URL }), {
      code: 1,
      stderr: /^usage: /,
    })
  },
)
