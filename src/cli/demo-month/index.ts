import { randomUUID } from 'node:crypto'
import type { AcceptEmail, AcceptSms } from '../../db/api.gen.ts'
import { caller } from '../../db/call.ts'
import type { Sql } from '../../db/client.ts'
import { createRegistry } from '../../domains/registry.ts'
import { createResolver } from '../../domains/resolver.ts'
import { catalogueJson, SetupError } from '../../errors.ts'
import { createSandbox } from '../../providers/sandbox/email.ts'
import { parseEmail } from '../../schemas/email.ts'
import { parseSms } from '../../schemas/sms.ts'
import { attempt, report } from './attempts.ts'
import {
  beginOf,
  CONSENTED_PHONES,
  DEMO_SENDER_DOMAIN,
  FAILING_HOURS,
  OWN_NUMBER,
  type Planned,
  planMonth,
  randomFrom,
  SENDER_NAME,
  type Step,
  scheduledSms,
  TEMPLATES,
} from './plan.ts'
import { HOUR_MS, SECOND_MS, type World } from './world.ts'

const PLAN = { id: 'growth', name: 'Growth', rand: 499, emails: 20_000, sms: 300, domains: 10 }

/** The name of an endpoint decides whether it responds. */
const WORKING_URL = 'https://hooks.karoo-books.example/suppressions'
const FAILING_URL = 'https://warehouse.karoo-books.example/postgram'

/**
 * Fills an organisation with a month of messages and what belongs to it, by the functions that the service calls,
 * with their clock set to each time in turn. It is one transaction: no other session sees the test clock, and
 * nothing remains of a month that fails. Throws SetupError if the organisation has sent an SMS. `sql` is the owner's.
 */
export async function fillMonth(sql: Sql, organisation: string): Promise<{ messages: number }> {
  return sql.begin(async (tx) => {
    const owner = tx as unknown as Sql
    const [begun] = await owner<[{ uuid: string; end: Date; clockCode: string }]>`
      select core.decode_id('org', ${organisation}) as uuid, core.now() as end,
        pg_get_functiondef('core.has_test_clock()'::regprocedure) as clock_code`
    const { uuid, end, clockCode } = begun
    await refuseUsed(owner, organisation)
    await owner`
      create or replace function core.has_test_clock() returns boolean language sql stable as 'select true'`
    await owner`set local plan_cache_mode = 'force_generic_plan'`
    await owner`set local jit = off`
    const used = await beginEarlier(owner, uuid, end)
    const begin = beginOf(end)
    await setClock(owner, begin.getTime() - 3 * 24 * HOUR_MS)
    const call = caller(owner)
    await call('make_partitions', {})
    await setClock(owner, begin.getTime())
    const templates = await setUp(owner, { organisation, uuid, begin: begin.getTime() })
    const world: World = {
      call,
      sql: owner,
      organisation,
      uuid,
      end: end.getTime(),
      templates,
      random: randomFrom(7),
      waiting: new Map(),
      receipts: [],
      smsReceipts: [],
      later: [],
    }
    await addDomain(world, DEMO_SENDER_DOMAIN)
    for (const step of planMonth(end)) await live(world, step)
    await setClock(owner, end.getTime() - 2 * HOUR_MS)
    await addDomain(world, 'wrong-karoo-books.example')
    const last = end.getTime() - 60 * SECOND_MS
    await live(world, { at: new Date(last), messages: [] })
    await accept(world, last, scheduledSms(end))
    await endNotices(world)
    await setClock(owner, end.getTime())
    while ((await call('sum_status_changes', {})) > 0);
    await restartIndex(owner)
    await removeWork(owner, uuid)
    await owner`
      update app.allowances a
      set emails_used = a.emails_used + ${used.emailsUsed}, test_day = ${used.testDay}, test_messages = ${used.testMessages}
      where a.organisation_id = ${uuid}`
    await owner.unsafe(clockCode)
    const [{ messages }] = await owner<[{ messages: number }]>`
      select sum(v.accepted)::integer as messages from app.daily_volume v
      where v.organisation_id = ${uuid} and v.tag is null`
    return { messages }
  })
}

/** The ledger never changes, so its rows must lie in the billing periods that the month gets. */
async function refuseUsed(sql: Sql, organisation: string): Promise<void> {
  const [row] =
    await sql`select from ops.credit_ledger l where l.organisation = ${organisation} limit 1`
  if (!row) return
  throw new SetupError(
    `The organisation ${organisation} has its month already, or has sent an SMS. Set POSTGRAM_DATA to another folder to begin again.`,
  )
}

/**
 * Moves the begin of the organisation back, so that one billing period has ended and another is under way. Returns
 * what was used before, which belongs to the current period.
 */
async function beginEarlier(sql: Sql, uuid: string, end: Date) {
  const [used] = await sql<[{ emailsUsed: number; testDay: string | null; testMessages: number }]>`
    select a.emails_used, a.test_day::text, a.test_messages from app.allowances a
    where a.organisation_id = ${uuid} for update`
  const created = new Date(end.getTime() - 41 * 24 * HOUR_MS)
  await sql`update app.organisations set created_at = ${created}, activated_at = ${created} where id = ${uuid}`
  await sql`
    update app.allowances a set emails_used = 0, (period_start, period_end) =
      (select p.* from core.period_at(${created}, ${beginOf(end)}) p)
    where a.organisation_id = ${uuid}`
  return used
}

const setClock = (sql: Sql, at: number) =>
  sql`select set_config('postgram.now', ${new Date(at).toISOString()}, true)`

/** Does what operators and owners did before the first message. Returns the IDs of the templates by their names. */
async function setUp(
  sql: Sql,
  { organisation, uuid, begin }: { organisation: string; uuid: string; begin: number },
): Promise<Map<string, string>> {
  await sql`
    select ops.create_plan(${PLAN.id}, ${PLAN.name}, ${PLAN.rand}, ${PLAN.emails}, ${PLAN.sms}, ${PLAN.domains})
    where not exists (select from app.plans p where p.id = ${PLAN.id})`
  await sql`select ops.set_plan(${organisation}, ${PLAN.id})`
  await sql`select ops.grant_credits(${organisation}, 2000, 'Invoice 1042')`
  await sql`select ops.approve_sender(${organisation}, s) from unnest(${[OWN_NUMBER, SENDER_NAME]}::text[]) s`
  await sql`
    select ops.record_consent(${organisation}, p, 'Checkbox at checkout')
    from unnest(${CONSENTED_PHONES}::text[]) p`
  await sql`
    select ops.invite(${organisation}, 'thandi@karoo-books.example', 'member'),
      ops.invite(${organisation}, 'sipho@karoo-books.example', 'viewer')`
  const failures = ['email.bounced', 'email.complained', 'sms.opted_out']
  const outcomes = [
    'email.delivered',
    'email.bounced',
    'email.failed',
    'sms.delivered',
    'sms.failed',
  ]
  await sql`
    select ops.create_webhook_endpoint(${organisation}, ${WORKING_URL}, ${failures}::text[]),
      ops.create_webhook_endpoint(${organisation}, ${FAILING_URL}, ${outcomes}::text[])`
  await sql`
    insert into app.suppressions (organisation_id, id, email, reason, note, created_at)
    select ${uuid}, core.new_id(core.now()), e, 'manual', 'Asked by phone', core.now()
    from unnest(array['estate.late@post.example', 'legal@inbox.example', 'no-more@mailbox.example']) e`
  const ids = new Map<string, string>()
  for (const [n, { name, subject, html, text }] of TEMPLATES.entries()) {
    await setClock(sql, begin + n * 60 * SECOND_MS)
    const [row] = await sql<[{ id: string }]>`
      select ops.create_template(${organisation}, ${name}, ${subject}, ${html}, ${text}) as id`
    ids.set(name, row.id)
  }
  return ids
}

/** Adds a sending domain and checks it once, with the DNS of the sandbox. */
async function addDomain({ call, uuid }: World, name: string): Promise<void> {
  const registry = createRegistry({
    call,
    provider: createSandbox(call),
    resolver: createResolver({ servers: [], hasSandbox: true }),
    dkimZone: 'dkim.postgram.test',
    mailFromLabel: 'mail',
  })
  const request = { organisation_id: uuid, mode: 'live', fingerprint: name }
  const { body } = await registry.add(request, name)
  await registry.verify(request, JSON.parse(body ?? '').id)
}

/** One time of the month: accepts its messages, attempts what waits, and reports what is due. */
async function live(world: World, { at, messages }: Step): Promise<void> {
  const now = at.getTime()
  await setClock(world.sql, now)
  await accept(world, now, messages)
  await suppressSome(world)
  const sentAt = now + 400 + Math.floor(world.random() * 2600)
  await setClock(world.sql, sentAt)
  await attempt(world, sentAt)
  const reportedAt = sentAt + 25 * SECOND_MS
  await setClock(world.sql, reportedAt)
  await report(world, reportedAt)
  await deliver(world, reportedAt)
  await world.call('check_failing_endpoints', {})
}

async function accept(world: World, now: number, messages: Planned[]): Promise<void> {
  for (const channel of ['email', 'sms'] as const) {
    const planned = messages.filter((message) => message.channel === channel)
    if (planned.length === 0) continue
    const call = {
      n: 0,
      organisation_id: world.uuid,
      mode: 'live' as const,
      key: `request:${randomUUID()}`,
      fingerprint: '',
      batch: true,
    }
    const catalogue = catalogueJson('http://127.0.0.1')
    const [response] =
      channel === 'email'
        ? await world.call('accept_emails', {
            calls: [call],
            items: planned.map((message, index) => emailItem(world, message, index)),
            catalogue,
          })
        : await world.call('accept_sms', { calls: [call], items: planned.map(smsItem), catalogue })
    const results: { ok: boolean; data?: { id: string } }[] = JSON.parse(
      response?.body ?? '',
    ).results
    const ids = results.map(({ data }) => data?.id ?? null)
    const rows = await world.sql<{ id: string | null }[]>`
      select core.decode_id(${channel === 'email' ? 'em' : 'sm'}, i) as id
      from unnest(${ids}::text[]) with ordinality u (i, place) order by place`
    for (const [n, { id }] of rows.entries()) {
      const message = planned[n]
      if (id === null || message === undefined) continue
      const scheduled = message.body.scheduledAt
      const from = typeof scheduled === 'string' ? Date.parse(scheduled) : now
      world.waiting.set(id, { planned: message, from })
    }
  }
}

function emailItem(world: World, { body, template }: Planned, index: number): AcceptEmail {
  const templateId = template && world.templates.get(template)
  return { ...valid(parseEmail({ ...body, ...(templateId && { templateId }) })), call: 0, index }
}

const smsItem = ({ body }: Planned, index: number): AcceptSms => ({
  ...valid(parseSms(body)),
  call: 0,
  index,
})

function valid<Value>(parsed: { value: Value } | { fields: unknown }): Value {
  if ('fields' in parsed) throw new Error(JSON.stringify(parsed.fields))
  return parsed.value
}

/** Suppresses the recipients of some emails after they were accepted, so that they are rejected. */
async function suppressSome({ call, uuid, waiting }: World): Promise<void> {
  for (const { planned } of waiting.values()) {
    if (planned.fate !== 'suppressed') continue
    const email = String(planned.body.to)
    const note = 'Asked by email'
    const entry = { organisation_id: uuid, mode: 'live', fingerprint: email, email, note }
    await call('add_suppression', { ...entry, reason: 'manual' })
  }
}

/** Attempts the deliveries of webhook events that are due. One endpoint has not responded since 30 hours. */
async function deliver(world: World, now: number): Promise<void> {
  const { call, sql, uuid, random } = world
  const due = await sql<
    { endpointId: string; eventId: string; attempt: number; dueAt: Date; url: string }[]
  >`
    select d.endpoint_id, d.event_id, d.attempts + 1 as attempt, greatest(d.due_at, v.occurred_at) as due_at, p.url
    from app.webhook_endpoints p
    join app.webhook_deliveries d on d.endpoint_id = p.id
    join app.webhook_events v on v.id = d.event_id
    where p.organisation_id = ${uuid} and d.due_at <= core.now()
    order by d.due_at, d.event_id`
  if (due.length === 0) return
  const isFailing = now > world.end - FAILING_HOURS * HOUR_MS
  const results = due.map(({ endpointId, eventId, attempt, dueAt, url }) => ({
    endpoint_id: endpointId,
    event_id: eventId,
    attempt,
    started_at: new Date(dueAt.getTime() + Math.floor(40 + random() * 400)),
    ...(isFailing && url === FAILING_URL
      ? { duration_ms: 10_000, status: null, error: 'no response within 10 s', response: null }
      : { duration_ms: Math.floor(40 + random() * 200), status: 200, error: null, response: 'ok' }),
  }))
  await call('finish_deliveries', { results })
}

/** Marks the notices of the month as sent: their time has passed. */
async function endNotices({ call, sql, uuid }: World): Promise<void> {
  const notices = await sql<{ id: string; createdAt: Date }[]>`
    select n.id, n.created_at from app.notices n
    where n.organisation_id = ${uuid} and n.sent_at is null and n.failed_at is null`
  for (const { id, createdAt } of notices) {
    await setClock(sql, createdAt.getTime() + 3 * SECOND_MS)
    await call('start_notice', { id, from_domain: '' })
    await call('finish_notice', { result: { id, outcome: 'sent' } })
  }
}

/** The index of the search has passed the time of these messages, so the clock fills it again. */
async function restartIndex(sql: Sql): Promise<void> {
  await sql`select pg_advisory_xact_lock(core.search_lock())`
  await sql`delete from app.message_terms`
  await sql`
    update app.search_progress
    set indexed_until = '00000000-0000-0000-0000-000000000000', seen_at = null, seen_xid = null`
}

/** Deletes the jobs that this transaction added, and the places of messages that wait no longer. */
async function removeWork(sql: Sql, uuid: string): Promise<void> {
  await sql`delete from graphile_worker._private_jobs j where j.xmin::text = pg_current_xact_id()::xid::text`
  await sql`
    delete from app.due_messages d using app.messages m
    where d.organisation_id = ${uuid} and m.id = d.message_id and m.status not in ('queued', 'scheduled')`
}
