import t from 'tap'
import { createDatabase, raisedBy, rolledBack } from '../fixtures/database.ts'
import { anEmail, anSms, get, post, request } from '../fixtures/http.ts'
import {
  indexMessages,
  messageOf,
  PROMOTION,
  send,
  sendSms,
  timelineOf,
} from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { links, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { createEndpoint, startReceiver } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const service = await startTestService(url)
const { base } = service
const sandbox = (name: string) => `${name}@sandbox.postgram.test`

/** The schema and name of each table with data, with an expression for all text of a row. */
const tables = await sql<{ name: string; texts: string }[]>`
  select format('%I.%I', c.table_schema, c.table_name) as name,
    format('concat_ws('' '', %s)', string_agg(format('%I::text', c.column_name), ', ')) as texts
  from information_schema.columns c
  join information_schema.tables t using (table_schema, table_name)
  where c.table_schema in ('app', 'ops', 'graphile_worker', 'pgboss') and t.table_type = 'BASE TABLE'
    and (c.data_type in ('text', 'character varying', 'json', 'jsonb', 'ARRAY', 'bytea'))
  group by 1, c.table_schema, c.table_name
  order by 1`

/** Returns the tables in which a text, JSON or array contains the value in any case. */
async function tablesNaming(text: string): Promise<string[]> {
  const parts = tables.map(
    ({ name, texts }) =>
      `select '${name}' as name where exists (select from ${name} where strpos(lower(${texts}), lower($1)) > 0)`,
  )
  const rows = await sql.unsafe<{ name: string }[]>(parts.join(' union all '), [text])
  return rows.map(({ name }) => name)
}

/** Values that no erasure may change: money, counts, and the status of each message. */
async function accounts() {
  const [row] = await sql`
    select
      (select jsonb_agg(to_jsonb(l) order by l.id) from app.credit_ledger l) as ledger,
      (select jsonb_agg(to_jsonb(a) order by a.organisation_id) from app.allowances a) as allowances,
      (select jsonb_agg(to_jsonb(s) order by o.id) from ops.organisations o, ops.statement(o.id) s) as statements,
      (select jsonb_agg(to_jsonb(v) || jsonb_build_object('tag', regexp_replace(v.tag, '^to:.*', 'to:')) order by v.day, v.organisation, v.channel, v.class, v.tag)
        from ops.daily_volume v) as volume,
      (select jsonb_agg(jsonb_build_array(m.id, m.status, m.error_code, m.sent_at, m.delivered_at, m.recipients)
        order by m.id) from app.messages m) as messages,
      (select jsonb_agg(jsonb_build_array(e.message_id, e.id, e.type, e.occurred_at) order by e.id)
        from app.events e) as events,
      (select count(*) from app.complaints) as complaints`
  return JSON.stringify(row)
}

const sumUp = () =>
  until('the sums are kept', async () => {
    const [row] = await sql<{ left: number }[]>`select api.sum_status_changes() as left`
    return row?.left === 0
  })

const settled = (id: string, ...statuses: string[]) =>
  until(`${id} is ${statuses}`, async () => statuses.includes((await messageOf(sql, id)).status))

const erase = async (person: string) =>
  (await sql<{ rows: number }[]>`select ops.erase_person(${person}) as rows`)[0]?.rows ?? 0

async function kindsOf(person: string, organisation: string | null = null) {
  const rows = await sql<{ kind: string }[]>`
    select distinct kind from ops.export_person(${person}, ${organisation}) order by 1`
  return rows.map(({ kind }) => kind)
}

async function isRefused({ liveKey, domain }: TestOrganisation, to: string, more = {}) {
  const { status, json } = await post(
    `${base}/v1/emails`,
    liveKey,
    anEmail(domain, { to, ...more }),
  )
  return status === 422 && json.error.code === 'recipient_suppressed'
    ? json.error.fields.to[0]
    : status
}

/** Creates an organisation with an endpoint that responds with the recipient of each event. */
async function anOrganisation() {
  const organisation = await createOrganisation(sql)
  const receiver = await startReceiver((response, { body }) => {
    response.statusCode = 202
    response.end(JSON.parse(String(body)).data.to)
  })
  const endpoint = await createEndpoint(sql, organisation, { url: receiver.url })
  const delivered = () =>
    until('nothing waits', async () => {
      const rows = await sql`
        select from app.webhook_deliveries d where d.endpoint_id = core.decode_id('we', ${endpoint.id})`
      return rows.length === 0
    })
  return { ...organisation, endpoint, receiver, delivered }
}

t.test('a person with an address is found in all places, and in none once erased', async (t) => {
  const acme = await anOrganisation()
  const other = await createOrganisation(sql)
  const jane = sandbox('complaint+jane')
  const bob = sandbox('delivered+bob')
  const shared = await send(base, acme, {
    to: [bob, `"Doe, Jane" <${jane.replace('jane', 'Jane')}>`],
    subject: 'For "Jane" and Bob',
    text: `Dear ${jane}`,
    tags: [`to:${jane}`, 'plain'],
  })
  await settled(shared, 'complained')
  await until('both are reported', async () => (await timelineOf(sql, shared)).length === 5)
  // She complained at this one, so others get there first.
  const copied = await send(base, other, { to: bob, bcc: [jane], subject: 'Of another' })
  await settled(copied, 'complained')
  const bounced = sandbox('bounce+jane')
  const failed = await send(base, acme, { to: bounced })
  await settled(failed, 'bounced')
  await post(
    `${base}/v1/suppressions`,
    other.liveKey,
    { email: jane },
    { 'Idempotency-Key': 'one' },
  )
  const unsubscribed = sandbox('delivered+jane')
  const news = await send(base, acme, { to: unsubscribed, class: 'marketing' })
  await settled(news, 'delivered')
  const messageId = (await messageOf(sql, news)).id
  const [organisation] = await sql`select core.decode_id('org', ${acme.id}) as id`
  const link = links.url({ organisationId: organisation?.id, messageId, email: unsubscribed })
  const unsubscribe = async () =>
    t.equal((await request('POST', base + new URL(link).pathname, null)).status, 200)
  await unsubscribe()
  await sql`select ops.suppress_globally(${unsubscribed}, 'asked by phone, Jane Doe')`
  await sql`select ops.unsuppress_globally(${unsubscribed})`
  const batch = { emails: [anEmail(acme.domain, { to: bob }), anEmail(acme.domain, { to: jane })] }
  await post(`${base}/v1/emails/batch`, acme.liveKey, batch, { 'Idempotency-Key': 'two' })
  await until('all is sent', async () => {
    const rows = await sql`select from app.messages where status in ('queued', 'sent')`
    return rows.length === 0
  })
  await acme.delivered()
  await sumUp()
  await indexMessages(sql)
  t.ok((await tablesNaming(jane)).some((name) => name.startsWith('app.message_terms')))

  t.same(await kindsOf(jane), [
    'complaint',
    'message',
    'stored response',
    'suppression',
    'timeline',
    'webhook attempt',
    'webhook event',
  ])
  t.same(await kindsOf(jane.toUpperCase(), other.id), [
    'complaint',
    'message',
    'stored response',
    'suppression',
    'timeline',
  ])
  t.same(await kindsOf(bounced), [
    'hard bounce',
    'message',
    'suppression',
    'timeline',
    'webhook attempt',
    'webhook event',
  ])
  t.ok((await kindsOf(unsubscribed)).includes('audit'))
  const [found] = await sql`
    select organisation, id, data from ops.export_person(${jane}) where kind = 'message' and id = ${shared}`
  t.match(found, {
    organisation: acme.id,
    data: { subject: 'For "Jane" and Bob', text: `Dear ${jane}`, recipients: [bob, jane] },
  })
  const ofOthers = await sql`
    select from ops.export_person(${jane}) where kind = 'timeline' and data::text like '%bob%'`
  t.same(ofOthers, [], 'what happened to Bob is not hers')

  const before = await accounts()
  const bobs = (await timelineOf(sql, shared)).filter(({ detail }) => detail.recipient === bob)
  const persons = [jane, bounced, unsubscribed]
  for (const person of persons) t.ok((await erase(person)) > 3, person)
  for (const person of persons) t.same(await tablesNaming(person), [], person)
  t.same(await tablesNaming('For "Jane"'), [])
  t.same(await tablesNaming('Jane Doe'), [])
  t.not((await tablesNaming(bob)).length, 0, 'the search finds who is there')
  t.equal(await accounts(), before)
  t.same(await sql`select * from ops.ledger_check where not is_balanced`, [])
  for (const person of persons) t.equal(await erase(person), 0, 'there is no more of them')
  t.same(await kindsOf(jane), ['suppression hash'])

  const listed = async (query: Record<string, string>) =>
    (await get(`${base}/v1/emails?${new URLSearchParams(query)}`, acme.liveKey)).json.data.map(
      ({ id }: { id: string }) => id,
    )
  t.ok((await listed({ to: bob })).includes(shared), 'other recipients find the message')
  t.same(await listed({ to: jane }), [])
  t.same(await listed({ tag: 'to:(erased)' }), [shared])

  const { status, json } = await get(`${base}/v1/emails/${shared}`, acme.liveKey)
  t.equal(status, 200)
  t.match(json, { status: 'complained', to: `${bob}, (erased)`, subject: '(erased)' })
  t.same(
    json.events.filter(
      ({ detail }: { detail: { recipient?: string } }) => detail.recipient === bob,
    ),
    bobs,
  )
  t.equal(bobs.length, 1)
  const [event] = await sql<{ body: string }[]>`
    select body from app.webhook_events where message_id = core.decode_id('em', ${shared}) order by id`
  t.match(JSON.parse(event?.body ?? ''), {
    data: { id: shared, to: `${bob}, (erased)`, subject: '(erased)' },
  })

  t.equal(await isRefused(acme, jane), `${jane}: complaint`)
  t.equal(await isRefused(acme, bounced), `${bounced}: hard_bounce`)
  t.equal(await isRefused(other, bounced), `${bounced}: hard_bounce`, 'for everyone')
  t.equal(
    await isRefused(acme, unsubscribed, { class: 'marketing' }),
    `${unsubscribed}: unsubscribe`,
  )
  t.equal(await isRefused(other, unsubscribed, { class: 'marketing' }), 200, 'as before')
  const list = await get(`${base}/v1/suppressions`, acme.liveKey)
  t.same(list.json.data, [], 'none of them is listed')
  await unsubscribe()
  await sql`select ops.suppress_globally(${bounced})`
  t.same(await tablesNaming(bounced), [], 'a person with a suppression hash is not stored again')
})

t.test('ops.erase_person: a number is exported and erased too', async (t) => {
  const acme = await anOrganisation()
  // The recipient replies STOP.
  const phone = '+447700900016'
  await sql`select ops.approve_sender(${acme.id}, '+27820000009')`
  await sql`select ops.record_consent(${acme.id}, ${phone}, 'the shop, by Thandi')`
  await sql`select ops.block_number(${phone}, 'Thandi, by phone')`
  await sql`insert into ops.staged_numbers values (${phone})`
  const body = `${'x'.repeat(170)} for Thandi`
  const id = await sendSms(base, acme, { to: phone, body, senderId: '+27820000009' })
  await settled(id, 'delivered')
  await until(
    'the opt-out',
    async () =>
      (
        await sql`
    select from app.consents where phone = ${phone} and opted_out_at is not null`
      ).length === 1,
  )
  await until(
    'all is sent',
    async () =>
      (
        await sql`
    select from app.messages where status in ('queued', 'sent')`
      ).length === 0,
  )
  await until('all is reported', async () => {
    const left = await sql`select from app.sandbox_reports`
    return left.length === 0
  })
  await sql`
    insert into app.early_receipts
    select gen_random_uuid(), '{unknown}', jsonb_build_object('phone', ${phone}::text), now()`
  await acme.delivered()
  await sumUp()
  await indexMessages(sql)
  t.same(await kindsOf(phone), [
    'SMS part',
    'audit',
    'consent',
    'early receipt',
    'message',
    'opt-out registry',
    'staged number',
    'timeline',
    'webhook attempt',
    'webhook event',
  ])

  const before = await accounts()
  t.ok((await erase(phone)) > 10)
  t.same(await tablesNaming(phone), [])
  t.same(await tablesNaming('Thandi'), [])
  t.equal(await accounts(), before)
  t.same(await sql`select * from ops.ledger_check where not is_balanced`, [])
  t.equal(await erase(phone), 0)
  const { json } = await get(`${base}/v1/sms/${id}`, acme.liveKey)
  t.match(json, { status: 'delivered', to: '(erased)', segments: 2 })

  const [obstacle] = await sql`
    select * from core.marketing_obstacle(core.decode_id('org', ${acme.id}), ${phone}, ${PROMOTION}, now())`
  t.match(obstacle, { code: 'opted_out', reason: /has opted out/ })
  await sql`select ops.withdraw_consent(${acme.id}, ${phone})`
  await sql`select ops.block_number(${phone})`
  const stop = {
    provider: 'sandbox',
    from: phone,
    to: '+27820000009',
    keyword: 'stop',
    word: 'STOP',
  }
  const replies = JSON.stringify([{ ...stop, received_at: new Date() }])
  await sql`select api.record_keywords(${replies}::text::jsonb)`
  t.same(await tablesNaming(phone), [], 'a person with a suppression hash is not stored again')

  await rolledBack(sql, async (tx) => {
    await tx`insert into ops.staged_numbers values (${phone}), ('+27821234567')`
    await tx`select ops.apply_staged_numbers(true)`
    const blocked = await tx`select phone from app.blocked_numbers`
    t.same(blocked, [{ phone: '+27821234567' }], 'a list of the registry names them no more')
    await tx`select ops.record_consent(${acme.id}, ${phone}, 'anew')`
    const because = async () =>
      (
        await tx`select * from core.marketing_obstacle(
        core.decode_id('org', ${acme.id}), ${phone}, ${PROMOTION}, now())`
      )[0]?.reason
    t.match(await because(), /national opt-out registry/, 'consent ends the opt-out only')
    await tx`insert into ops.staged_numbers values ('+27821234567')`
    await tx`select ops.apply_staged_numbers(true)`
    t.notMatch(
      await because(),
      /registry|opted out/,
      'who has left the registry has left it by hash too',
    )
  })
})

/** Columns in which others may write about a person, each with a statement that writes `$1` into it. */
const mentions: Record<string, string> = {
  'app.messages.subject': 'update app.messages set subject = $1 where id = $2',
  'app.messages.tags': 'update app.messages set tags = array[$1] where id = $2',
  'app.messages.error_message': 'update app.messages set error_message = $1 where id = $2',
  'app.bodies.html': 'update app.bodies set html = $1 where message_id = $2',
  'app.bodies.text': 'update app.bodies set text = $1 where message_id = $2',
  'app.bodies.headers': `update app.bodies set headers = jsonb_build_object('X-For', $1::text) where message_id = $2`,
  'app.events.detail': `update app.events set detail = detail || jsonb_build_object('text', $1::text) where message_id = $2`,
  'app.events.provider_event_id':
    'update app.events set provider_event_id = id || $1 where message_id = $2',
  'app.sandbox_reports.reports': `insert into app.sandbox_reports (kind, reports, due_at) values ('email', jsonb_build_array(jsonb_build_array($1::text)), now())`,
  'app.webhook_events.body': `update app.webhook_events set body = json_build_object('for', $1::text) where message_id = $2`,
  'app.webhook_attempts.response': 'update app.webhook_attempts set response = $1',
  'app.webhook_attempts.error': 'update app.webhook_attempts set error = $1',
  'app.webhook_endpoints.last_error': 'update app.webhook_endpoints set last_error = $1',
  'app.webhook_endpoints.disabled_reason':
    'update app.webhook_endpoints set disabled_at = now(), disabled_reason = $1',
  'app.idempotency_keys.key': 'update app.idempotency_keys set key = $1',
  'app.idempotency_keys.body': 'update app.idempotency_keys set body = $1',
  'app.suppressions.note': 'update app.suppressions set note = $1',
  'app.hard_bounces.note': 'update app.hard_bounces set note = $1',
  'app.blocked_numbers.note': 'update app.blocked_numbers set note = $1',
  'app.consents.source': 'update app.consents set source = $1',
  'app.consents.opted_out_by': 'update app.consents set opted_out_at = now(), opted_out_by = $1',
  'app.credit_ledger.note': 'update app.credit_ledger set note = $1',
  'app.organisations.pause_reason':
    'update app.organisations set paused_at = now(), pause_reason = $1',
  'app.organisations.suspension_reason':
    'update app.organisations set suspended_at = now(), suspension_reason = $1',
  'app.templates.name': 'update app.templates set name = $1',
  'app.templates.subject': 'update app.templates set subject = $1',
  'app.templates.html': 'update app.templates set html = $1',
  'app.templates.text': 'update app.templates set text = $1',
  'app.template_versions.name': 'update app.template_versions set name = $1',
  'app.template_versions.subject': 'update app.template_versions set subject = $1',
  'app.template_versions.html': 'update app.template_versions set html = $1',
  'app.template_versions.text': 'update app.template_versions set text = $1',
  'app.early_receipts.receipt': `insert into app.early_receipts values (gen_random_uuid(), '{one}', jsonb_build_object('text', $1::text), now())`,
  'app.forwarded_receipts.content': `insert into app.forwarded_receipts values (2, gen_random_uuid(), 'receipt', jsonb_build_object('text', $1::text), now())`,
  'app.callback_tokens.provider_event_id': `insert into app.callback_tokens values ('a token', $1, now())`,
  'app.daily_bounces.reason': `insert into app.daily_bounces values (current_date, gen_random_uuid(), 'email', 'hard_bounce', $1, 1)`,
  'app.daily_volume.tag': `insert into app.daily_volume values (current_date, gen_random_uuid(), 'email', 'marketing', $1, 1, 1, 1, 0, 0, 0, 0, 0)`,
  'app.notices.detail': `update app.notices set detail = jsonb_build_object('text', $1::text)`,
  'app.notices.error_message': 'update app.notices set error_message = $1',
  'app.provider_health.last_error': `insert into app.provider_health (provider, last_error) values ('another', $1)`,
  'app.task_runs.error': `insert into app.task_runs (task, started_at, duration_ms, error) values ('a task', now(), 1, $1)`,
  'app.audit.target': `update app.audit set target = $1 where action = 'block_number'`,
  'app.audit.before': `update app.audit set before = jsonb_build_object('note', $1::text) where action = 'block_number'`,
  'app.audit.after': `update app.audit set after = jsonb_build_object('source', $1::text) where action = 'record_consent'`,
}

/** Columns that name a person whom they are about: the tests above erase them. */
const theirs = `app.blocked_numbers.phone app.bodies.to app.bodies.cc app.bodies.bcc app.bodies.recipients app.bodies.settled_recipients
  app.complaints.recipient app.consents.phone app.erasures.person app.hard_bounces.email app.message_terms.term app.messages.to_address app.sms_parts.phone
  app.suppressions.email app.suppression_removals.email app.suppression_hashes.sha256 app.global_suppression_hashes.sha256`

/** Columns about organisations or operators themselves, or with text and hashes of Postgram. */
const others = `app.api_keys.prefix app.api_keys.scopes app.api_keys.sha256 app.audit.action app.audit.actor
  app.audit.application_name app.audit.login app.audit.sha256 app.audit_chain.sha256 app.audit_seals.sha256 app.bodies.reply_to
  app.bodies.sender app.callback_tokens.token app.task_runs.task app.scheduled_tasks.name app.scheduled_tasks.schedule
  app.cell.letter app.cell.name app.cells.letter app.cells.name app.cells.subscription app.name_claims.name app.closed_periods.plan_id app.closed_periods.plan_name app.code.sha256 app.division.name app.division.organisation_ids
  app.forwarded_receipts.kind app.moved_organisations.endpoint_ids app.moved_organisations.numbers app.moved_organisations.purged_terms  app.dkim_keys.host
  app.dkim_keys.private_key app.dkim_keys.selector app.dkim_keys.value app.domains.dkim_zone app.domains.mail_from_label
  app.domain_claims.name app.domains.name app.domains.provider app.domains.records app.early_receipts.network_ids app.erasures.error app.erasures.requested_by app.extra_holidays.name
  app.former_code.sha256 app.idempotency_keys.fingerprint  app.messages.from_address
  app.messages.provider app.migrations.id app.migrations.sha256 app.organisations.name app.organisations.owner_email
  app.organisations.plan_id app.person_salt.salt app.plan_changes.from_plan app.plan_changes.to_plan app.plans.id app.plans.name
  app.processes.host app.processes.pool_id app.processes.roles app.processes.synchronous_commit app.processes.tasks app.processes.version
  app.provider_health.provider app.retention.data
  app.sandbox_batches.copies app.sandbox_batches.message_ids app.sandbox_reports.kind app.status_changes.message_ids app.search_progress.pass app.senders.sender app.sms_parts.network_id app.sms_parts.provider
  app.sms_settings.shared_sender app.stray_receipts.provider app.suppressions.other_reasons app.table_sizes.name app.template_versions.changed_by app.templates.changed_by app.webhook_endpoints.event_types
  app.webhook_endpoints.old_secret app.webhook_endpoints.old_secret_sealed_by app.webhook_endpoints.secret
  app.webhook_endpoints.secret_sealed_by app.webhook_endpoints.url app.users.email app.notices.email app.sign_in_links.sha256
  app.sign_in_requests.sha256 app.sessions.sha256 app.sessions.client`

t.test(
  'what others wrote about a person is erased from every column that can hold it',
  async (t) => {
    const words = (text: string) => text.split(/\s+/)
    const columns = await sql<{ name: string }[]>`
    select format('app.%s.%s', c.relname, a.attname) as name
    from pg_attribute a
    join pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and a.attnum > 0 and not a.attisdropped
      and (a.atttypid in ('text'::regtype, 'json'::regtype, 'jsonb'::regtype, 'bytea'::regtype)
        or a.atttypid::regtype::text like '%[]')`
    const known = [...Object.keys(mentions), ...words(theirs), ...words(others)]
    t.same(
      columns.map(({ name }) => name).sort(),
      known.sort(),
      'a new column has to be added to one of the three lists, and to core.erase_mentions',
    )

    const acme = await anOrganisation()
    const bob = sandbox('delivered+another')
    const id = await send(base, acme, { to: bob })
    await settled(id, 'delivered')
    await acme.delivered()
    const phone = '+27821110003'
    await sql`select ops.record_consent(${acme.id}, ${phone}, 'the shop')`
    await sql`select ops.block_number(${phone}, 'a note')`
    await sql`select ops.suppress_globally('carol@else.example', 'a note')`
    await sql`select ops.grant_credits(${acme.id}, 1, 'a note')`
    const [template] = await sql`select ops.create_template(${acme.id}, 'A', 'B', 'C', 'D') as id`
    await sql`select ops.change_template(${template?.id}, 'E', 'B', 'C', 'D')`
    await sql`select core.notify_owner(core.decode_id('org', ${acme.id}), 'org_paused', '{}')`
    const email = anEmail(acme.domain, { to: bob })
    await post(`${base}/v1/emails`, acme.testKey, email, { 'Idempotency-Key': 'a key' })
    await post(`${base}/v1/suppressions`, acme.liveKey, { email: 'dave@else.example' })
    const { id: uuid } = await messageOf(sql, id)

    for (const person of ['jane@mentioned.example', '+27829998887']) {
      await rolledBack(sql, async (tx) => {
        const naming = async () => {
          const found: string[] = []
          for (const name of Object.keys(mentions)) {
            const [, table, column] = name.split('.')
            const rows = await tx.unsafe(
              `select from app.${table} x where strpos(x."${column}"::text, $1) > 0 limit 1`,
              [person.replace('+', '')],
            )
            if (rows.length > 0) found.push(name)
          }
          return found
        }
        for (const statement of Object.values(mentions)) {
          const values = [`about ${person}.`, uuid].slice(0, statement.includes('$2') ? 2 : 1)
          await tx.unsafe(statement, values)
        }
        t.same(await naming(), Object.keys(mentions), 'it is planted everywhere')
        await tx`select ops.erase_person(${person})`
        t.same(await naming(), [], person)
        const [row] = await tx`select subject, tags from app.messages where id = ${uuid}`
        t.same(row, { subject: 'about (erased).', tags: ['about (erased).'] })
      })
    }
  },
)

t.test(
  'ops.erase_person: reports that the sandbox has not made yet, those of others stay',
  async (t) => {
    const [jane, bob] = [sandbox('delivered+late'), sandbox('delivered+later')]
    await rolledBack(sql, async (tx) => {
      const reports = JSON.stringify([
        [{ recipient: jane }, { recipient: bob }],
        [{ recipient: jane }],
        [{ recipient: bob }],
      ])
      await tx`
        insert into app.sandbox_reports (kind, reports, due_at)
        values ('email', ${reports}::text::jsonb, now() + interval '1 hour')`
      const exported = await tx`select kind, data from ops.export_person(${jane})`
      const record = { kind: 'sandbox', data: { recipient: jane } }
      t.same([...exported], [record, record])
      await tx`select ops.erase_person(${jane})`
      const [row] = await tx`select reports from app.sandbox_reports`
      t.same(row?.reports, [[{ recipient: bob }], [], [{ recipient: bob }]])
    })
  },
)

t.test('ops.erase_person: a waiting message to another person is sent unchanged', async (t) => {
  const acme = await createOrganisation(sql)
  await rolledBack(sql, async (tx) => {
    const [message] = await tx<{ id: string }[]>`
      insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address,
        subject, tags, recipients, created_at)
      select 'queued', core.new_id(now()), core.decode_id('org', ${acme.id}), 'email', 'live', 'transactional',
        'a@b.example', 'bob@c.example', 'For jane@mentioned.example', '{jane@mentioned.example}', 1, now()
      returning id`
    await tx`select ops.erase_person('jane@mentioned.example')`
    const [row] = await tx`select subject, tags from app.messages where id = ${String(message?.id)}`
    t.same(row, { subject: 'For jane@mentioned.example', tags: ['(erased)'] })
  })
})

t.test('ops.erase_person: removing a new suppression restores the hashed one', async (t) => {
  const acme = await createOrganisation(sql)
  const jane = 'jane@kept.example'
  const list = async () =>
    (await get(`${base}/v1/suppressions`, acme.liveKey)).json.data.map(
      ({ reason }: { reason: string }) => reason,
    )
  const add = (reason: string) =>
    post(`${base}/v1/suppressions`, acme.liveKey, { email: jane, reason })
  await add('unsubscribe')
  await erase(jane)
  t.same(await list(), [])
  const { status, json } = await add('manual')
  t.equal(status, 201, 'the organisation named it itself')
  t.same(await list(), ['manual'])
  await request('DELETE', `${base}/v1/suppressions/${json.id}`, acme.liveKey)
  t.same(await list(), ['unsubscribe'], 'as one that was other_reasons')
  t.notOk((await kindsOf(jane)).includes('suppression hash'))
})

t.test(
  'ops.erase_person: waiting messages end and are refunded, other recipients are kept',
  async (t) => {
    const acme = await createOrganisation(sql)
    const phone = '+447700900020'
    const scheduledAt = new Date(Date.now() + 3_600_000).toISOString()
    const answer = await post(`${base}/v1/sms`, acme.liveKey, anSms({ to: phone, scheduledAt }))
    const { id } = answer.json
    t.ok((await erase(phone)) > 0)
    t.match(await messageOf(sql, id), {
      status: 'rejected',
      errorCode: 'opted_out',
      errorMessage: "A recipient's data was erased before it was sent.",
    })
    t.same(
      await sql`select from app.due_messages where message_id = core.decode_id('sm', ${id})`,
      [],
    )
    const moved = await sql`
    select kind, credits, included from app.credit_ledger
    where message_id = core.decode_id('sm', ${id}) order by id`
    t.match(moved, [{ included: -1 }, { kind: 'refund', included: 1 }])
    t.same(await sql`select * from ops.ledger_check where not is_balanced`, [])
    t.same(await tablesNaming(phone), [])
  },
)

t.test('ops.erase_person: messages to others are sent meanwhile', async (t) => {
  const acme = await createOrganisation(sql)
  const jane = sandbox('delivered+erased')
  await settled(await send(base, acme, { to: jane }), 'delivered')
  await rolledBack(sql, async (tx) => {
    await tx`select ops.erase_person(${jane})`
    // All locks of the erasure are held until this transaction ends.
    const id = await send(base, acme, { to: sandbox('delivered+other') })
    await settled(id, 'delivered')
    const sms = await sendSms(base, acme)
    await settled(sms, 'delivered')
  })
  t.ok((await kindsOf(jane)).includes('message'))
})

t.test(
  'ops.erase_person: erasing the bounced recipient of several erases the error too',
  async (t) => {
    const acme = await anOrganisation()
    const gone = sandbox('bounce+among')
    const id = await send(base, acme, { to: [sandbox('delivered+among'), gone] })
    await settled(id, 'bounced')
    await acme.delivered()
    t.equal((await messageOf(sql, id)).errorMessage, `${gone}: The mailbox does not exist.`)
    t.ok(await erase(gone))
    t.match(await messageOf(sql, id), { errorCode: 'hard_bounce', errorMessage: /^\(erased/ })
    const events = await sql<{ body: string }[]>`
    select v.body from app.webhook_events v where v.message_id = core.decode_id('em', ${id})`
    t.ok(events.length > 0)
    for (const { body } of events) t.notMatch(body, /bounce\+among|does not exist/)
  },
)

t.test('ops.erase_person: webhook events that outlive their messages are erased', async (t) => {
  const acme = await createOrganisation(sql)
  const { id: endpoint } = await createEndpoint(sql, acme)
  for (const [person, id] of [
    [sandbox('bounce+outlived'), await send(base, acme, { to: sandbox('bounce+outlived') })],
    ['+447700900555', await sendSms(base, acme, { to: '+447700900555' })],
  ] as const) {
    const [event] = await sql<{ id: string }[]>`
      insert into app.webhook_events (id, organisation_id, type, message_id, occurred_at, body)
      select e.id, m.organisation_id, e.type, core.first_id_at('2020-01-01'), now(),
        replace(core.event_body(e.id, e.type, now(), m), '"error" : null',
          '"error" : {"code" : "hard_bounce", "message" : "Said \\"nobody\\" here"}')
      from app.messages m,
        (select core.new_id(now()) as id, 'email.complained'::app.webhook_event_type as type) e
      where m.id = core.decode_id(split_part(${id}, '_', 1), ${id})
      returning core.encode_id('evt', id) as id`
    await sql`
      insert into app.webhook_attempts (endpoint_id, event_id, attempt, started_at, duration_ms, status, response)
      values (core.decode_id('we', ${endpoint}), core.decode_id('evt', ${event?.id ?? ''}), 1, now(), 1, 200,
        ${`thanks, ${person.replace('+447', '447')}`})`
    await settled(id, 'bounced', 'failed', 'delivered', 'expired', 'sent')
    const found = () => sql`
      select kind from ops.export_person(${person}, ${acme.id}) where id = ${event?.id ?? ''}`
    t.same(
      [...(await found())].map(({ kind }) => kind),
      ['webhook event'],
    )
    t.ok(await erase(person))
    t.same([...(await found())], [])
    const [row] = await sql<{ body: string; response: string }[]>`
      select v.body, a.response
      from app.webhook_events v
      join app.webhook_attempts a on a.event_id = v.id
      where v.id = core.decode_id('evt', ${event?.id ?? ''})`
    t.equal(row?.response, 'thanks, (erased)')
    t.notMatch(row?.body, /nobody|555|outlived/)
    t.match(JSON.parse(row?.body ?? '').data, {
      to: '(erased)',
      error: { code: 'hard_bounce', message: '(erased)' },
    })
  }
})

t.test('ops.erase_person: refuses while an attempt to the person is running', async (t) => {
  await service.stop()
  const acme = await createOrganisation(sql)
  await rolledBack(sql, async (tx) => {
    const [message] = await tx<{ id: string }[]>`
      insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address,
        subject, tags, recipients, created_at, attempts, attempt_started_at)
      select 'queued', core.new_id(now()), core.decode_id('org', ${acme.id}), 'email', 'live', 'transactional',
        'a@b.example', 'jane@c.example', 'Hello', '{}', 1, now(), 1, now()
      returning id`
    const id = String(message?.id)
    await tx`select core.add_jobs(array[core.send_job('email', ${id}::uuid, 0)])`
    const lock = (by: string | null) => tx`
      update graphile_worker._private_jobs set locked_by = ${by}, locked_at = ${by ? new Date() : null}
      where payload ->> 'id' = ${id}`
    await lock('a worker')
    const error = await raisedBy(tx, (inner) => inner`select ops.erase_person('jane@c.example')`)
    t.match(error.message, /^an attempt to send a message to them is running/)
    const state = async () =>
      (await tx`select status, error_code, to_address from app.messages where id = ${id}`)[0]
    t.match(await state(), { status: 'queued', toAddress: 'jane@c.example' }, 'nothing has changed')
    await lock(null)
    await tx`select ops.erase_person('jane@c.example')`
    t.match(await state(), {
      status: 'failed',
      errorCode: 'provider_unavailable',
      toAddress: '(erased)',
    })
  })
})

t.test('api.erase_people: a refused erasure waits while others are made', async (t) => {
  const acme = await createOrganisation(sql)
  const [refused, other] = ['jane@refused.example', 'john@requested.example']
  await sql`
    insert into app.erasures (person, requested_by, requested_at)
    select person, 'operator@example.com', now() from unnest(${[refused, other]}::text[]) person`
  const [message] = await sql<{ id: string }[]>`
    insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address,
      subject, tags, recipients, created_at, attempts, attempt_started_at)
    select 'queued', core.new_id(now()), core.decode_id('org', ${acme.id}), 'email', 'live', 'transactional',
      'a@b.example', person, 'Hello', '{}', 1, now(), 1, now()
    from unnest(${[refused, other]}::text[]) person
    order by person
    returning id`
  const uuid = String(message?.id)
  await sql`select core.add_jobs(array[core.send_job('email', ${uuid}::uuid, 0)])`
  await sql`
    update graphile_worker._private_jobs set locked_by = 'a worker', locked_at = now() where payload ->> 'id' = ${uuid}`
  const run = async () => (await sql`select api.erase_people() as people`)[0]?.people
  const waiting = () => sql`select person, error from app.erasures where person is not null`
  t.ok((await kindsOf(refused)).includes('requested erasure'))

  t.equal(await run(), 0)
  const error = 'an attempt to send a message to them is running; try again in a minute'
  t.same(
    (await waiting()).find(({ person }) => person === refused),
    { person: refused, error },
  )
  t.equal(await run(), 1, 'the other one is not held up')
  t.same([...(await waiting())], [{ person: refused, error }])
  t.same(await tablesNaming(other), [])

  await sql`
    update graphile_worker._private_jobs set locked_by = null, locked_at = null where payload ->> 'id' = ${uuid}`
  t.equal(await run(), 1)
  t.same(await tablesNaming(refused), [])
  t.equal(await run(), 0)
  const finished =
    await sql`select rows > 0 as has_rows, error from app.erasures where finished_at is not null`
  t.same(
    [...finished],
    [
      { hasRows: true, error: null },
      { hasRows: true, error: null },
    ],
  )
})

t.test(
  'core.person_messages: finds the same messages before and after they are indexed',
  async (t) => {
    const [acme, other] = [await createOrganisation(sql), await createOrganisation(sql)]
    const jane = 'jane@indexed.example'
    const bob = 'bob@indexed.example'
    const phone = '+447700900077'
    await rolledBack(sql, async (tx) => {
      /** Inserts a message of the last minutes. recipients: those of the body; null for none. */
      const insert = async (name: string, to: string, recipients: string[] | null, more = {}) => {
        const row = { channel: 'email', mode: 'live', organisation: acme.id, ...more }
        const [message] = await tx<{ id: string }[]>`
        insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address,
          subject, tags, recipients, segments, credits, created_at)
        select 'sent', core.new_id(now() - interval '3 minutes'), core.decode_id('org', ${row.organisation}),
          ${row.channel}::app.channel, ${row.mode}::app.mode, 'transactional', 'a@b.example', ${to}, ${name}, '{}', 2,
          1, 0, now() - interval '3 minutes'
        returning id`
        const id = String(message?.id)
        if (recipients !== null) {
          await tx`
          insert into app.bodies (message_id, sender, "to", cc, bcc, recipients)
          values (${id}, 'a@b.example', '{}', '{}', '{}', ${recipients})`
        }
        return id
      }
      const report = (id: string, recipient: string) => tx`
      insert into app.events (message_id, type, occurred_at, detail)
      values (${id}, 'delivered', now(), ${tx.json({ recipient })})`
      const found = async (person: string) => {
        const [row] = await tx<{ names: string[] }[]>`
        select array(
          select m.subject from unnest(core.person_messages(${person}, null)) i (id)
          join app.messages m on m.id = i.id
          order by 1) as names`
        return row?.names
      }
      await tx`update app.search_progress set indexed_until = '00000000-0000-0000-0000-000000000000'`
      await insert('to', 'Jane@Indexed.example', [jane])
      await insert('among several', `${bob}, ${jane}`, [bob, jane])
      await insert('copy', bob, [bob, jane])
      await insert('of another', bob, [bob, jane], { organisation: other.id })
      await insert('test', jane, null, { mode: 'test' })
      await report(await insert('body deleted', bob, null), jane)
      await insert('longer', `x${jane}`, [`x${jane}`])
      await insert('SMS', phone, [phone], { channel: 'sms' })
      await report(
        await insert('shared', 'carol@indexed.example', ['carol@indexed.example', jane]),
        jane,
      )
      const copied = await insert('shared, no receipt', 'carol@indexed.example', [
        'carol@indexed.example',
        jane,
      ])
      await tx`select ops.erase_person('carol@indexed.example')`
      t.same(await tx`select from app.bodies where message_id = ${copied}`, [])
      // The subject of a shared message is erased.
      const names = [
        '(erased)',
        '(erased)',
        'among several',
        'body deleted',
        'copy',
        'of another',
        'test',
        'to',
      ]

      t.same(await found(jane), names)
      t.same(await found(phone), ['SMS'])
      await indexMessages(tx as never)
      t.same(await found(jane), names, 'by the index')
      t.same(await found(phone), ['SMS'])
    })
  },
)

t.test('ops.erase_person: finishes a requested erasure of the person', async (t) => {
  const jane = 'jane@requested.example'
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.erasures (person, requested_by, requested_at) values (${jane}, 'operator@example.com', now())`
    await tx`select ops.erase_person(${jane})`
    const rows = await tx`select person, rows from app.erasures where requested_at = now()`
    t.same([...rows], [{ person: null, rows: 0 }])
  })
})

t.test('ops.erase_person: matches only whole addresses and numbers', async (t) => {
  const redact = async (given: string, person: string) =>
    (await sql`select core.redact(${given}, ${person}) as text`)[0]?.text
  const jane = 'jane.doe+a@x.example'
  for (const [given, expected] of [
    [`<${jane}>`, '<(erased)>'],
    ['JANE.Doe+A@X.example: unknown', '(erased): unknown'],
    [`'${jane}'`, "'(erased)'"],
    [JSON.stringify({ text: `no\n${jane}.` }), '{"text":"no\\n(erased)."}'],
    [`mary.${jane}`, `mary.${jane}`],
    [`o'${jane}`, `o'${jane}`],
    [`smith&${jane}`, `smith&${jane}`],
    [`to '${jane}', &${jane}`, "to '(erased)', &(erased)"],
    [`${jane}.test`, `${jane}.test`],
    ['janexdoe+a@x.example', 'janexdoe+a@x.example'],
  ]) {
    t.equal(await redact(String(given), jane), expected)
  }
  const phone = '+27821234567'
  for (const [given, expected] of [
    ['+27821234567, +278212345678', '(erased), +278212345678'],
    ['to:27821234567 failed, 127821234567', 'to:(erased) failed, 127821234567'],
    ['id27821234567', 'id(erased)'],
    ['{"text" : "27821234567"}', '{"text" : "(erased)"}'],
    ['{"text" : 27821234567, "a":27821234567}', '{"text" : 27821234567, "a":27821234567}'],
  ]) {
    t.equal(await redact(String(given), phone), expected)
  }
})

t.test('core.names_person: a text names whom core.redact would erase from it', async (t) => {
  const jane = 'jane.doe@x.example'
  const phone = '+27821234567'
  for (const [given, person, expected] of [
    [`Dear JANE.Doe@X.example,`, jane, true],
    [`mary.${jane}`, jane, false],
    ['janexdoe@x.example', jane, false],
    ['to:27821234567 failed', phone, true],
    ['+278212345678', phone, false],
    ['', jane, false],
    [null, jane, false],
  ] as const) {
    const [row] = await sql`
      select core.names_person(${given}, ${person}) as names,
        core.redact(${given}, ${person}) is distinct from ${given}::text as is_redacted`
    t.same(row, { names: expected, isRedacted: expected }, String(given))
  }
})

t.test('core.names_person: searches for the address before the regular expression', async (t) => {
  const plan = await sql`
    explain (costs off) select from app.bodies b where core.names_person(b.html, 'jane@acme.example')`
  const [filter] = /Filter: .*/.exec(plan.map((row) => Object.values(row).join()).join('\n')) ?? []
  t.match(filter, /CASE WHEN \(strpos\(.*\) > 0\) THEN .*regexp_replace/)
})

t.test('ops.erase_person: erases a number without plus from tags', async (t) => {
  const acme = await createOrganisation(sql)
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.daily_volume
      select current_date, core.decode_id('org', ${acme.id}), 'sms', 'transactional', g.tag, 1, 1, 1, 0, 0, 0, 0, 0
      from unnest('{to-27831234567,to-278312345678}'::text[]) g (tag)`
    await tx`select ops.erase_person('+27831234567')`
    const rows =
      await tx`select tag from ops.daily_volume where organisation = ${acme.id} order by tag`
    t.same(
      rows.map(({ tag }) => tag),
      ['to-(erased)', 'to-278312345678'],
    )
  })
})

t.test('ops.erase_person: two erased recipients of a message stay two', async (t) => {
  const acme = await createOrganisation(sql)
  await rolledBack(sql, async (tx) => {
    const [message] = await tx<{ id: string }[]>`
      insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address,
        subject, tags, recipients, created_at, sent_at)
      select 'sent', core.new_id(now()), core.decode_id('org', ${acme.id}), 'email', 'live', 'transactional',
        'a@b.example', 'a@c.example, b@c.example', 'Hello', '{}', 3, now(), now()
      returning id`
    const id = String(message?.id)
    const report = async (recipient: string) => {
      const receipts = [
        {
          message_id: id,
          provider_event_id: recipient,
          type: 'delivered',
          occurred_at: new Date(),
          recipient,
        },
      ]
      await tx`select api.finish_poll(${JSON.stringify(receipts)}::text::jsonb)`
    }
    await report('a@c.example')
    await report('b@c.example')
    await tx`select ops.erase_person('a@c.example')`
    await tx`select ops.erase_person('b@c.example')`
    const [row] = await tx`select to_address from app.messages where id = ${id}`
    t.same(row, { toAddress: '(erased), (erased 2)' })
    await report('c@c.example')
    const [after] = await tx`select status from app.messages where id = ${id}`
    t.same(after, { status: 'delivered' }, 'all three have it')
  })
})
