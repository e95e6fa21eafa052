import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { createDatabase, rolledBack } from '../fixtures/database.ts'
import { anEmail, anSms, get, post } from '../fixtures/http.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api', 'worker'] })
const call = caller(sql)

const volumeOf = async ({ id }: TestOrganisation) =>
  sql<Record<string, unknown>[]>`
    select v.channel, v.class, v.tag, v.accepted::integer, v.sent::integer, v.delivered::integer, v.bounced::integer,
      v.complained::integer, v.failed::integer, v.expired::integer, v.rejected::integer
    from ops.daily_volume v where v.organisation = ${id} order by v.channel, v.class, v.tag nulls first`

const nothing = {
  accepted: 0,
  sent: 0,
  delivered: 0,
  bounced: 0,
  complained: 0,
  failed: 0,
  expired: 0,
  rejected: 0,
}

async function send(
  organisation: TestOrganisation,
  path: string,
  body: Record<string, unknown>,
  status: string,
) {
  const { json, text } = await post(`${base}/v1/${path}`, organisation.liveKey, body)
  if (!json.id) throw new Error(text)
  await until(`${status} of ${json.id}`, async () => {
    const { json: message } = await get(`${base}/v1/${path}/${json.id}`, organisation.liveKey)
    return message.status === status
  })
  return json.id as string
}

const mailbox = (name: string) => `${name}@sandbox.postgram.test`

t.test('ops.daily_volume: counts outcomes by channel, class and tag', async (t) => {
  const organisation = await createOrganisation(sql)
  const { domain, liveKey, testKey } = organisation
  const email = (name: string, overrides = {}) =>
    anEmail(domain, { to: mailbox(name), ...overrides })
  await send(organisation, 'emails', email('delivered', { tags: ['news', 'weekly'] }), 'delivered')
  await send(
    organisation,
    'emails',
    email('delivered', { tags: ['news'], class: 'marketing' }),
    'delivered',
  )
  await send(organisation, 'emails', email('softbounce'), 'bounced')
  await send(organisation, 'emails', email('complaint'), 'complained')
  await send(organisation, 'emails', email('reject'), 'failed')
  await send(organisation, 'sms', anSms(), 'delivered')
  await send(
    organisation,
    'sms',
    anSms({ class: 'marketing', body: 'Reply STOP to opt out' }),
    'rejected',
  )
  await post(`${base}/v1/emails`, testKey, email('delivered'))
  t.same([...(await volumeOf(organisation))], [], 'nothing is summed up before the clock does')

  t.ok((await call('sum_status_changes', {})) > 0)
  t.equal(await call('sum_status_changes', {}), 0)
  const row = (channel: string, kind: string, tag: string | null, counts: object) => ({
    channel,
    class: kind,
    tag,
    ...nothing,
    ...counts,
  })
  const one = { accepted: 1, sent: 1, delivered: 1 }
  t.strictSame(
    (await volumeOf(organisation)).map((row) => ({ ...row })),
    [
      row('email', 'transactional', null, {
        accepted: 4,
        sent: 3,
        delivered: 2,
        bounced: 1,
        complained: 1,
        failed: 1,
      }),
      row('email', 'transactional', 'news', one),
      row('email', 'transactional', 'weekly', one),
      row('email', 'marketing', null, one),
      row('email', 'marketing', 'news', one),
      row('sms', 'transactional', null, one),
      row('sms', 'marketing', null, { accepted: 1, rejected: 1 }),
    ],
  )

  const rates = await sql<Record<string, unknown>[]>`
    select channel, sent::integer, delivered_rate, bounced_rate, complained_rate, failed_rate
    from ops.outcome_rates where organisation = ${organisation.id} order by channel`
  t.same(
    rates.map((rate) => ({ ...rate })),
    [
      {
        channel: 'email',
        sent: 4,
        deliveredRate: '0.7500',
        bouncedRate: '0.2500',
        complainedRate: '0.2500',
        failedRate: '0.2500',
      },
      {
        channel: 'sms',
        sent: 1,
        deliveredRate: '1.0000',
        bouncedRate: null,
        complainedRate: null,
        failedRate: '0.0000',
      },
    ],
  )
  const reasons = await sql<{ channel: string; code: string; reason: string; messages: string }[]>`
    select channel, code, reason, messages from ops.bounce_reasons`
  t.same(reasons.map(({ code, messages }) => [code, messages]).sort(), [
    ['provider_rejected', '1'],
    ['soft_bounce', '1'],
  ])
  for (const { reason } of reasons) t.notMatch(reason, /@/)
  t.equal((await get(`${base}/v1/usage`, liveKey)).json.emails.used, 5)
})

t.test('outcome_rates: without delivery receipts only failures have a rate', async (t) => {
  const { id } = await createOrganisation(sql)
  const ratesOf = async (channel: string, counts: Record<string, number>) => {
    const { sent, delivered, bounced, complained, failed, expired } = { ...nothing, ...counts }
    let rates: Record<string, unknown> = {}
    await rolledBack(sql, async (tx) => {
      await tx`
        insert into app.daily_volume
        select (now() at time zone 'UTC')::date, core.decode_id('org', ${id}), ${channel}::app.channel,
          'transactional', null, 100, ${sent}::int, ${delivered}::int, ${bounced}::int, ${complained}::int,
          ${failed}::int, ${expired}::int, 0`
      const [row] = await tx`
        select delivered_rate::real as delivered, bounced_rate::real as bounced,
          complained_rate::real as complained, failed_rate::real as failed
        from ops.outcome_rates where organisation = ${id}`
      rates = { ...row }
    })
    return rates
  }
  const unknown = { delivered: null, bounced: null, complained: null, failed: null }
  t.same(await ratesOf('email', { sent: 100 }), unknown, 'a relay took all')
  t.same(await ratesOf('email', { sent: 100, failed: 5 }), { ...unknown, failed: 0.05 })
  t.same(await ratesOf('sms', { sent: 100 }), unknown, 'a network took all')
  t.same(await ratesOf('sms', { sent: 100, delivered: 90, expired: 10 }), {
    ...unknown,
    delivered: 0.9,
    failed: 0.1,
  })
  const known = { delivered: 0, bounced: 0, complained: 0, failed: 0 }
  t.same(await ratesOf('email', { sent: 100, delivered: 50 }), { ...known, delivered: 0.5 })
  t.same(await ratesOf('email', { sent: 100, bounced: 100 }), { ...known, bounced: 1 })
})

t.test(
  'ops.suppressions: lists own and global entries with reason, message and note',
  async (t) => {
    const organisation = await createOrganisation(sql, { name: 'Suppressor' })
    const email = (name: string) => anEmail(organisation.domain, { to: mailbox(name) })
    const bounced = await send(organisation, 'emails', email('bounce+listed'), 'bounced')
    const complained = await send(organisation, 'emails', email('complaint+listed'), 'complained')
    await post(`${base}/v1/suppressions`, organisation.liveKey, {
      email: 'listed@acme.example',
      note: 'asked by phone',
    })
    await sql`select ops.suppress_globally('Everywhere@acme.example', 'a spam trap')`
    const rows = await sql<Record<string, unknown>[]>`
    select id, organisation, organisation_name, email, reason, message, note, created_at
    from ops.suppressions
    where email like '%listed@%' or email = 'everywhere@acme.example'
    order by email, organisation nulls first`
    const own = {
      id: /^sup_/,
      organisation: organisation.id,
      organisationName: 'Suppressor',
      message: null,
      createdAt: Date,
    }
    const global = { id: null, organisation: null, organisationName: null, reason: 'hard_bounce' }
    const hard = { email: mailbox('bounce+listed'), reason: 'hard_bounce', message: bounced }
    t.equal(rows.length, 5)
    t.match(
      [...rows],
      [
        { ...global, ...hard, createdAt: Date },
        { ...own, ...hard },
        { ...own, email: mailbox('complaint+listed'), reason: 'complaint', message: complained },
        { ...global, email: 'everywhere@acme.example', message: null, note: 'a spam trap' },
        { ...own, email: 'listed@acme.example', reason: 'manual', note: 'asked by phone' },
      ],
    )
  },
)

t.test('ops.latencies: percentiles are at most 19 % too high', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`delete from app.daily_latencies`
    await tx`delete from app.status_changes`
    await tx`
      with message as (
        insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address,
          subject, tags, recipients, created_at, sent_at, delivered_at)
        select 'delivered', core.new_id(core.now()), (select id from app.organisations limit 1), 'email', 'live',
          'transactional', 'a@b.c', 'd@e.f', 'Hello', '{}', 1, core.now(),
          core.now() + n * interval '10 milliseconds', core.now() + n * interval '1 second'
        from generate_series(1, 100) n
        returning id
      )
      insert into app.status_changes (message_ids, change, occurred_at)
      select array_agg(m.id), c.change::app.event_type, core.now()
      from message m, unnest(array['queued', 'sent', 'delivered']) c (change)
      group by c.change`
    await tx`select api.sum_status_changes()`
    const rows = await tx<
      { stage: string; messages: string; p50Ms: number; p90Ms: number; p99Ms: number }[]
    >`
      select stage, messages, p50_ms::float8, p90_ms::float8, p99_ms::float8 from ops.latencies order by stage`
    const exact = { sent: [500, 900, 990], delivered: [50_000, 90_000, 99_000] }
    t.same(
      rows.map(({ stage }) => stage),
      ['sent', 'delivered'],
    )
    for (const { stage, messages, p50Ms, p90Ms, p99Ms } of rows) {
      t.equal(messages, '100')
      for (const [place, shown] of [p50Ms, p90Ms, p99Ms].entries()) {
        const right = exact[stage as keyof typeof exact][place] ?? 0
        t.ok(shown >= right && shown < right * 1.2, `${stage}: ${shown} for ${right}`)
      }
    }
  })
})

t.test(
  'api.sum_status_changes: rows of many changes, at most 20 000 changes in a transaction',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      await tx`delete from app.status_changes`
      await tx`
        insert into app.status_changes (message_ids, change, occurred_at)
        select array_agg(core.new_id(core.now())), 'queued', core.now()
        from generate_series(1, 25000) n
        group by n % 300`
      const counts = []
      do {
        const [row] = await tx<{ count: number }[]>`select api.sum_status_changes() as count`
        counts.push(row?.count ?? 0)
      } while (counts.at(-1))
      const [first = 0, second] = counts
      t.ok(first > 19_900 && first <= 20_000, `${first}`)
      t.same([second, counts.length], [25_000 - first, 3])
    })
  },
)

t.test(
  'api.sum_status_changes: rows of versions before 0028, which have one message each',
  async (t) => {
    const { id, domain } = await createOrganisation(sql)
    await rolledBack(sql, async (tx) => {
      await tx`delete from app.status_changes`
      await tx`
        with message as (
          insert into app.messages (status, id, organisation_id, channel, mode, class, from_address, to_address,
            subject, tags, recipients, created_at)
          select 'queued', core.new_id(core.now()), core.decode_id('org', ${id}), 'email', 'live', 'transactional',
            ${`a@${domain}`}, 'd@e.f', 'Hello', '{}', 1, core.now()
          from generate_series(1, 2)
          returning id
        )
        insert into app.status_changes (message_id, change, occurred_at)
        select m.id, 'queued', core.now() from message m`
      const [unsummed] = await tx`
        select v.accepted from core.unsummed_volume(core.decode_id('org', ${id})) v where v.tag is null`
      t.same(unsummed, { accepted: '2' })
      const [row] = await tx`select api.sum_status_changes() as count`
      t.same(row, { count: 2 })
      const [summed] = await tx`
        select v.accepted from app.daily_volume v where v.organisation_id = core.decode_id('org', ${id})`
      t.same(summed, { accepted: '2' })
    })
  },
)

t.test('ops.daily_volume: a soft bounce that becomes hard counts once', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await send(
    organisation,
    'emails',
    anEmail(organisation.domain, { to: mailbox('softbounce') }),
    'bounced',
  )
  await sql`
    select api.finish_poll(jsonb_build_array(jsonb_build_object(
      'message_id', core.decode_id('em', ${id}), 'provider_event_id', 'later', 'type', 'bounced', 'is_hard', true,
      'occurred_at', now() - interval '1 hour', 'recipient', ${mailbox('softbounce')}::text)))`
  const { json } = await get(`${base}/v1/emails/${id}`, organisation.liveKey)
  t.equal(json.error.code, 'hard_bounce')
  await call('sum_status_changes', {})
  t.match((await volumeOf(organisation))[0], { accepted: 1, sent: 1, bounced: 1 })
})

t.test('ops.daily_volume: a message that fails again after a retry counts once', async (t) => {
  const organisation = await createOrganisation(sql)
  const email = anEmail(organisation.domain, { to: mailbox('reject') })
  const id = await send(organisation, 'emails', email, 'failed')
  await call('sum_status_changes', {})
  await sql`select ops.retry_message(${id})`
  await until('the second failure', async () => {
    const failures = await sql`
      select from app.events e where e.message_id = core.decode_id('em', ${id}) and e.type = 'failed'`
    return failures.length === 2
  })
  t.ok((await call('sum_status_changes', {})) > 0)
  t.match((await volumeOf(organisation))[0], { accepted: 1, sent: 0, failed: 1 })
  const [reasons] = await sql<{ messages: string }[]>`
    select sum(b.messages) as messages from app.daily_bounces b
    where b.organisation_id = core.decode_id('org', ${organisation.id})`
  t.equal(reasons?.messages, '1')
})

t.test('ops.bounce_reasons: equal reasons have equal texts', async (t) => {
  const plain = async (reason: string | null) =>
    (await sql<{ plain: string }[]>`select core.plain_reason(${reason}) as plain`)[0]?.plain
  t.equal(
    await plain('550 5.1.1 <ann@c.example>: user unknown (queue id 4XyZ12AbC3d9)'),
    '550 5.1.1 <address> user unknown (queue id <id>)',
  )
  t.equal(await plain('Call 0821234567 for help'), 'Call <number> for help')
  for (const codes of ['ESME_RINVDSTADR, 0x0000000b', '0x00000410', 'UNDELIV (err 0001)']) {
    t.equal(await plain(`The network: ${codes}.`), `The network: ${codes}.`)
  }
  t.equal(await plain(null), '')
  t.equal((await plain('word '.repeat(100)))?.length, 200)
})

t.test('ops.domains_at_risk: lists domains with the time of their failure', async (t) => {
  const { id } = await createOrganisation(sql)
  await sql`
    with mine as (select core.decode_id('org', ${id}) as id)
    insert into app.domains (id, organisation_id, name, status, verified_at, wrong_since, created_at, is_manually_verified)
    select core.new_id(now()), m.id, d.name, d.status::app.domain_status, d.verified_at, d.wrong_since, d.created_at, d.is_manually_verified
    from mine m, (values
      ('gone.example', 'verified', now(), now() - interval '70 hours', now() - interval '1 year', false),
      ('manual.example', 'verified', now(), now() - interval '70 hours', now() - interval '1 year', true),
      ('well.example', 'verified', now(), null, now() - interval '1 year', false),
      ('new.example', 'pending', null, null, now() - interval '1 hour', false),
      ('failed.example', 'failed', null, null, now() - interval '1 year', false)
    ) d (name, status, verified_at, wrong_since, created_at, is_manually_verified)`
  const rows = await sql<{ name: string; hours: number }[]>`
    select d.name, round(extract(epoch from d.fails_at - now()) / 3600)::integer as hours
    from ops.domains_at_risk d where d.organisation = ${id}`
  t.same(
    rows.map((row) => ({ ...row })),
    [
      { name: 'gone.example', hours: 2 },
      { name: 'new.example', hours: 71 },
    ],
  )
})
