import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { SendResult } from '../../src/providers/email.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { jobsOf, messageOf, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation, liftRate, suppress } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { aWorker, helpersOf, startTestService } from '../fixtures/service.ts'

// Only the API runs: a test runs a job by calling its task.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
await liftRate(sql, organisation)
const asService = serviceCall(url)

const never = new Promise<never>(() => undefined)

const helpers = helpersOf('0')

/** One worker with its own provider, and a queued message. */
async function setUp(overrides: Record<string, unknown> = {}) {
  const provider = createStandIn()
  const worker = aWorker(sql, asService, provider)
  const id = await send(base, organisation, overrides)
  const uuid = (await messageOf(sql, id)).id
  return { provider, task: worker.task, id, uuid, attemptSend: () => worker.attemptSend(id) }
}

/** The delay until the next attempt, and whether a job or a row of app.due_messages holds it. */
async function nextAttempt(id: string) {
  const [row] = await sql<{ place: string; seconds: number }[]>`
    select 'job' as place, extract(epoch from j.run_at - j.created_at)::float8 as seconds
    from graphile_worker._private_jobs j
    where j.payload ->> 'id' = core.decode_id('em', ${id})::text
    union all
    select 'due', extract(epoch from d.due_at - (
      select max(e.occurred_at) from app.events e where e.message_id = d.message_id))::float8
    from app.due_messages d where d.message_id = core.decode_id('em', ${id})`
  return row
}

t.test('send_email: without a recorded start the message is not attempted', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  await sql`revoke execute on function api.start_emails from postgram_service`
  await t.rejects(attemptSend(), { message: /permission denied/ })
  await sql`grant execute on function api.start_emails to postgram_service`
  t.equal(provider.handed.length, 0)
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 0, attemptStartedAt: null })
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 1 })
})

t.test('send_email: a transactional email is attempted as a whole and unchanged', async (t) => {
  const provider = createStandIn()
  const to = ['ann@c.example', 'bob@c.example']
  const text = 'Leave: {{unsubscribe_url}}'
  const headers = { 'X-A': '1' }
  const id = await send(base, organisation, { to, text, headers })
  await aWorker(sql, asService, provider).attemptSend(id)
  t.match(provider.emails, [{ copy: null, to, text, headers }])
  t.strictSame(Object.keys(provider.emails[0]?.headers ?? {}), ['X-A'])
  t.equal(provider.emails.length, 1)
})

t.test(
  'send_email: a recipient suppressed after the message was accepted gets nothing',
  async (t) => {
    for (const { reason, kind, isSent } of [
      { reason: 'manual', kind: 'transactional', isSent: false },
      { reason: 'unsubscribe', kind: 'marketing', isSent: false },
      { reason: 'unsubscribe', kind: 'transactional', isSent: true },
    ] as const) {
      const provider = createStandIn()
      const to = [`${randomUUID()}@example.com`, `${reason}.${kind}@Example.com`]
      const email = anEmail(organisation.domain, { to, class: kind })
      const { json } = await post(`${base}/v1/emails`, organisation.liveKey, email)
      await suppress(sql, organisation, `${reason}.${kind}@example.com`, reason)
      await aWorker(sql, asService, provider).attemptSend(json.id)
      t.equal(provider.handed.length, isSent ? 1 : 0)
      t.match(
        await messageOf(sql, json.id),
        isSent ? { status: 'sent' } : { status: 'rejected', errorCode: 'recipient_suppressed' },
      )
    }
  },
)

t.test(
  'send_email: after an ambiguous attempt the provider is asked, also if the recipient is suppressed',
  async (t) => {
    const { provider, id, attemptSend } = await setUp({ to: 'known@c.example' })
    provider.onSend = () => {
      throw new Error('the line went dead')
    }
    provider.onLookup = () => true
    await attemptSend()
    await suppress(sql, organisation, 'known@c.example')
    await attemptSend()
    t.match(await messageOf(sql, id), { status: 'sent' })
  },
)

t.test('send_email: the provider gets the complete email', async (t) => {
  const provider = createStandIn()
  const { task } = aWorker(sql, asService, provider)
  const email = anEmail(organisation.domain, {
    from: `Ann "A" <ann@${organisation.domain}>`,
    to: ['One <one@example.com>', 'two@example.com'],
    cc: ['three@example.com'],
    bcc: ['four@example.com'],
    replyTo: 'replies@example.com',
    html: '<p>Hi</p>',
    text: 'Hi',
    headers: { 'X-Order_no': '7' },
    tags: ['welcome'],
  })
  const { json } = await post(`${base}/v1/emails`, organisation.liveKey, email)
  const { id } = await messageOf(sql, json.id)
  let got: unknown
  provider.onSend = (given) => {
    got = given
    return { outcome: 'sent' }
  }
  await task({ id }, helpers)
  t.match(got, {
    id,
    attempt: 1,
    isAmbiguous: false,
    fromAddress: `ann@${organisation.domain}`,
    subject: 'Hello',
    html: '<p>Hi</p>',
    text: 'Hi',
    headers: { 'X-Order_no': '7' },
    tags: ['welcome'],
    class: 'transactional',
  })
  const { to, cc, bcc, sender, replyTo } = got as Record<string, string[] | string>
  t.match(sender, /^"?Ann .*<ann@/)
  t.equal(to?.length, 2)
  t.match(to?.[0], /One.*<one@example\.com>/)
  t.same([to?.[1], cc, bcc], ['two@example.com', ['three@example.com'], ['four@example.com']])
  t.equal(replyTo, 'replies@example.com')
})

t.test('send_email: deferrals are retried with delays that double up to an hour', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  provider.onSend = () => ({ outcome: 'deferred', code: '421', text: 'Not now.' })
  const attempts = 13
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    await attemptSend()
    const next = await nextAttempt(id)
    const expected = Math.min(3600, 5 * 2 ** (attempt - 1))
    // A fifth of jitter either way.
    t.ok(
      next && next.seconds >= expected * 0.8 && next.seconds <= expected * 1.2,
      `attempt ${attempt + 1} comes some ${expected} s later, in ${next?.seconds} s`,
    )
    t.ok(
      next && (next.place === 'job' ? next.seconds <= 90 : next.seconds > 90),
      'an attempt due within 90 s has a job, a later one waits outside the job table',
    )
  }
  const message = await messageOf(sql, id)
  t.match(message, { status: 'queued', attempts, attemptStartedAt: null, errorCode: null })
  const events = await timelineOf(sql, id)
  t.same(
    events.map(({ type, detail }) => [type, detail.attempt, detail.code, detail.text]),
    [
      ['queued', undefined, undefined, undefined],
      ...Array.from({ length: attempts }, (_, place) => ['deferred', place + 1, '421', 'Not now.']),
    ],
  )
  t.same(provider.asked, [], 'a deferral is not ambiguous')
})

t.test('send_email: a retry time that the provider names is used', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  provider.onSend = () => ({ outcome: 'deferred', retry_in_ms: 2000 })
  await attemptSend()
  const next = await nextAttempt(id)
  t.equal(next?.place, 'job')
  t.equal(Math.round(next?.seconds ?? 0), 2)
})

t.test('send_email: messages deferred together are retried at different times', async (t) => {
  const delays = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const { provider, id, attemptSend } = await setUp()
      provider.onSend = () => ({ outcome: 'deferred' })
      await attemptSend()
      return (await nextAttempt(id))?.seconds
    }),
  )
  t.equal(new Set(delays).size, delays.length)
})

t.test('send_email: a retry after 24 hours of deferrals begins another 24 hours', async (t) => {
  const { provider, id, uuid, attemptSend } = await setUp()
  provider.onSend = () => ({ outcome: 'deferred', text: 'Not now.' })
  await attemptSend()
  await sql`
    update app.events set occurred_at = now() - interval '25 hours' where message_id = ${uuid}`
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'failed', errorCode: 'provider_unavailable' })
  await sql`select ops.retry_message(${id})`
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'queued', errorCode: null })
})

t.test(
  'send_email: after a broken connection, a message that the provider knows is sent',
  async (t) => {
    const { provider, id, attemptSend } = await setUp()
    provider.onSend = () => {
      throw new Error('the connection was reset')
    }
    await attemptSend()
    t.match(await messageOf(sql, id), { status: 'queued', attempts: 1, attemptStartedAt: Date })
    t.match(await timelineOf(sql, id), [
      { type: 'queued' },
      { type: 'deferred', detail: { text: 'the connection was reset' } },
    ])
    t.ok(await nextAttempt(id))
    t.same(provider.asked, [])

    provider.onLookup = () => true
    await attemptSend()
    t.match(await messageOf(sql, id), { status: 'sent', attempts: 2, attemptStartedAt: null })
    t.equal(provider.asked.length, 1)
    t.equal(provider.handed.length, 1, 'it was not sent again')
  },
)

t.test(
  'send_email: after an ambiguous attempt, a message unknown to the provider is sent again',
  async (t) => {
    const { provider, id, attemptSend } = await setUp()
    provider.onSend = async () => ({ outcome: 'ambiguous', text: 'no answer in time' })
    await attemptSend()
    provider.onSend = () => {
      t.equal(provider.asked.length, 1, 'the provider is asked first')
      return { outcome: 'sent' }
    }
    await attemptSend()
    t.match(await messageOf(sql, id), { status: 'sent', attempts: 2 })
    t.equal(provider.handed.length, 2)
  },
)

t.test('send_email: while the lookup fails, the message is not sent again', async (t) => {
  const { provider, id, attemptSend } = await setUp()
  provider.onSend = () => {
    throw new Error('reset')
  }
  await attemptSend()
  provider.onLookup = () => {
    throw new Error('still not there')
  }
  await attemptSend()
  await attemptSend()
  t.equal(provider.handed.length, 1)
  t.equal(provider.asked.length, 2)
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 3, attemptStartedAt: Date })
  t.match((await timelineOf(sql, id)).at(-1), {
    type: 'deferred',
    detail: { text: 'still not there' },
  })
})

t.test('send_email: a provider with a lookup delay is asked until the delay is over', async (t) => {
  const provider = createStandIn({ lookupDelayMs: 600_000 })
  const { attemptSend } = aWorker(sql, asService, provider)
  const id = await send(base, organisation)
  const began = async (minutesAgo: number) => {
    const [row] = await sql<{ at: Date }[]>`
      update app.messages set attempt_started_at = now() - ${minutesAgo} * interval '1 minute'
      where id = core.decode_id('em', ${id}) returning attempt_started_at as at`
    return row?.at
  }
  provider.onSend = () => {
    throw new Error('the connection was reset')
  }
  await attemptSend(id)
  for (const minutesAgo of [0, 5, 9]) {
    const beganAt = await began(minutesAgo)
    await attemptSend(id)
    t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: beganAt })
    t.match((await timelineOf(sql, id)).at(-1), {
      type: 'deferred',
      detail: { text: 'the provider does not know it yet' },
    })
  }
  t.equal(provider.handed.length, 1)
  t.equal(provider.asked.length, 3)

  provider.onLookup = () => {
    throw new Error('it cannot be asked')
  }
  const beganAt = await began(11)
  await attemptSend(id)
  t.same((await messageOf(sql, id)).attemptStartedAt, beganAt, 'there was no further attempt')
  provider.onLookup = () => false
  await attemptSend(id)
  t.equal(provider.handed.length, 2, 'it is sent again')
  t.ok(Number((await messageOf(sql, id)).attemptStartedAt) > Number(beganAt))
  await attemptSend(id)
  t.equal(provider.handed.length, 2, 'the lookup delay starts again')

  provider.onLookup = () => true
  await attemptSend(id)
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 8, attemptStartedAt: null })
  t.equal(provider.handed.length, 2)
})

t.test('send_email: after an attempt cut off by a crash the provider is asked first', async (t) => {
  const late: SendResult[] = [{ outcome: 'sent' }, { outcome: 'failed', text: 'a duplicate' }]
  for (const result of late) {
    const { provider, id, attemptSend } = await setUp()
    // Accepts the email and never responds, as if the process had been killed meanwhile.
    const { promise: isTaken, resolve: take } = Promise.withResolvers<void>()
    const { promise: answer, resolve: answerLate } = Promise.withResolvers<SendResult>()
    provider.onSend = () => {
      take()
      return answer
    }
    provider.onLookup = () => true
    const cutOff = attemptSend()
    await isTaken
    await aWorker(sql, asService, provider).attemptSend(id)
    const sent = await messageOf(sql, id)
    t.match(sent, { status: 'sent', attempts: 2, errorCode: null })
    t.equal(provider.handed.length, 1)

    answerLate(result)
    await cutOff
    t.same(await messageOf(sql, id), sent, 'a late response changes nothing')
    t.same(
      (await timelineOf(sql, id)).map(({ type }) => type),
      ['queued', 'sent'],
    )
  }
})

t.test('send_email: a provider that times out is asked before the next attempt', async (t) => {
  const { provider, id, uuid, attemptSend } = await setUp()
  provider.onSend = () => never
  await aWorker(sql, asService, provider, { responseTimeoutMs: 10 }).task({ id: uuid }, helpers)
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 1, attemptStartedAt: Date })
  t.match((await timelineOf(sql, id)).at(-1), {
    type: 'deferred',
    detail: { text: 'the provider did not respond in time' },
  })
  provider.onLookup = () => true
  await attemptSend()
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 2 })
  t.equal(provider.handed.length, 1)
})

t.test('send_email: a second job of a message in progress waits for its end', async (t) => {
  const { provider, task, id, uuid } = await setUp()
  const { promise: answer, resolve: take } = Promise.withResolvers<void>()
  const { promise: isCalled, resolve: call } = Promise.withResolvers<void>()
  provider.onSend = async () => {
    call()
    await answer
    return { outcome: 'sent' }
  }
  const first = task({ id: uuid }, helpers)
  const second = task({ id: uuid }, helpers)
  await isCalled
  const third = task({ id: uuid }, helpers)
  take()
  await Promise.all([first, second, third])
  t.match(await messageOf(sql, id), { status: 'sent', attempts: 1 })
  t.equal(provider.handed.length, 1)
})

t.test('send_email: a deferred message has one job, also when its worker dies', async (t) => {
  const { provider, task, id, uuid } = await setUp()
  provider.onSend = () => ({ outcome: 'deferred' })
  const [before] = await jobsOf(sql, id)
  await task({ id: uuid }, helpersOf(before?.id ?? ''))
  // Killed here, before graphile-worker completed the job.
  const after = await jobsOf(sql, id)
  t.equal(after.length, 1)
  t.not(after[0]?.id, before?.id)
  t.ok(Number((await nextAttempt(id))?.seconds) > 0, 'the job is the next attempt')
})

t.test('send_email: a job of a deleted, sent or test message does nothing', async (t) => {
  const { provider, task, uuid, attemptSend } = await setUp()
  await attemptSend()
  await attemptSend()
  t.same(provider.handed, [uuid], 'the second job found it sent')

  await task({ id: randomUUID() }, helpers)
  const email = anEmail(organisation.domain)
  const { json } = await post(`${base}/v1/emails`, organisation.testKey, email)
  const { id, ...before } = await messageOf(sql, json.id)
  await task({ id }, helpers)
  t.match(await messageOf(sql, json.id), before)
  t.same(await jobsOf(sql, json.id), [], 'a test message never had a job')
  t.equal(provider.handed.length, 1)
  t.equal(provider.asked.length, 0)
})

/** The failing provider in the view; asserts that the check and the metric agree. */
async function healthSeen() {
  const rows = await sql<{ failingSince: Date; lastError: string }[]>`
    select failing_since, last_error from ops.failing_providers where provider = 'stand-in'`
  const [check] = await sql<{ ok: boolean }[]>`
    select ok from ops.checks where name = 'provider'`
  const metrics = await sql`
    select from api.metrics() where name = 'provider_failing_seconds'`
  t.same([check?.ok, metrics.length], [rows.length === 0, rows.length])
  return rows
}

/** Moves all recorded failures of providers into the past. */
const earlier = (interval: string) => sql`
  update app.provider_health
  set failing_since = failing_since - ${interval}::interval,
    first_failed_at = first_failed_at - ${interval}::interval,
    last_failed_at = last_failed_at - ${interval}::interval`

t.test(
  'provider health: an unreachable provider fails at once, until it accepts a message',
  async (t) => {
    const { provider, attemptSend } = await setUp()
    provider.onSend = () => ({ outcome: 'deferred', about: 'connection', text: 'nobody there' })
    await attemptSend()
    const [first] = await healthSeen()
    t.equal(first?.lastError, 'nobody there')
    provider.onSend = () => {
      throw new Error('no answer')
    }
    await attemptSend()
    t.match(await healthSeen(), [{ failingSince: first?.failingSince, lastError: 'no answer' }])
    provider.onSend = () => ({ outcome: 'sent' })
    await attemptSend()
    t.same(await healthSeen(), [])
  },
)

t.test('provider health: refusals of messages and recipients do not count', async (t) => {
  for (const outcome of ['deferred', 'failed', 'ambiguous'] as const) {
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      const { provider, attemptSend } = await setUp()
      provider.onSend = () => ({ outcome, about: 'message', text: '451 mailbox full' })
      await attemptSend()
      await earlier('1 minute')
    }
  }
  t.same(await healthSeen(), [])
  t.same([...(await sql`select from app.provider_health where provider = 'stand-in'`)], [])
})

t.test(
  'provider health: a provider fails after three refusals in a row over a minute',
  async (t) => {
    const { provider, attemptSend } = await setUp()
    const refuse = async () => {
      provider.onSend = () => ({ outcome: 'deferred', about: 'provider', text: '421 busy' })
      await attemptSend()
      return (await healthSeen()).length
    }
    const [first, second, third] = [await refuse(), await refuse(), await refuse()]
    t.same([first, second, third], [0, 0, 0], 'three within a moment')
    await earlier('1 minute')
    const [row] = await sql<{ firstFailedAt: Date }[]>`
    select first_failed_at from app.provider_health where provider = 'stand-in'`
    t.equal(await refuse(), 1)
    t.match(await healthSeen(), [{ failingSince: row?.firstFailedAt, lastError: '421 busy' }])

    provider.onSend = () => ({ outcome: 'deferred', text: 'it was not asked' })
    await attemptSend()
    t.equal(
      (await healthSeen()).length,
      1,
      'an attempt that did not reach the provider does not count',
    )
    provider.onSend = () => ({ outcome: 'deferred', about: 'message', text: '451 mailbox full' })
    await attemptSend()
    t.same(await healthSeen(), [], 'a refusal of one mailbox shows that the provider works')

    t.equal(await refuse(), 0)
    await earlier('1 hour')
    t.equal(await refuse(), 0, 'two refusals are too few, whatever the time between them')
    t.equal(await refuse(), 1)
    await earlier('2 hours')
    t.same(await healthSeen(), [], 'a provider without recent attempts is not failing')
    t.equal(await refuse(), 0, 'its refusals are counted again from zero')
    await sql`delete from app.provider_health`
  },
)
