import type { Sql } from '../../db/client.ts'
import { createRegistry } from '../../domains/registry.ts'
import { createResolver } from '../../domains/resolver.ts'
import { SetupError } from '../../errors.ts'
import { createSandbox } from '../../providers/sandbox/email.ts'
import {
  beginOf,
  CONSENTED_PHONES,
  FAILING_URL,
  OWN_NUMBER,
  SENDER_NAME,
  TEMPLATES,
  WORKING_URL,
} from './plan.ts'
import { HOUR_MS, SECOND_MS, setClock, type World } from './world.ts'

const PLAN = { id: 'growth', name: 'Growth', rand: 499, emails: 20_000, sms: 300, domains: 10 }

/** The ledger never changes, so its rows must lie in the billing periods that the month gets. */
export async function refuseUsed(sql: Sql, organisation: string): Promise<void> {
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
export async function beginEarlier(sql: Sql, uuid: string, end: Date) {
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

/** Does what operators and owners did before the first message. Returns the IDs of the templates by their names. */
export async function setUp(
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
export async function addDomain({ call, uuid }: World, name: string): Promise<void> {
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
