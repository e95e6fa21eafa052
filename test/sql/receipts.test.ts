import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createDatabase, rolledBack, untilLocked } from '../fixtures/database.ts'
import { messageOf, send, sendBatch } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { runTask, startTestService } from '../fixtures/service.ts'

// Only the API runs: the jobs that the clock adds stay in the queue.
const { url, sql } = await createDatabase()
/** A provider that makes callbacks. */
const mailgun = createStandIn({ name: 'mailgun', readCallback: () => undefined })
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)

type PollJob = { ids: string[]; queueName: string; priority: number }

/** Returns the connections of a service whose clock is ahead by this interval. */
function ahead(shift: string) {
  const service = connect(url, { role: 'postgram_service', clock: { 'postgram.shift': shift } })
  return { call: caller(service), close: () => service.end() }
}

async function takeJobs(): Promise<PollJob[]> {
  return sql<PollJob[]>`
    with taken as (
      delete from graphile_worker._private_jobs j
      using graphile_worker._private_tasks k, graphile_worker._private_job_queues q
      where k.id = j.task_id and k.identifier = 'poll_receipts' and q.id = j.job_queue_id
      returning j.id, j.payload, q.queue_name, j.priority
    )
    select array(select json_array_elements_text(payload -> 'ids')) as ids, queue_name, priority
    from taken order by id`
}

/** Returns the IDs of the messages that the clock polls at that time. */
async function pollAt(shift: string): Promise<string[]> {
  const { call, close } = ahead(shift)
  await runTask('enqueue-receipt-polls', { call, provider: mailgun })
  await close()
  return (await takeJobs()).flatMap(({ ids }) => ids).sort()
}

/** Resets the tables, runs the clock once, and adds this many messages that a provider accepted. */
async function begin(count: number, overrides: Record<string, unknown> = {}): Promise<string[]> {
  await sql`delete from app.receipt_polls`
  await sql`update app.messages set status = 'delivered' where status <> 'delivered'`
  await sql`truncate graphile_worker._private_jobs`
  t.same(await pollAt('0 seconds'), [], 'nothing is old enough')
  const emails = Array.from({ length: count }, () => overrides)
  const rows = await sql<{ id: string }[]>`
    update app.messages m
    set status = 'sent', sent_at = now(), provider = 'mailgun'
    from unnest(${await sendBatch(base, organisation, emails)}::text[]) i (id)
    where m.id = core.decode_id('em', i.id)
    returning m.id`
  return rows.map(({ id }) => id).sort()
}

t.test('receipt polls: a message is polled once at each age', async (t) => {
  const ids = await begin(3)
  const looks: [string, string[]][] = [
    ['9 minutes', []],
    ['11 minutes', ids],
    ['11 minutes', []],
    ['59 minutes', []],
    ['61 minutes', ids],
    ['3 hours', []],
    ['6 hours 1 minute', ids],
    ['23 hours', []],
    ['24 hours 1 minute', ids],
    ['71 hours', []],
    ['72 hours 1 minute', ids],
    ['80 hours', []],
    ['200 hours', []],
  ]
  for (const [at, expected] of looks) t.same(await pollAt(at), expected, at)
})

t.test('receipt polls: a message with a final receipt is not polled', async (t) => {
  const ids = await begin(3)
  t.same(await pollAt('11 minutes'), ids)
  await sql`update app.messages set status = 'delivered' where id = ${ids[0] as string}`
  t.same(await pollAt('61 minutes'), ids.slice(1))
})

t.test('receipt polls: missed runs are caught up with one poll for each message', async (t) => {
  const ids = await begin(3)
  t.same(await pollAt('30 hours'), ids)
  t.same(await pollAt('30 hours 1 minute'), [])
  t.same(await pollAt('72 hours 1 minute'), ids)

  const others = await begin(3)
  t.same(await pollAt('90 hours'), others, 'at its last age')
  const forgotten = await begin(3)
  t.same(await pollAt('97 hours'), [])
  t.equal(forgotten.length, 3, 'after four days nobody is asked')
})

t.test('receipt polls: only live email of this provider is polled', async (t) => {
  const ids = await begin(8)
  const [queued, failed, test, rehearsal, another, unknown, ...others] = ids as [
    string,
    string,
    string,
    string,
    string,
    string,
    ...string[],
  ]
  await sql`update app.messages set status = 'queued', sent_at = null where id = ${queued}`
  await sql`update app.messages set status = 'failed' where id = ${failed}`
  await sql`update app.messages set mode = 'test', provider = null where id = ${test}`
  await sql`update app.messages set is_sandbox = true where id = ${rehearsal}`
  await sql`update app.messages set provider = 'sandbox' where id = ${another}`
  await sql`update app.messages set provider = null where id = ${unknown}`
  t.same(await pollAt('11 minutes'), [unknown, ...others].sort())
})

t.test('receipt polls: a provider without polling gets no jobs', async (t) => {
  await begin(3)
  const { call, close } = ahead('11 minutes')
  t.equal(await runTask('enqueue-receipt-polls', { call, provider: createStandIn() }), 0)
  await close()
  t.same(await takeJobs(), [])
})

t.test(
  'receipt polls: jobs have up to 100 messages, run in sequence, with low priority',
  async (t) => {
    const ids = await begin(250)
    const { call, close } = ahead('11 minutes')
    await runTask('enqueue-receipt-polls', { call, provider: mailgun })
    await close()
    const jobs = await takeJobs()
    t.same(
      jobs.map((job) => job.ids.length),
      [100, 100, 50],
    )
    t.ok(jobs.every(({ queueName, priority }) => queueName === 'poll_receipts' && priority === 100))
    t.same(jobs.flatMap((job) => job.ids).sort(), ids)
  },
)

t.test('receipt polls: concurrent clocks poll each message once', async (t) => {
  const ids = await begin(50)
  const { call, close } = ahead('40 hours')
  const enqueue = () => runTask('enqueue-receipt-polls', { call, provider: mailgun })
  await Promise.all(Array.from({ length: 6 }, enqueue))
  await close()
  t.same((await takeJobs()).flatMap((job) => job.ids).sort(), ids)
})

t.test('receipt polls: a full job leaves other messages in their windows', async (t) => {
  const ids = await begin(3)
  await sql`
    select graphile_worker.add_job('poll_receipts', '{"ids": []}', queue_name := 'poll_receipts', priority := 100)
    from generate_series(1, 100)`
  t.same(await pollAt('11 minutes'), [])
  t.same(await pollAt('12 minutes'), ids)
})

t.test('receipt polls: a run reads only its windows', async (t) => {
  // Ahead, where every month has its partition: 20 000 in a week are some 2 in a minute.
  const at = '21 days'
  await sql`delete from app.receipt_polls`
  await sql`
    insert into app.messages
    select (jsonb_populate_record(m, jsonb_build_object('id', id.*))).*
    from (select m from app.messages m limit 1) m, generate_series(1, 20000) n,
      core.new_id(now() + ${at}::interval - n * interval '7 days' / 20000) id`
  await pollAt(at)
  const owner = connect(url, { clock: { 'postgram.shift': `${at} 3 minutes` }, max: 1 })
  const [read] = await owner.begin(async (tx) => {
    await tx`select api.enqueue_receipt_polls('mailgun')`
    return tx<{ scans: number; rows: number }[]>`
      select sum(seq_scan)::integer as scans, sum(idx_tup_fetch)::integer as rows
      from pg_stat_xact_user_tables where schemaname = 'app' and relname like 'messages\\_%'`
  })
  await owner.end()
  t.equal(read?.scans, 0)
  t.comment(`${read?.rows} rows read`)
  t.ok(Number(read?.rows) > 10)
  t.ok(Number(read?.rows) < 100)
})

type Message = { channel: string; class: string; status: string; recipients: number }

/** Returns the status of a message after one receipt for one of its recipients. */
async function statusAfter(message: Message, type: string) {
  let result: { status: string | null; errorCode: string | null } | undefined
  await rolledBack(sql, async (tx) => {
    const { channel, status, recipients } = message
    const [row] = await tx<{ id: string }[]>`
      insert into app.messages (
        status, id, organisation_id, channel, mode, class, from_address, to_address, subject, tags,
        recipients, created_at, sent_at
      )
      values (
        ${status}, core.new_id(now()), core.decode_id('org', ${organisation.id}), ${channel}, 'live',
        ${message.class}, 'from', 'to', 'Hi', '{}', ${recipients}, now(),
        ${status === 'sent' ? new Date() : null}
      )
      returning id`
    await tx`
      insert into app.events (message_id, type, occurred_at, provider_event_id, detail)
      values (${row?.id ?? ''}, ${type}, now(), 'e1', '{"recipient": "to"}')`
    const [found] = await tx<{ status: string | null; errorCode: string | null }[]>`
      select v.status, v.error_code from app.messages m left join core.receipt_status(m) v on true
      where m.id = ${row?.id ?? ''}`
    result = found && { ...found }
  })
  return result
}

const sent = { channel: 'email', class: 'transactional', status: 'sent', recipients: 1 }

t.test(
  'receipt_status: the error code of a permanent refusal depends on the channel',
  async (t) => {
    t.strictSame(await statusAfter(sent, 'failed'), {
      status: 'failed',
      errorCode: 'provider_rejected',
    })
    t.strictSame(await statusAfter({ ...sent, channel: 'sms' }, 'failed'), {
      status: 'failed',
      errorCode: 'network_rejected',
    })
  },
)

t.test(
  'receipt_status: one copy of a queued marketing email does not decide its status',
  async (t) => {
    const copies = { ...sent, class: 'marketing', status: 'queued', recipients: 2 }
    for (const [message, status] of [
      [copies, null],
      [{ ...copies, status: 'sent' }, 'bounced'],
      [{ ...copies, recipients: 1 }, 'bounced'],
      [{ ...copies, class: 'transactional' }, 'bounced'],
    ] as const) {
      t.equal((await statusAfter(message, 'bounced'))?.status, status)
    }
  },
)

t.test('record_receipts: concurrent receipts that end attempts do not deadlock', async (t) => {
  const one = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  const receipts: { id: string; type: string }[] = []
  for (const [organisation, type] of [
    [one, 'sent'],
    [other, 'delivered'],
    [other, 'sent'],
    [one, 'delivered'],
  ] as const) {
    receipts.push({ id: await send(base, organisation), type })
  }
  const messages = () => Promise.all(receipts.map(({ id }) => messageOf(sql, id)))
  await sql`select api.start_emails(${(await messages()).map(({ id }) => id)}::uuid[])`
  const record = (two: typeof receipts) => sql`
    select core.record_receipts((
      select jsonb_agg(jsonb_build_object('message_id', m.id, 'type', r.type,
        'provider_event_id', r.id || r.type, 'occurred_at', now(), 'recipient', m.to_address))
      from jsonb_to_recordset(${JSON.stringify(two)}::text::jsonb) r (id text, type text)
      join app.messages m on m.id = core.decode_id('em', r.id)))`
  const { both } = await sql.begin(async (tx) => {
    await tx`select from app.counters for update`
    const both = Promise.all([record(receipts.slice(0, 2)), record(receipts.slice(2))])
    both.catch(() => undefined)
    await untilLocked(sql, 2)
    return { both }
  })
  await t.resolves(both)
  t.same(
    (await messages()).map(({ status }) => status),
    receipts.map(({ type }) => type),
  )
})
