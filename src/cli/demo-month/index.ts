import { caller } from '../../db/call.ts'
import type { Sql } from '../../db/client.ts'
import { accept, suppressSome } from './accept.ts'
import { attempt, report } from './attempts.ts'
import { deliver } from './deliveries.ts'
import {
  beginOf,
  DEMO_SENDER_DOMAIN,
  planMonth,
  randomFrom,
  type Step,
  scheduledSms,
} from './plan.ts'
import { addDomain, beginEarlier, refuseUsed, setUp } from './set-up.ts'
import { HOUR_MS, SECOND_MS, setClock, type World } from './world.ts'

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
