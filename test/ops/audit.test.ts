import t from 'tap'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { BODY, callOps, prepareOpsCalls, type Value } from '../fixtures/load.ts'
import { aComplaint } from '../fixtures/organisation.ts'

const { url, sql } = await createDatabase()
const {
  org,
  domain,
  paused,
  suspended,
  testKey,
  template,
  changed,
  endpoint,
  disabled,
  right,
  ...made
} = await prepareOpsCalls(url, sql)
// The endpoints must have missed events.
await sql`update app.webhook_endpoints set created_at = now() - interval '2 days'`

type Row = {
  id: string
  at: Date
  actor: string
  login: string | null
  applicationName: string
  action: string
  organisation: string | null
  target: string | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
}

/** The audit row of a function: organisation, target, and the values before and after. */
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

/** The audit row of each of the `right` calls; the others only read. */
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
  invite: [org, 'ann@acme.example', null, { role: 'member' }],
  remove_member: [org, 'viewer@acme.example', { role: 'viewer' }, null],
  make_operator: [null, 'ann@acme.example', { is_operator: false }, { is_operator: true }],
  create_sign_in_link: [null, 'viewer@acme.example', null, { user: /^usr_/ }],
  sign_out: [null, 'viewer@acme.example', { sessions: 0 }, null],
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
  verify_domain: [org, 'acme.example', null, { status: 'verified', is_manually_verified: true }],
  release_domain: [org, 'claimed.example', { organisation: org, status: 'pending' }, null],
  rotate_dkim: [org, domain, { active: 'pg1' }, { active: 'pg2' }],
  create_template: [org, /^tpl_/, null, hello],
  change_template: [
    org,
    template,
    { name: 'Known', subject: 'Known', html_sha256: SHA256, text_sha256: null },
    hello,
  ],
  restore_template: [
    org,
    changed,
    { name: 'After', subject: 'After' },
    { name: 'Before', subject: 'Before', html_sha256: SHA256, text_sha256: null },
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
  set_cell: [null, '1', { name: 'main' }, { number: 1, name: 'first' }],
  begin_division: [null, '2', null, { name: 'second', organisations: [org] }],
  divide: [null, '1', { number: 1 }, { number: 1, other_cell: 2, moved: [org] }],
  end_division: [null, '2', { name: 'second', begun_at: ISO }, null],
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

/** Functions that need a division that has begun. */
const ofDivision = ['divide', 'end_division']

const readers = ['statement', 'why', 'export_person', 'timeline', 'messages_of', 'help', 'example']

/** Returns the audit rows after the row with this ID, oldest first. */
const rowsSince = (tx: Tx, id: string) =>
  tx<Row[]>`select * from ops.audit where id > ${id} order by id`

async function lastId(tx: Tx): Promise<string> {
  const [row] = await tx`select coalesce(max(id), 0) as id from ops.audit`
  return row?.id
}

/** Begins a division. Returns what a function that follows it is called with in the old cell. */
async function begunDivision(tx: Tx, name: string): Promise<Value[]> {
  await callOps(tx, 'begin_division', right.begin_division ?? [])
  if (name !== 'divide') return right[name] ?? []
  await tx`reset role`
  const [row] = await tx`select core.division_proof(d) as proof from app.division d`
  await tx`set local role postgram_operator`
  return [1, row?.proof]
}

t.test('every function of ops works for an operator and writes to the audit', async (t) => {
  t.same(Object.keys(right).sort(), [...Object.keys(expected), ...readers].sort())
  const [session] = await sql`select session_user::text as name`
  for (const [name, values] of Object.entries(right)) {
    await rolledBack(sql, async (tx) => {
      await tx`set local role postgram_operator`
      await tx`set local application_name = 'psql of a test'`
      const given = ofDivision.includes(name) ? await begunDivision(tx, name) : values
      const before = await lastId(tx)
      await callOps(tx, name, given)
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
      const [time] = await tx`
        select ${rows[0]?.at ?? null}::timestamptz between date_trunc('milliseconds', now()) and clock_timestamp() as is_real`
      t.ok(time?.isReal, name)
    })
  }
})

t.test('audit: a call that changes nothing writes no row', async (t) => {
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
    ['set_cell', [1, 'main']],
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

t.test('audit: the actor is the login with the role that it assumed', async (t) => {
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
    const logins = await tx`select distinct login from ops.audit where login = ${alice}`
    t.equal(logins.length, 1, 'the login is kept whatever role it takes on')
  })
})

t.test('audit: a login with the role of the service is named in its rows', async (t) => {
  const mallory = `mallory_${process.pid}`
  await rolledBack(sql, async (tx) => {
    await tx.unsafe(`create role ${mallory} login in role postgram_service`)
    const before = await lastId(tx)
    await tx`update app.webhook_endpoints
      set failing_since = now() - interval '73 hours', failed_at = now(), last_error = 'timeout'
      where id = core.decode_id('we', ${endpoint})`
    await tx.unsafe(`set local session authorization ${mallory}`)
    await tx`set local role postgram_service`
    await tx`select api.check_failing_endpoints()`
    await tx`reset session authorization`
    t.match(await rowsSince(tx, before), [{ actor: 'service', login: mallory }])
  })
})

t.test('an operator who sets postgram.now changes neither the audit nor a period', async (t) => {
  await rolledBack(sql, async (tx) => {
    const realTime = async () => {
      const before = await lastId(tx)
      await tx`select set_config('postgram.now', '2031-05-01T10:00:00Z', true)`
      await tx`set local role postgram_operator`
      await tx`select ops.grant_credits(${org}, 1, 'a test')`
      const [row] = await tx<{ id: string }[]>`
        select ops.create_organisation('Acme', 'owner@acme.example') as id`
      await tx`reset role`
      const rows = await rowsSince(tx, before)
      t.equal(rows.length, 2)
      for (const { at } of rows) t.ok(Math.abs(at.getTime() - Date.now()) < 3_600_000)
      const [period] = await tx<{ isNow: boolean; days: number }[]>`
        select period_end between now() and now() + interval '32 days' as is_now
        from ops.organisations where id = ${row?.id ?? ''}`
      return period?.isNow
    }
    t.equal(await realTime(), false, 'with the test clock, which tests have, periods move')
    await tx`
      create or replace function core.has_test_clock() returns boolean language sql stable as 'select false'`
    t.equal(await realTime(), true, 'without it the setting means nothing')
  })
})

t.test('only the owner of the functions can enable the test clock', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const role of ['postgram_operator', 'postgram_service', 'postgram_report']) {
      await tx.unsafe(`set local role ${role}`)
      const error = await raisedBy(
        tx,
        (inner) => inner`
        create or replace function core.has_test_clock() returns boolean language sql stable as 'select true'`,
      )
      t.equal(error.code, '42501')
      await tx`reset role`
    }
  })
})

t.test('audit seals: every row is sealed once, also rows that commit late', async (t) => {
  const seal = async () => (await sql`select api.seal_audit() as rows`)[0]?.rows
  await seal()
  t.equal(await seal(), 0, 'none is left')
  await sql.begin(async (tx) => {
    await tx`select ops.grant_credits(${org}, 1, 'late')`
    await sql`select ops.grant_credits(${paused}, 1, 'early')`
    t.equal(await seal(), 1)
  })
  t.equal(await seal(), 1)
  await Promise.all([
    ...[1, 2, 3, 4].map(() => sql`select ops.grant_credits(${org}, 1, 'again')`),
    seal(),
    seal(),
  ])
  await seal()
  t.same(await sql`select from ops.audit where seal is null`, [])
  t.match(await sql`select ok from ops.checks where name = 'audit'`, [{ ok: true }])
})

t.test('what is changed or removed from the sealed audit is noticed', async (t) => {
  for (const note of ['one', 'two', 'three']) {
    await sql`select ops.grant_credits(${org}, 1, ${note})`
    await sql`select api.seal_audit()`
  }
  const some =
    'id = (select max(x.id) from app.audit x where x.seal_id = (select max(s.id) - 1 from app.audit_seals s))'
  const last = '(select max(id) from app.audit_seals)'
  const attacks = {
    'a row is removed': `delete from app.audit where ${some}`,
    'the newest row is removed': 'delete from app.audit where id = (select max(id) from app.audit)',
    'a row is changed': `update app.audit set actor = 'nobody' where ${some}`,
    'a row gets another time': `update app.audit set at = at - interval '1 day' where ${some}`,
    'a row is changed with its hash': `update app.audit a set actor = 'nobody' where ${some};
      update app.audit a set sha256 = core.audit_sha256(a) where ${some}`,
    'a row is put under another seal': `update app.audit set seal_id = 1 where ${some}`,
    'a row is added under a seal': `insert into app.audit (at, actor, login, application_name, action, after, seal_id, sha256)
      select at, actor, login, application_name, action, after, seal_id, sha256 from app.audit where ${some}`,
    'a seal is removed with its rows': `delete from app.audit where seal_id = ${last} - 1;
      delete from app.audit_seals where id = ${last} - 1`,
    'a seal is removed and its rows are not sealed any more': `
      update app.audit set seal_id = null, sha256 = null where seal_id = ${last} - 1;
      delete from app.audit_seals where id = ${last} - 1`,
    'the last seal is removed with its rows': `delete from app.audit where seal_id = ${last};
      delete from app.audit_seals where id = ${last}`,
    'the first seal is removed with its rows': `delete from app.audit where seal_id = 1;
      delete from app.audit_seals where id = 1`,
    'all is removed': 'delete from app.audit; delete from app.audit_seals',
    'a seal is changed': `update app.audit_seals set sealed_at = sealed_at + interval '1 s' where id = ${last} - 1`,
  }
  const check = async (tx: Tx) => (await tx`select ok from ops.checks where name = 'audit'`)[0]?.ok
  for (const [name, attack] of Object.entries(attacks)) {
    await rolledBack(sql, async (tx) => {
      t.equal(await check(tx), true)
      await tx.unsafe(attack)
      t.equal(await check(tx), false, name)
    })
  }
  for (const [name, attack] of Object.entries(attacks)) {
    await rolledBack(sql, async (tx) => {
      const isVerified = async () =>
        (await tx`select core.audit_is_verified() as ok`)[0]?.ok === true
      await tx`select api.verify_audit()`
      t.equal(await isVerified(), true)
      await tx.unsafe(attack)
      await tx`select api.verify_audit()`
      t.equal(await isVerified(), false, `${name}: found by the next full verification`)
    })
    await rolledBack(sql, async (tx) => {
      await tx`update app.audit_chain set verified_seals = seals - 2, verified_at = now(), is_complete = true`
      await tx.unsafe(attack)
      const [row] = await tx`select core.audit_is_verified() as ok`
      t.equal(
        row?.ok,
        name === 'the first seal is removed with its rows',
        `${name}: after the verified seals`,
      )
    })
  }
  const removed = sql`delete from app.audit_seals where id = 1`
  await t.rejects(removed, { code: '23503' }, 'a seal cannot go without its rows')
})

t.test(
  'audit seals: an erasure keeps the audit complete, and erased values cannot be guessed',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      const check = async () => (await tx`select ok from ops.checks where name = 'audit'`)[0]?.ok
      const sealAll = () => tx`select api.seal_audit()`
      for (const phone of ['+27821110001', '+27821110002']) {
        await tx`select ops.record_consent(${org}, ${phone}, ${`the form, beside +27821110001`})`
      }
      await sealAll()
      const [before] = await tx`
      select salt, sha256 from app.audit where target = '+27821110001' and action = 'record_consent'`
      for (const person of ['+27821110001', '+27821110002']) {
        await tx`select ops.erase_person(${person})`
        t.equal(await check(), true, 'before the erasure is sealed')
        await sealAll()
        t.equal(await check(), true)
      }
      const [after] = await tx`select salt, sha256 from app.audit where sha256 = ${before?.sha256}`
      t.not(after?.salt, before?.salt, 'without the salt the old hash confirms nothing')
      await tx`update app.audit set target = '+27821110009' where sha256 = ${before?.sha256}`
      t.equal(await check(), false, 'an erased row is not to be changed by anything else')
    })
  },
)

t.test('audit seals: a dump of the rows stays complete', async (t) => {
  await sql`select api.seal_audit()`
  const copy = await createDatabase()
  await copy.sql`set session_replication_role = replica`
  for (const table of ['app.audit_seals', 'app.audit']) {
    const [rows] = await sql<{ json: string }[]>`
      select coalesce(json_agg(to_jsonb(x)), '[]')::text as json from ${sql(table)} x`
    await copy.sql.begin(async (tx) => {
      await tx`set local timezone = 'Asia/Kolkata'`
      await tx`set local session_replication_role = replica`
      await tx`insert into ${tx(table)} overriding system value
        select * from json_populate_recordset(null::${tx(table)}, ${rows?.json ?? ''}::text::json)`
    })
  }
  const [chain] = await sql`select seals, sha256 from app.audit_chain`
  const check = async () => {
    const [row] = await copy.sql`select ok from ops.checks where name = 'audit'`
    return row?.ok
  }
  t.equal(await check(), false, 'the chain says that there are more')
  await copy.sql`update app.audit_chain set seals = ${chain?.seals}, sha256 = ${chain?.sha256}`
  t.equal(await check(), true)
})

t.test('audit: no row contains a key, a secret or a body', async (t) => {
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
    for (const name of [
      'create_template',
      'change_template',
      'restore_template',
      'delete_template',
      'retry_message',
    ]) {
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

t.test('audit: automatic actions of the service have rows', async (t) => {
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
      set status = 'verified', is_manually_verified = false, wrong_since = now() - interval '73 hours'
      where name = ${domain}
      returning id`
    await tx`
      update app.webhook_endpoints
      set failing_since = now() - interval '73 hours', failed_at = now(), last_error = 'timeout'
      where id = core.decode_id('we', ${endpoint})`
    const before = await lastId(tx)
    await tx`set local role postgram_service`
    await tx`select api.finish_poll(${receipts}::text::jsonb)`
    await tx`select api.finish_check(${checked?.id}, false, '[]')`
    await tx`select api.check_failing_endpoints()`
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
        action: 'evaluate_domain',
        organisation: org,
        target: domain,
        before: { status: 'verified' },
        after: { status: 'failed' },
      },
      {
        actor: 'service',
        action: 'check_failing_endpoints',
        organisation: org,
        target: endpoint,
        before: { disabled_reason: null },
        after: { disabled_reason: 'failing' },
      },
    ])
  })
})
