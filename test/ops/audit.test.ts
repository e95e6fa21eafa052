import t from 'tap'
import { aComplaint } from '../fixtures/complaints.ts'
import { createDatabase } from '../fixtures/database.ts'
import { BODY, callOps, prepareOpsCalls, type Value } from '../fixtures/ops-calls.ts'
import { rolledBack, type Tx } from '../fixtures/sql.ts'

const { url, sql } = await createDatabase()
const { org, domain, paused, suspended, testKey, template, endpoint, disabled, right, ...made } =
  await prepareOpsCalls(url, sql)
// So that they have missed something.
await sql`update app.webhook_endpoints set created_at = now() - interval '2 days'`

type Row = {
  id: string
  at: Date
  actor: string
  applicationName: string
  action: string
  organisation: string | null
  target: string | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
}

/** What a function leaves: the organisation, what was changed, and how it was before and after. */
type Expected = [
  organisation: string | RegExp | null,
  target: string | RegExp | null,
  before: object | null,
  after: object | null,
]

const ISO = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/
const SHA256 = /^[0-9a-f]{64}$/
const aUrl = 'https://hooks.acme.example/'
const known = { name: 'Known', price_rand: 0, emails_included: 0, sms_included: 0 }
const consent = { source: 'the form at acme.example', consented_at: ISO, opted_out_at: null }
const hello = { name: 'Hello', subject: 'Hello', html_sha256: SHA256, text_sha256: SHA256 }
const hooks = { url: 'https://hooks.example/', event_types: ['email.sent'] }

/** What each of the `right` calls leaves; the others read only. */
const expected: Record<string, Expected> = {
  create_plan: [
    null,
    'new',
    null,
    { name: 'New', price_rand: 0, emails_included: 1, sms_included: 2, domains_included: 3 },
  ],
  set_plan_terms: [null, 'known', known, { name: 'Better known', price_rand: 99 }],
  create_organisation: [
    /^org_/,
    /^org_/,
    null,
    { name: 'Acme', owner_email: 'owner@acme.example', plan: 'starter' },
  ],
  rename_organisation: [org, org, { name: 'Test' }, { name: 'Acme' }],
  create_api_key: [org, /^sk_live_[0-9a-f]{8}$/, null, { mode: 'live', scopes: ['read'] }],
  revoke_api_key: [org, testKey.slice(0, 16), { revoked_at: null }, { revoked_at: ISO }],
  set_owner_email: [
    org,
    org,
    { owner_email: 'owner@example.com' },
    { owner_email: 'owner@acme.example' },
  ],
  set_plan: [org, org, { plan: 'plan-1000000' }, { plan: 'known' }],
  grant_credits: [org, org, { credits: 0 }, { credits: 10, note: 'paid by card' }],
  pause: [org, org, { state: 'active', reason: null }, { state: 'paused', reason: 'a test' }],
  resume: [
    paused,
    paused,
    { state: 'paused', reason: 'a test' },
    { state: 'active', reason: null },
  ],
  suspend: [org, org, { state: 'active' }, { state: 'suspended', reason: 'a test' }],
  reinstate: [suspended, suspended, { state: 'suspended' }, { state: 'active', reason: null }],
  verify_domain: [org, 'acme.example', null, { status: 'verified', is_vouched: true }],
  rotate_dkim: [org, domain, { active: 'pg1' }, { active: 'pg2' }],
  create_template: [org, /^tpl_/, null, hello],
  change_template: [
    org,
    template,
    { name: 'Known', subject: 'Known', html_sha256: SHA256, text_sha256: null },
    hello,
  ],
  delete_template: [org, template, { name: 'Known', subject: 'Known' }, null],
  suppress_globally: [null, 'gone@acme.example', null, { note: 'left' }],
  unsuppress_globally: [null, 'bounced@acme.example', { note: '' }, null],
  record_consent: [org, '+27821234567', null, consent],
  withdraw_consent: [
    org,
    '+27821234567',
    null,
    { source: null, opted_out_at: ISO, opted_out_by: /^operator / },
  ],
  approve_sender: [org, 'Acme Ltd', null, { approved_at: ISO }],
  revoke_sender: [org, 'Acme', { approved_at: ISO }, null],
  set_shared_sender: [null, null, { shared_sender: 'Postgram' }, { shared_sender: 'Acme' }],
  set_marketing_hours: [null, null, { rule: 'interface' }, { rule: 'statutory' }],
  set_retention: [null, 'bodies', { days: 30 }, { days: 7 }],
  after_restore: [null, null, null, { messages: 1 }],
  block_number: [null, '+27821234567', null, { note: 'registered' }],
  unblock_number: [null, '+27820000002', { note: '' }, null],
  apply_staged_numbers: [
    null,
    null,
    null,
    { new: 1, gone: 1, replaces: true, note: 'the list of June' },
  ],
  erase_person: [null, SHA256, null, { messages: 0, rows: 2 }],
  add_holiday: [null, '2029-05-30', { name: 'Election' }, { name: 'General election' }],
  remove_holiday: [null, '2029-05-30', { name: 'Election' }, null],
  create_webhook_endpoint: [org, /^we_/, null, { url: aUrl, event_types: ['email.sent'] }],
  set_webhook_endpoint: [
    org,
    endpoint,
    { url: hooks.url },
    { url: aUrl, event_types: ['email.sent'] },
  ],
  rotate_webhook_secret: [org, endpoint, { old_secret_until: null }, { old_secret_until: ISO }],
  disable_webhook_endpoint: [
    org,
    endpoint,
    { disabled_reason: null },
    { disabled_reason: 'a test' },
  ],
  enable_webhook_endpoint: [
    org,
    disabled,
    { disabled_reason: 'a test' },
    { disabled_reason: null, replayed: 1 },
  ],
  delete_webhook_endpoint: [org, endpoint, { url: hooks.url }, null],
  send_test_event: [org, endpoint, null, { event: /^evt_/, type: 'email.sent' }],
  replay_event: [org, made.event, null, { endpoint }],
  replay_events: [
    org,
    endpoint,
    null,
    { since: ISO, until: ISO, only_missed: true, deliveries: 1 },
  ],
  retry_message: [
    org,
    made.waiting.id,
    { status: 'queued', error_code: null },
    { status: 'queued', due: 'now' },
  ],
}
const readers = ['statement', 'why', 'export_person', 'timeline', 'messages_of']

/** What was left since the row with that id, oldest first. */
const rowsSince = (tx: Tx, id: string) =>
  tx<Row[]>`select * from ops.audit where id > ${id} order by id`

async function lastId(tx: Tx): Promise<string> {
  const [row] = await tx`select coalesce(max(id), 0) as id from ops.audit`
  return row?.id
}

t.test('every function of ops is right for an operator, and leaves what it did', async (t) => {
  t.same(Object.keys(right).sort(), [...Object.keys(expected), ...readers].sort())
  const [session] = await sql`select session_user::text as name`
  for (const [name, values] of Object.entries(right)) {
    await rolledBack(sql, async (tx) => {
      await tx`set local role postgram_operator`
      await tx`set local application_name = 'psql of a test'`
      const before = await lastId(tx)
      await callOps(tx, name, values)
      const rows = await rowsSince(tx, before)
      if (readers.includes(name)) return t.same(rows, [], `${name} reads only`)
      t.equal(rows.length, 1, `${name} leaves one row`)
      const [organisation, target, was, is] = expected[name] as Expected
      t.match(
        rows[0],
        {
          actor: `${session?.name} as postgram_operator`,
          applicationName: 'psql of a test',
          action: name,
          organisation,
          target,
          before: was,
          after: is,
        },
        name,
      )
      const [clock] = await tx`select now() as now`
      t.same(rows[0]?.at, clock?.now, name)
    })
  }
})

t.test('a call that changes nothing leaves no row', async (t) => {
  const idempotent: [name: string, values: Value[]][] = [
    ['set_plan', [org, 'known']],
    ['set_plan_terms', ['known', null, 0, null, null, null]],
    ['rename_organisation', [org, 'Test']],
    ['set_owner_email', [org, 'owner@example.com']],
    ['verify_domain', [org, domain]],
    ['change_template', [template, 'Known', 'Known', BODY, null]],
    ['suppress_globally', ['bounced@acme.example', 'again']],
    ['withdraw_consent', [org, '+27820000003']],
    ['approve_sender', [org, 'Acme']],
    ['set_shared_sender', ['Postgram']],
    ['set_marketing_hours', ['interface']],
    ['set_retention', ['messages', 400]],
    ['block_number', ['+27820000002', 'again']],
    ['add_holiday', ['2029-05-30', 'Election']],
    ['set_webhook_endpoint', [endpoint, hooks.url, null]],
    ['erase_person', ['nobody@acme.example']],
    ['replay_events', [endpoint, '2099-01-01', '2100-01-01', true]],
  ]
  await rolledBack(sql, async (tx) => {
    await tx`select ops.set_plan(${org}, 'known')`
    await tx`select ops.withdraw_consent(${org}, '+27820000003')`
    const before = await lastId(tx)
    for (const [name, values] of idempotent) {
      await callOps(tx, name, values)
      t.same(await rowsSince(tx, before), [], name)
    }
  })
})

t.test('the actor is the login, with the role that it took on', async (t) => {
  const actorOf = async (tx: Tx) => {
    const before = await lastId(tx)
    await tx`select ops.grant_credits(${org}, 1, 'a test')`
    return (await rowsSince(tx, before))[0]?.actor
  }
  const alice = `alice_${process.pid}`
  await rolledBack(sql, async (tx) => {
    const [owner] = await tx`select session_user::text as name`
    t.equal(await actorOf(tx), owner?.name)
    await tx.unsafe(`create role ${alice} login in role postgram_operator`)
    await tx.unsafe(`set local session authorization ${alice}`)
    t.equal(await actorOf(tx), alice)
    await tx`set local role postgram_operator`
    t.equal(await actorOf(tx), `${alice} as postgram_operator`)
  })
})

t.test('no row holds a key, a secret or a body', async (t) => {
  await rolledBack(sql, async (tx) => {
    const secrets: string[] = [BODY, 'Only for', testKey, testKey.slice(16)]
    const said = async (name: string, values: Value[]) => {
      const [row] = await callOps(tx, name, values)
      return String(Object.values(row ?? {})[0])
    }
    secrets.push((await said('create_api_key', [org, 'live', ['read']])).slice(16))
    secrets.push(await said('rotate_webhook_secret', [endpoint]))
    const [one] = await tx<{ secret: string }[]>`
      select (ops.create_webhook_endpoint(${org}, ${aUrl}, '{email.sent}')).secret`
    secrets.push(String(one?.secret))
    for (const name of ['create_template', 'change_template', 'delete_template', 'retry_message']) {
      await callOps(tx, name, right[name] ?? [])
    }
    await callOps(tx, 'revoke_api_key', [testKey])
    const all = JSON.stringify(await tx`select * from ops.audit`)
    t.match(all, '"create_api_key"')
    for (const secret of secrets) {
      t.ok(secret.length > 7)
      t.notOk(all.includes(secret))
    }
  })
})

t.test('what the service does by itself is there too', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      update app.messages set status = 'sent', sent_at = now()
      where id = core.decode_id('em', ${made.waiting.id})`
    const [message] = await tx`select core.decode_id('em', ${made.waiting.id}) as id`
    await tx`
      update app.bodies set recipients = '{a@c.example,b@c.example,c@c.example}'
      where message_id = ${message?.id}`
    const receipts = JSON.stringify(
      ['a', 'b', 'c'].map((name) => aComplaint(message?.id, `${name}@c.example`)),
    )
    const [checked] = await tx`
      update app.domains
      set status = 'verified', is_vouched = false, wrong_since = now() - interval '73 hours'
      where name = ${domain}
      returning id`
    await tx`
      update app.webhook_endpoints
      set failing_since = now() - interval '73 hours', failed_at = now(), last_error = 'timeout'
      where id = core.decode_id('we', ${endpoint})`
    const before = await lastId(tx)
    await tx`set local role postgram_service`
    await tx`select api.record_receipts(${receipts}::text::jsonb)`
    await tx`select api.finish_check(${checked?.id}, false, '[]')`
    await tx`select api.judge_endpoints()`
    await tx`reset role`
    const left = (await rowsSince(tx, before)).map(({ id: _, at: __, ...row }) => ({ ...row }))
    t.match(left, [
      {
        actor: 'service',
        action: 'pause_for_complaints',
        organisation: org,
        target: org,
        before: { state: 'active' },
        after: { state: 'paused', reason: /^3 complaints/ },
      },
      {
        actor: 'service',
        action: 'judge_domain',
        organisation: org,
        target: domain,
        before: { status: 'verified' },
        after: { status: 'failed' },
      },
      {
        actor: 'service',
        action: 'judge_endpoints',
        organisation: org,
        target: endpoint,
        before: { disabled_reason: null },
        after: { disabled_reason: 'failing' },
      },
    ])
  })
})
