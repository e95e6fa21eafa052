import t from 'tap'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import {
  anyJson,
  backlogOf,
  jobsOf,
  messageOf,
  send,
  sendBatch,
  timelineOf,
} from '../fixtures/messages.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { sendHeartbeat, startTestService } from '../fixtures/service.ts'

// Only the API runs; where a worker is needed, the test is the worker.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
await liftRate(sql, organisation)
const call = serviceCall(url, { max: 1 })

const TIME = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z'

const why = async (id: string | null) => {
  const [row] = await sql<{ why: string }[]>`select ops.why(${id}) as why`
  return row?.why ?? ''
}

const retry = (id: string) => sql`select ops.retry_message(${id})`

/** One attempt by one worker, with this outcome. */
async function attemptSend(id: string, outcome: string, text?: string, about?: string) {
  const message = await messageOf(sql, id)
  const [taken] = await jobsOf(sql, id)
  await call('start_emails', { ids: [message.id] })
  const result = { id: message.id, provider: 'stand-in', outcome, text, about }
  await call('finish_messages', { results: anyJson([result]) })
  await sql`delete from graphile_worker._private_jobs where id = ${taken?.id ?? 0}`
  // The next attempt is in the future however long the test takes.
  await sql`
    update graphile_worker._private_jobs set run_at = run_at + interval '1 hour'
    where payload ->> 'id' = ${message.id}`
}

t.test('ops.why(): without a worker, says that no worker is running', async (t) => {
  const id = await send(base, organisation)
  t.equal(
    await why(id),
    'The message waits because no worker is running; start one with the command "start" or "start --only worker".',
  )
  await sql`
    insert into app.processes (pool_id, roles, host, pid, version, clock_offset, synchronous_commit)
    values ('a-worker-that-is-gone', '{worker}', 'here', 1, '1.2.3', '0', 'on')`
  t.match(
    await why(id),
    new RegExp(
      `^The message waits because no worker is running \\(last heartbeat at ${TIME}\\); start`,
    ),
  )
  await sql`delete from app.processes where pool_id = 'a-worker-that-is-gone'`
})

t.test('ops.why() with a worker', async (t) => {
  await sendHeartbeat(call)

  t.test('a waiting message: returns how many messages are before it', async (t) => {
    await sql`delete from graphile_worker._private_jobs`
    await sendBatch(base, organisation, [{}, {}, {}])
    const id = await send(base, organisation)
    t.equal(await why(id), 'The message waits behind 3 messages.')
    const other = await createOrganisation(sql)
    await sendBatch(
      base,
      organisation,
      Array.from({ length: 200 }, () => ({})),
    )
    const late = await send(base, organisation)
    t.equal(await why(late), 'The message waits behind 204 messages.')
    const first = await send(base, other)
    t.match(
      await why(first),
      /^The message waits behind \d\d messages\.$/,
      'messages of a later priority are not before it',
    )
  })

  t.test('a message in progress: returns the attempt and its start', async (t) => {
    const id = await send(base, organisation)
    const { id: uuid } = await messageOf(sql, id)
    await call('start_emails', { ids: [uuid] })
    await sql`
      update graphile_worker._private_jobs set locked_at = now(), locked_by = 'a-pool', attempts = 1
      where payload ->> 'id' = ${uuid}`
    t.match(
      await why(id),
      new RegExp(`^Attempt 1 of the message has been running since ${TIME}\\.$`),
    )
  })

  t.test('a deferred message: returns time and reason of the next attempt', async (t) => {
    const id = await send(base, organisation)
    await attemptSend(id, 'deferred', 'Come back later.', 'connection')
    const [job] = await jobsOf(sql, id)
    t.match(
      await why(id),
      new RegExp(
        `^The message waits for attempt 2 at ${job?.runAt.toISOString()} ` +
          `because the provider stand-in has accepted no messages since ${TIME}: Come back later\\.$`,
      ),
    )
    const other = await send(base, organisation)
    await attemptSend(other, 'deferred', 'The mailbox is full.', 'message')
    t.match(await why(other), / because the last attempt was deferred: The mailbox is full\.$/)
    t.match(
      await why(id),
      / because the last attempt was deferred: Come back later\.$/,
      'the provider has accepted another message since',
    )
  })

  t.test(
    'a message deferred outside the job table: returns the time of the next attempt',
    async (t) => {
      const id = await send(base, organisation)
      for (let attempt = 1; attempt <= 8; attempt += 1)
        await attemptSend(id, 'ambiguous', 'reset', 'connection')
      const [due] = await sql<{ dueAt: Date }[]>`
      select due_at from app.due_messages where message_id = core.decode_id('em', ${id})`
      t.match(
        await why(id),
        new RegExp(
          `^The message waits for attempt 9 at ${due?.dueAt.toISOString()} because the provider`,
        ),
      )
    },
  )

  t.test('a message of a paused or suspended organisation: returns state and reason', async (t) => {
    const paused = await createOrganisation(sql)
    const id = await send(base, paused)
    await sql`select ops.pause(${paused.id}, 'too many complaints')`
    t.match(
      await why(id),
      new RegExp(
        `^The message waits because its organisation ${paused.id} has been paused since ${TIME}: ` +
          'too many complaints; select ops\\.resume\\(…\\) sends it\\.$',
      ),
    )
    await sql`select ops.suspend(${paused.id}, 'fraud')`
    t.match(await why(id), / has been suspended since .*: fraud; a worker will reject it\.$/)
  })

  t.test('a job that failed permanently is named, and a retry resets its attempts', async (t) => {
    const id = await send(base, organisation)
    // graphile-worker leaves the time of a next attempt that it never makes.
    await sql`
      update graphile_worker._private_jobs
      set attempts = max_attempts, last_error = 'out of memory', run_at = now() + interval '6 hours'
      where payload ->> 'id' = core.decode_id('em', ${id})::text`
    t.equal(
      await why(id),
      'The job of the message failed permanently after 25 attempts (out of memory); select ops.retry_message(…) sends the message.',
    )
    await retry(id)
    t.match(await jobsOf(sql, id), [{ attempts: 0 }])
    t.match(await why(id), /^The message waits behind/)
  })

  t.test('a message without a job is named, and a retry adds its job', async (t) => {
    const id = await send(base, organisation)
    await sql`
      delete from graphile_worker._private_jobs
      where payload ->> 'id' = core.decode_id('em', ${id})::text`
    t.match(
      await why(id),
      /^The message is queued but has no job; this is a bug, please report it. select ops\.retry_/,
    )
    await retry(id)
    await retry(id)
    t.equal((await jobsOf(sql, id)).length, 1)
    t.match(await why(id), /^The message waits behind/)
  })
})

t.test('ops.why(): returns the status of a message that does not wait', async (t) => {
  const sent = await send(base, organisation)
  await attemptSend(sent, 'sent')
  t.equal(await why(sent), 'The message does not wait: its status is sent.')
  await call('finish_poll', {
    receipts: anyJson([
      {
        message_id: (await messageOf(sql, sent)).id,
        provider_event_id: 'one',
        type: 'delivered',
        occurred_at: new Date().toISOString(),
      },
    ]),
  })
  t.equal(await why(sent), 'The message does not wait: its status is delivered.')
  const failed = await send(base, organisation)
  await attemptSend(failed, 'failed', 'No such thing.')
  t.equal(await why(failed), 'The message does not wait: its status is failed (No such thing).')
  const test = await post(`${base}/v1/emails`, organisation.testKey, anEmail(organisation.domain))
  t.match(await why(test.json.id), /^The message does not wait: it was created with a test key/)
})

t.test('ops.why() and ops.retry_message(): an unknown id raises one sentence', async (t) => {
  for (const id of ['em_01h00000000000000000000000', 'nonsense', '', organisation.id, null]) {
    for (const ask of ['why', 'retry_message']) {
      const asked = sql`select ${sql.unsafe(`ops.${ask}`)}(${id})`
      await t.rejects(asked, { message: /^there is no message/ }, `${ask} ${id}`)
    }
  }
})

t.test(
  'ops.retry_message(): a failed message keeps its timeline and is not counted again',
  async (t) => {
    const usedOf = () => sql`select emails_used from app.allowances order by organisation_id`
    const before = await backlogOf(sql, organisation)
    const id = await send(base, organisation)
    const used = await usedOf()
    await attemptSend(id, 'failed', 'No such thing.')
    t.same(await jobsOf(sql, id), [])
    await retry(id)
    t.match(await messageOf(sql, id), { status: 'queued', errorCode: null, errorMessage: null })
    t.equal(await backlogOf(sql, organisation), before + 1)
    t.match(await jobsOf(sql, id), [{ attempts: 0, lockedBy: null }])
    await attemptSend(id, 'sent')
    t.match(await messageOf(sql, id), { status: 'sent', attempts: 2 })
    t.match(await timelineOf(sql, id), [
      { type: 'queued' },
      { type: 'failed', detail: { attempt: 1, text: 'No such thing.' } },
      { type: 'queued', detail: { text: 'retried by the operator' } },
      { type: 'sent', detail: { attempt: 2 } },
    ])
    t.equal(await backlogOf(sql, organisation), before)
    t.same(await usedOf(), used, 'a retry does not use the allowance')
  },
)

t.test(
  'ops.retry_message(): a message that failed after 24 hours gets another 24 hours',
  async (t) => {
    const id = await send(base, organisation)
    await attemptSend(id, 'deferred', 'Not now.')
    await sql`
    update app.events set occurred_at = now() - interval '25 hours'
    where message_id = core.decode_id('em', ${id})`
    await attemptSend(id, 'deferred', 'Not now.')
    t.match(await messageOf(sql, id), { status: 'failed', errorCode: 'provider_unavailable' })
    await retry(id)
    await attemptSend(id, 'deferred', 'Not now.')
    t.match(await messageOf(sql, id), { status: 'queued', errorCode: null })
  },
)

t.test('ops.retry_message(): a waiting message is attempted now instead of later', async (t) => {
  const [soon, later] = [await send(base, organisation), await send(base, organisation)]
  await attemptSend(soon, 'deferred')
  await sql`
    delete from graphile_worker._private_jobs
    where payload ->> 'id' = core.decode_id('em', ${later})::text`
  await sql`
    insert into app.due_messages (message_id, organisation_id, due_at, priority)
    select m.id, m.organisation_id, now() + interval '1 hour', 0
    from app.messages m where m.id = core.decode_id('em', ${later})`
  for (const id of [soon, later]) {
    await retry(id)
    const jobs = await jobsOf(sql, id)
    t.equal(jobs.length, 1)
    t.ok(Number(jobs[0]?.runAt) <= Date.now())
  }
  const due = await sql`
    select from app.due_messages where message_id = core.decode_id('em', ${later})`
  t.equal(due.length, 0)
})

t.test('ops.retry_message(): a message in progress is not changed', async (t) => {
  const id = await send(base, organisation)
  await sql`
    update graphile_worker._private_jobs set locked_at = now(), locked_by = 'a-pool', attempts = 1
    where payload ->> 'id' = core.decode_id('em', ${id})::text`
  const before = await jobsOf(sql, id)
  await retry(id)
  t.same(await jobsOf(sql, id), before)
})

t.test('ops.retry_message(): refuses sent, rejected and test messages', async (t) => {
  const sent = await send(base, organisation)
  await attemptSend(sent, 'sent')
  await t.rejects(retry(sent), { message: /^the message is sent; only a waiting message/ })
  const suspended = await createOrganisation(sql)
  const rejected = await send(base, suspended)
  await sql`select ops.suspend(${suspended.id}, 'fraud')`
  await attemptSend(rejected, 'sent')
  await t.rejects(retry(rejected), { message: /^the message is rejected; only/ })
  const test = await post(`${base}/v1/emails`, organisation.testKey, anEmail(organisation.domain))
  await t.rejects(retry(test.json.id), { message: 'a test message is never sent to a provider' })
})
