import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

/** The signatures that operators' scripts use: new arguments must be last and have a default. */
const functions = [
  'create_plan(id, name, price_rand, emails_included, sms_included, domains_included)',
  'create_organisation(name text, owner_email text, plan text DEFAULT starter) text',
  'create_api_key(organisation text, mode text DEFAULT live, scopes text[] DEFAULT {emails:send,sms:send,read,domains:write}) text',
  'revoke_api_key(key_or_prefix text)',
  'set_plan(organisation text, plan text)',
  'grant_credits(organisation text, credits integer, note text) integer',
  'pause(organisation, reason)',
  'resume(organisation)',
  'suspend(organisation, reason)',
  'reinstate(organisation)',
  'record_consent(organisation, phone, source)',
  'withdraw_consent(organisation, phone)',
  'approve_sender(organisation, sender)',
  'block_number(phone, note)',
  'release_domain(name)',
  'verify_domain(organisation, name)',
  'create_template(organisation, name, subject, html, text) text',
  'create_webhook_endpoint(organisation, url, event_types text[]) record',
  'enable_webhook_endpoint(endpoint)',
  'send_test_event(endpoint, event_type)',
  'replay_event(event)',
  'replay_events(endpoint, since, until) bigint',
  'set_marketing_hours(rule text)',
  'rotate_dkim(domain)',
  'why(message) text',
  'retry_message(message)',
  'suppress_globally(email, note)',
  'unsuppress_globally(email)',
  'statement(organisation, period) record',
]
const views = [
  'help',
  'organisations',
  'messages',
  'queue',
  'stuck_messages',
  'failing_endpoints',
  'complaint_rates',
  'credit_ledger',
  'daily_volume',
  'domains',
  'dns_zone',
  'processes',
  'audit',
  'suppressions',
]

t.test('ops: documented functions exist with their arguments', async (t) => {
  const found = await sql<{ name: string; given: string; result: string; required: number }[]>`
    select p.proname as name, pg_get_function_arguments(p.oid) as given,
      pg_get_function_result(p.oid) as result, p.pronargs - p.pronargdefaults as required
    from pg_proc p where p.pronamespace = 'ops'::regnamespace`
  const byName = new Map(found.map((row) => [row.name, row]))
  for (const line of functions) {
    const [, name = '', list = '', result = ''] = /^(\w+)\((.*)\) ?(\w*)$/.exec(line) ?? []
    const row = byName.get(name)
    const given = (row?.given ?? '').replaceAll(/'|::\w+(\[\])?/g, '').split(/, /)
    const wanted = list.split(/, /)
    t.ok(row && row.required <= wanted.length, `${name} needs no more than that`)
    for (const [place, argument] of wanted.entries()) {
      t.ok(` ${given[place]} `.startsWith(` ${argument} `), `${name}: ${argument}`)
    }
    if (result) t.equal(row?.result, result, name)
  }
})

t.test('ops: documented views exist', async (t) => {
  const found = await sql`
    select relname as name from pg_class where relnamespace = 'ops'::regnamespace and relkind = 'v'`
  const names = found.map(({ name }) => name)
  for (const view of views) t.ok(names.includes(view), view)
})
