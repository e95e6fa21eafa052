import { randomBytes, randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import t from 'tap'
import { connect, type Sql } from '../../src/db/client.ts'
import {
  copyDatabase,
  createDatabase,
  raisedBy,
  rolledBack,
  serviceUrl,
} from '../fixtures/database.ts'
import { anEmail, anSms, get, post } from '../fixtures/http.ts'
import { indexMessages } from '../fixtures/messages.ts'
import { addDkimKeys } from '../fixtures/network.ts'
import {
  createOrganisation,
  liftRate,
  type TestOrganisation,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import { runCommand } from '../fixtures/processes.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { createEndpoint, recordEvents } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const stays = await createOrganisation(sql, { name: 'Stays' })
const moves = await createOrganisation(sql, { name: 'Moves' })
const both = [stays, moves]

const uuidOf = (one: TestOrganisation) => sql`core.decode_id('org', ${one.id})`

const begin = (tx: Sql | Parameters<Parameters<typeof rolledBack>[1]>[0], ids = [moves.id]) =>
  tx`select ops.begin_division(2, 'second', ${ids})`

t.test(
  'ops.begin_division: refuses a number in use, and too few or too many to move',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      const refusal = async (number: number, organisations: string[]) =>
        (
          await raisedBy(
            tx,
            (inner) => inner`select ops.begin_division(${number}, 'second', ${organisations})`,
          )
        ).message
      t.match(await refusal(1, [moves.id]), /this cell has the number 1/)
      t.match(await refusal(27, [moves.id]), /from 1 to 26/)
      t.match(await refusal(2, []), /at least one organisation that moves/)
      t.match(await refusal(2, ['Unknown']), /there is no organisation/)
      t.match(await refusal(2, [moves.id, stays.id]), /must stay/)
      await tx`
      insert into app.cells (number, name, subscription, joined_at)
      values (2, 'second', 'postgram_cell_2', now())`
      t.match(await refusal(2, [moves.id]), /has joined a cell 2/)
      await tx`insert into app.blocked_numbers (phone, cell, created_at) values ('+27821230001', 3, now())`
      t.match(await refusal(3, [moves.id]), /rows of a former cell 3/)
    })
  },
)

t.test('ops.begin_division: refuses keys that a router cannot tell apart', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`update app.api_keys set prefix = 'sk_live_01234567' where mode = 'live'`
    t.match((await raisedBy(tx, (inner) => begin(inner))).message, /sk_live_01234567/)
    await tx`update app.api_keys set revoked_at = now() where organisation_id = ${uuidOf(stays)}`
    await begin(tx)
  })
})

t.test('a process and a division exclude each other', async (t) => {
  const service = await startTestService(url, { roles: ['api'] })
  await rolledBack(sql, async (tx) => {
    t.match((await raisedBy(tx, (inner) => begin(inner))).message, /a process .* is running/)
  })
  await service.stop()
  await begin(sql)
  await t.rejects(startTestService(url, { roles: ['api'] }), {
    message: /being divided: run ops\.divide\(\) or ops\.end_division\(\)/,
  })
  const started = await runCommand(['start', '--only', 'worker'], {
    DATABASE_URL: url,
    SECRET_KEY: randomBytes(32).toString('base64'),
  })
  t.match(started, { code: 1, stdout: '', stderr: /^The cell is being divided: .*\.\n$/ })
  await t.rejects(
    sql`select api.record_heartbeat('a-process', '{api}', 'here', 1, '1.2.3', now())`,
    /being divided/,
  )
  await rolledBack(sql, async (tx) => {
    t.match((await raisedBy(tx, (inner) => begin(inner))).message, /divided already/)
  })
  await sql`select ops.end_division()`
  const again = await startTestService(url, { roles: ['api'] })
  t.equal((await get(`${again.base}/v1/usage`, moves.liveKey)).status, 200, 'all stays as it was')
  await again.stop()
})

t.test('a process that has not registered yet keeps a division from beginning', async (t) => {
  const starting = connect(await serviceUrl(url), { max: 1, role: 'postgram_service' })
  await starting`select api.check_division()`
  await rolledBack(sql, async (tx) => {
    t.match((await raisedBy(tx, (inner) => begin(inner))).message, /a process .* is running/)
  })
  await starting.end()
})

t.test('ops.begin_division: waits for 30 s after a process was killed', async (t) => {
  await rolledBack(sql, async (tx) => {
    const killed = (age: string) => tx`
      insert into app.processes (pool_id, roles, host, pid, version, synchronous_commit, clock_offset, heartbeat_at)
      values ('killed-process', '{api}', 'here', 1, '1.2.3', 'on', '0', now() - ${age}::interval)
      on conflict (pool_id) do update set heartbeat_at = excluded.heartbeat_at`
    await killed('25 seconds')
    t.match((await raisedBy(tx, (inner) => begin(inner))).message, /was killed within the last 30/)
    await killed('31 seconds')
    await begin(tx)
  })
})

t.test('ops.end_division: after a failover it asks whether this is the old cell', async (t) => {
  await rolledBack(sql, async (tx) => {
    await begin(tx)
    t.same([...(await tx`select ok from ops.checks where name = 'division'`)], [{ ok: false }])
    await tx`update app.division set timeline = timeline - 1`
    const { message, hint } = await raisedBy(tx, (inner) => inner`select ops.end_division()`)
    t.match(message, /is a copy of the cell/)
    await tx.unsafe(/select ops\.end_division\(true\)/.exec(String(hint))?.[0] ?? '')
    t.same([...(await tx`select ok from ops.checks where name = 'division'`)], [{ ok: true }])
  })
})

t.test('core.leave_owned_jobs: knows every task', async (t) => {
  const [row] = await sql<{ source: string }[]>`
    select prosrc as source from pg_proc where oid = 'core.leave_owned_jobs'::regproc`
  const files = await readdir(new URL('../../tasks/', import.meta.url))
  const sends = await sql<{ name: string }[]>`
    select unnest(core.send_tasks('email') || core.send_tasks('sms')) as name`
  const names = [...files.map((file) => file.replace('.ts', '')), ...sends.map(({ name }) => name)]
  t.ok(names.length > 10)
  for (const name of [...names, 'deliver_webhooks']) t.ok(row?.source.includes(`'${name}'`), name)
})

t.test('a process that starts while a division begins waits and does not start', async (t) => {
  const division = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const dividing = sql.begin(async (tx) => {
    await begin(tx)
    begun.resolve()
    await division.promise
  })
  await begun.promise
  const starting = startTestService(url, { roles: ['api'] })
  starting.catch(() => undefined)
  await until('the process to wait', async () => {
    const waiting = await sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event = 'advisory' and query like '%check_division%'`
    return waiting.length > 0
  })
  division.resolve()
  await dividing
  await t.rejects(starting, /being divided/)
  await sql`select ops.end_division()`
})

t.test('ops.begin_division: refuses while the outcome of an SMS is unknown', async (t) => {
  const { base, stop } = await startTestService(url, { roles: ['api'] })
  const { json } = await post(`${base}/v1/sms`, moves.liveKey, anSms())
  await stop()
  await rolledBack(sql, async (tx) => {
    await tx`
      update app.messages set attempt_started_at = now(), attempts = 1
      where id = core.decode_id('sm', ${json.id})`
    t.match((await raisedBy(tx, (inner) => begin(inner))).message, /^1 SMS have an attempt/)
    await tx`update app.messages set attempt_started_at = null`
    await begin(tx)
  })
})

/** Tables that name organisations, by column: of schema app, partitions left out. */
const ownedBy = await sql<{ table: string; column: string }[]>`
  select c.relname as table, a.attname as column
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    and (a.attname ~ 'organisation_id$' or exists (
      select from pg_constraint f
      where f.conrelid = c.oid and f.contype = 'f' and f.confrelid = 'app.organisations'::regclass
        and f.conkey = array[a.attnum]))
  order by 1`

/** What names an organisation for good: the audit, which is sealed, and what says where the organisation is. */
const KEPT = ['audit', 'moved_organisations']

/** Tables that belong to an organisation by a row of another table, with the column that names that row. */
const CHILDREN: Record<string, [column: string, parent: string]> = {
  bodies: ['message_id', 'messages'],
  events: ['message_id', 'messages'],
  sms_parts: ['message_id', 'messages'],
  dkim_keys: ['domain_id', 'domains'],
  template_versions: ['template_id', 'templates'],
  webhook_attempts: ['event_id', 'webhook_events'],
  webhook_deliveries: ['endpoint_id', 'webhook_endpoints'],
  webhook_hours: ['endpoint_id', 'webhook_endpoints'],
}

/** Tables that name rows of organisations and are for all of them, or are soon emptied. */
const SHARED = [
  // Addresses that bounced, and the message that did.
  'hard_bounces.message_id',
  // Names the last message of a provider in a day.
  'stray_receipts.last_message_id',
  // The changes that are not summed yet, and what the sandbox took in the last week.
  'status_changes.message_id',
  'status_changes.message_ids',
  'sandbox_batches.message_ids',
  // The mail of a user, and sessions, which go with the user.
  'sessions.user_id',
  'sign_in_links.user_id',
  'members.user_id',
]

/** The tables that have rows of an organisation. */
async function tablesOf(sql: Sql, organisation: TestOrganisation): Promise<string[]> {
  const parts = ownedBy.map(
    ({ table, column }) =>
      `select '${table}' as name where exists (
        select from app.${table} where ${column} = core.decode_id('org', $1))`,
  )
  const rows = await sql.unsafe<{ name: string }[]>(parts.join(' union all '), [organisation.id])
  return rows.map(({ name }) => name).sort()
}

/** The IDs of the rows of an organisation in the tables that have children. */
async function parentsOf(sql: Sql, organisation: TestOrganisation): Promise<string[]> {
  const parts = [...new Set(Object.values(CHILDREN).map(([, parent]) => parent))].map(
    (parent) =>
      `select id::text from app.${parent} where organisation_id = core.decode_id('org', $1)`,
  )
  const rows = await sql.unsafe<{ id: string }[]>(parts.join(' union all '), [organisation.id])
  return rows.map(({ id }) => id)
}

async function childrenOf(sql: Sql, parents: string[]): Promise<string[]> {
  const parts = Object.entries(CHILDREN).map(
    ([table, [column]]) =>
      `select '${table}' as name where exists (
        select from app.${table} where ${column} = any ($1::text[]::uuid[]))`,
  )
  const rows = await sql.unsafe<{ name: string }[]>(parts.join(' union all '), [parents])
  return rows.map(({ name }) => name).sort()
}

/** Gives an organisation a row in each table that names organisations. */
async function fill(organisation: TestOrganisation): Promise<void> {
  const { id, domain } = organisation
  const org = uuidOf(organisation)
  await createEndpoint(sql, organisation)
  const [event = ''] = await recordEvents(sql, organisation, 'email.sent', [new Date()])
  await sql`
    insert into app.webhook_attempts (endpoint_id, event_id, attempt, status, duration_ms, started_at)
    select p.id, core.decode_id('evt', ${event}), 1, 200, 1, now()
    from app.webhook_endpoints p where p.organisation_id = ${org}`
  await sql`
    insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
    select p.id, core.decode_id('evt', ${event}), now() + interval '1 day'
    from app.webhook_endpoints p where p.organisation_id = ${org}`
  await sql`
    insert into app.webhook_hours (endpoint_id, hour, attempts, succeeded)
    select p.id, now(), 1, 1 from app.webhook_endpoints p where p.organisation_id = ${org}`
  const [template] =
    await sql`select ops.create_template(${id}, ${id}, 'Hello', null, 'Hello') as id`
  await sql`select ops.change_template(${template?.id}, ${id}, 'Hi', null, 'Hi')`
  await addDkimKeys(sql, { domain, dkimZone: `${domain}.zone`, values: ['k=rsa; p='] })
  await sql`select ops.approve_sender(${id}, 'Acme')`
  await sql`select ops.grant_credits(${id}, 10, 'a test')`
  await sql`select ops.record_consent(${id}, '+27821230001', 'a form')`
  await sql`select ops.invite(${id}, 'shared@acme.example', 'member')`
  await sql`select ops.invite(${id}, ${`only@${domain}`}, 'member')`
  await sql`
    insert into app.sessions (id, sha256, user_id, client, viewed_organisation_id, signed_in_at, seen_at)
    select gen_random_uuid(), sha256(convert_to(${id}, 'UTF8')), u.id, 'a browser', ${org}, now(), now()
    from app.users u where u.email = ${`only@${domain}`}`
  await sql`select core.notify_owner(${org}, 'org_paused', '{}')`
  await sql`
    insert into app.suppressions (organisation_id, id, email, reason)
    values (${org}, core.new_id(now()), 'gone@acme.example', 'manual')`
  await sql`
    insert into app.suppression_hashes (sha256, organisation_id, reason, erased_at)
    values (sha256('x'), ${org}, 'manual', now())`
  await sql`
    insert into app.suppression_removals (organisation_id, email) values (${org}, 'gone@acme.example')`
  await sql`select core.enqueue_suppression_removals(array[${org}])`
  await sql`
    insert into app.domain_claims (name, organisation_id, asked_at) values ('wanted.example', ${org}, now())`
  await sql`
    insert into app.named_bounces (organisation_id, hour, addresses) values (${org}, now(), 1)`
  await sql`
    insert into app.provider_calls (organisation_id, allowed, counted_at) values (${org}, 1, now())`
  await sql`
    insert into app.plan_changes (organisation_id, from_plan, to_plan, changed_at)
    values (${org}, 'a', 'b', now())`
  await sql`
    insert into app.closed_periods (organisation_id, period_start, period_end, plan_id, plan_name, price_rand,
      emails_included, emails_used, sms_included, sms_used, sms_credits)
    values (${org}, now() - interval '1 month', now(), 'starter', 'Starter', 0, 0, 0, 0, 0, 0)`
  await sql`
    insert into app.daily_bounces (day, organisation_id, channel, code, reason, messages)
    values (current_date, ${org}, 'email', 'hard_bounce', 'gone', 1)`
  await sql`
    insert into app.daily_latencies (day, organisation_id, channel, stage, bucket, messages)
    values (current_date, ${org}, 'email', 'sent', 1, 1)`
  await sql`
    insert into app.complaints (organisation_id, message_id, recipient, received_at, emails_sent)
    values (${org}, gen_random_uuid(), 'a@b.example', now() - interval '2 days', 1)`
  await sql`
    insert into app.sms_parts (message_id, part, provider, network_id, phone, taken_at)
    select m.id, 1, 'sandbox', ${id}, '+27821230001', now()
    from app.messages m where m.organisation_id = ${org} and m.scheduled_at is not null`
  await sql`
    insert into app.events (message_id, type, occurred_at)
    select m.id, 'deferred', now() from app.messages m where m.organisation_id = ${org} limit 1`
}

/** The messages that wait in a database, each with its organisation. */
async function waitingIn(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select m.organisation_id || ' ' || m.id as id
    from (select message_id from core.message_jobs() union all select message_id from app.due_messages) w
    join app.messages m on m.id = w.message_id
    order by 1`
  return rows.map(({ id }) => id)
}

/** Runs the scheduled tasks that delete what organisations have left. */
const purge = (sql: Sql) =>
  until('the purge to end', async () => {
    const [row] = await sql<{ rows: number }[]>`
      select api.purge_moved() + api.clear_deliveries() as rows`
    return row?.rows === 0
  })

const hasUser = async (sql: Sql, email: string) =>
  (await sql`select from app.users where email = ${email}`).length > 0

const namesIn = async (sql: Sql) =>
  (await sql<{ name: string }[]>`select name from ops.organisations order by name`).map(
    ({ name }) => name,
  )

t.test('the catalog: every column that names a row of an organisation is known here', async (t) => {
  const columns = await sql<{ name: string; table: string; column: string }[]>`
    select c.relname || '.' || a.attname as name, c.relname as table, a.attname as column
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and a.attname ~ '^(last_)?(message|event|endpoint|domain|template|user)_ids?$'
    order by 1`
  const owned = new Set(ownedBy.map(({ table }) => table))
  const unknown = columns.filter(
    ({ name, table, column }) =>
      !owned.has(table) && CHILDREN[table]?.[0] !== column && !SHARED.includes(name),
  )
  t.same(
    unknown
      .map(({ name }) => name)
      .filter((name) => CHILDREN[name.split('.')[0] ?? ''] === undefined),
    [],
  )
})

t.test('a division: each half keeps its organisations and nothing of the others', async (t) => {
  const api = await startTestService(url, { roles: ['api'] })
  const headers = { 'Idempotency-Key': randomUUID() }
  const accepted = new Map<TestOrganisation, string[]>()
  for (const one of both) {
    await liftRate(sql, one)
    const ids = []
    for (const [path, body] of [
      ['emails', anEmail(one.domain)],
      ['emails', anEmail(one.domain)],
      ['sms', anSms({ to: '+27821230001' })],
      ['sms', anSms({ scheduledAt: new Date(Date.now() + 3_600_000).toISOString() })],
    ] as const) {
      const { status, json, text } = await post(`${api.base}/v1/${path}`, one.liveKey, body)
      if (status !== 200) throw new Error(text)
      ids.push(json.id as string)
    }
    accepted.set(one, ids)
  }
  const first = await post(`${api.base}/v1/emails`, moves.liveKey, anEmail(moves.domain), headers)
  t.equal(first.status, 200)
  for (const one of both) await fill(one)
  await indexMessages(sql)
  await until('the sums to be kept', async () => {
    const [row] = await sql<{ left: number }[]>`select api.sum_status_changes() as left`
    return row?.left === 0
  })
  await api.stop()

  // A job that names messages of both organisations, as one accept of both makes it.
  const [shared] = await sql<{ ids: string[] }[]>`
    with gone as (
      delete from graphile_worker._private_jobs j
      using graphile_worker._private_tasks t
      where t.id = j.task_id and t.identifier in ('send_email', 'send_emails')
      returning j.payload
    )
    select array_agg(i.id) as ids
    from gone g
    cross join lateral json_array_elements_text(
      case json_typeof(g.payload) when 'array' then g.payload else json_build_array(g.payload ->> 'id') end) as i (id)`
  t.ok((shared?.ids.length ?? 0) >= 5)
  await sql`select graphile_worker.add_job('send_emails', to_json(${shared?.ids ?? []}::text[]))`
  await sql`select api.seal_audit()`

  const everything = await tablesOf(sql, moves)
  t.same(
    everything,
    ownedBy
      .map(({ table }) => table)
      .filter((table) => table !== 'moved_organisations')
      .sort(),
    'the organisation has rows in every table that names organisations',
  )
  const parents = await parentsOf(sql, moves)
  const stayingParents = await parentsOf(sql, stays)
  t.same(await childrenOf(sql, parents), Object.keys(CHILDREN).sort())
  const waiting = await waitingIn(sql)
  const [claim] =
    await sql`select name, claimed_at from app.name_claims where name = ${moves.domain}`

  await begin(sql)
  t.match(
    [...(await sql`select number, organisations, is_copy from ops.division`)],
    [{ number: 2, organisations: [moves.id], isCopy: false }],
  )
  const copy = await copyDatabase(url)

  const refused = async (sql: Sql, number: number, proof: string | null, message: RegExp) =>
    t.rejects(sql`select * from ops.divide(${number}, ${proof})`, message)
  await refused(sql, 2, null, /this is the old cell/)
  await refused(sql, 1, null, /the proof is wrong/)
  await refused(sql, 1, 'x', /the proof is wrong/)
  await refused(copy.sql, 1, null, /the proof is wrong/)
  await refused(copy.sql, 3, null, /the number must be 2, in the copy, or 1/)
  await t.rejects(copy.sql`select ops.end_division()`, /is a copy of the cell/)

  const [other] = await copy.sql`select * from ops.divide(2)`
  t.match(other, { keptOrganisations: '1', movedOrganisations: '1', deletedApiKeys: '2' })
  const [old] = await sql`select * from ops.divide(1, ${other?.proofForOldCell})`
  t.match(old, { keptOrganisations: '1', movedOrganisations: '1', deletedApiKeys: '2' })
  for (const one of [sql, copy.sql]) await refused(one, 1, null, /is not being divided/)
  await t.rejects(sql`select ops.end_division()`, /is not being divided/)

  await t.test(
    'the copy is cell 2, and each half has its organisations, keys and users',
    async (t) => {
      t.match(
        [...(await copy.sql`select number, name from ops.cells`)],
        [{ number: 2, name: 'second' }],
      )
      t.same(await namesIn(sql), ['Stays'])
      t.same(await namesIn(copy.sql), ['Moves'])
      for (const [half, own, foreign] of [
        [sql, stays, moves],
        [copy.sql, moves, stays],
      ] as const) {
        const keys =
          await half`select distinct core.encode_id('org', organisation_id) as id from app.api_keys`
        t.same([...keys], [{ id: own.id }])
        t.ok(await hasUser(half, `only@${own.domain}`))
        t.notOk(await hasUser(half, `only@${foreign.domain}`))
        t.ok(await hasUser(half, 'shared@acme.example'))
        t.match(
          [...(await half`select organisation, cell from ops.moved_organisations`)],
          [{ organisation: foreign.id, cell: half === sql ? 2 : 1 }],
        )
        await t.rejects(half`select ops.pause(${foreign.id}, 'a test')`, /there is no organisation/)
      }
      const [kept] =
        await copy.sql`select cell, claimed_at from app.name_claims where name = ${moves.domain}`
      t.same(kept, { cell: 2, claimedAt: claim?.claimedAt })
      t.same([...(await sql`select from app.name_claims where name = ${moves.domain}`)], [])
      t.same(
        (await copy.sql`select key, backend from ops.key_map order by key`).map((row) => ({
          ...row,
        })),
        [moves.liveKey, moves.testKey]
          .map((key) => ({ key: key.slice(0, 16), backend: 'cell2' }))
          .sort((one, other) => one.key.localeCompare(other.key)),
      )
      t.same([...(await sql`select * from ops.key_map`)], [])
    },
  )

  await t.test('each message waits in one half only', async (t) => {
    const halves = [await waitingIn(sql), await waitingIn(copy.sql)]
    t.same(halves.flat().sort(), waiting)
    t.ok(halves.every((ids) => ids.length >= 4))
    const [{ id: stayingId } = {}] = await sql<{ id: string }[]>`select ${uuidOf(stays)} as id`
    t.ok(halves[0]?.every((one) => one.startsWith(String(stayingId))))
    for (const half of [sql, copy.sql]) {
      const notices = await half`select from app.notices`
      t.equal(notices.length, 1)
      const others = await half`
        select t.identifier, j.payload
        from graphile_worker._private_jobs j
        join graphile_worker._private_tasks t on t.id = j.task_id
        where t.identifier in ('notify_owner', 'remove_suppression')`
      t.equal(others.length, 2, 'a notice and a removal of the own organisation')
    }
  })

  await t.test(
    'the audit of the past is whole in both, with an entry of the division',
    async (t) => {
      for (const [half, foreign] of [
        [sql, moves],
        [copy.sql, stays],
      ] as const) {
        await half`select api.seal_audit()`
        t.same([...(await half`select core.audit_is_complete() as whole`)], [{ whole: true }])
        t.match(
          [...(await half`select after from ops.audit where action = 'divide'`)],
          [{ after: { moved: [foreign.id] } }],
        )
      }
    },
  )

  const services = [await startTestService(url), await startTestService(copy.url)]
  const [oldService, newService] = services as [(typeof services)[0], (typeof services)[0]]

  await t.test('each half sends its messages, once', async (t) => {
    for (const [half, service, own, foreign] of [
      [sql, oldService, stays, moves],
      [copy.sql, newService, moves, stays],
    ] as const) {
      const mine = (accepted.get(own) ?? []).slice(0, 3)
      await until('the messages to be sent', async () => {
        const answers = await Promise.all(
          mine.map((id) =>
            get(`${service.base}/v1/${id.startsWith('em') ? 'emails' : 'sms'}/${id}`, own.liveKey),
          ),
        )
        return answers.every(({ json }) => json.status === 'delivered')
      })
      const taken = await half<{ organisation: string; attempts: number }[]>`
        select core.encode_id('org', m.organisation_id) as organisation, s.attempts
        from ${takenBySandbox(half)} s join app.messages m on m.id = s.message_id`
      t.ok(taken.length >= 3)
      t.ok(taken.every(({ organisation, attempts }) => organisation === own.id && attempts === 1))
      t.equal((await get(`${service.base}/v1/usage`, foreign.liveKey)).status, 401)
      t.same(await unbalancedLedgers(half), [])
    }
    const again = await post(
      `${newService.base}/v1/emails`,
      moves.liveKey,
      anEmail(moves.domain),
      headers,
    )
    t.equal(again.status, 200)
    t.equal(again.json.id, first.json.id)
    t.equal(again.headers.get('idempotent-replayed'), 'true')
  })

  await Promise.all(services.map((service) => service.stop()))

  await t.test('api.purge_moved: leaves no row of an organisation that moved', async (t) => {
    for (const [half, own, foreign, gone, kept] of [
      [sql, stays, moves, parents, stayingParents],
      [copy.sql, moves, stays, stayingParents, parents],
    ] as const) {
      await purge(half)
      t.same(await tablesOf(half, foreign), KEPT)
      t.same(await childrenOf(half, gone), [])
      t.same(
        await tablesOf(half, own),
        everything.filter((table) => table !== 'suppression_removals'),
        'the service has made the removals',
      )
      t.ok((await childrenOf(half, kept)).length > 4)
      t.match(
        [...(await half`select purged_at from ops.moved_organisations`)],
        [{ purgedAt: Date }],
      )
      t.same([...(await half`select core.audit_is_complete() as whole`)], [{ whole: true }])
      t.same(await unbalancedLedgers(half), [])
      const [tombstone] = await half`
        select state, owner_email, suspension_reason from app.organisations where id = ${uuidOf(foreign)}`
      t.match(tombstone, { state: 'suspended', ownerEmail: 'moved@postgram.invalid' })
    }
  })
})
