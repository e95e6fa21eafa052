import fc from 'fast-check'
import t from 'tap'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { anyJson, backlogOf, messageOf, sendBatch, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

// Only the API runs: the test is the worker and the provider.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
// These tests record more complaints than pause an organisation; none of them counts.
await sql`update app.organisations set complaints_since = now() + interval '1 day'`
const call = serviceCall(url)

type Receipt = {
  provider_event_id: string
  type: string
  occurred_at: string
  recipient?: string
  code?: string
  text?: string
  is_hard?: boolean
}

const RECIPIENTS = ['a@example.com', 'b@example.com', 'c@example.com'].map((address) =>
  address.replace('@', `-${process.pid}@`),
)

const STARTED_AT = Date.now()

// All are sent before the first bounce suppresses their recipients.
const stock = new Map(
  await Promise.all(
    [1, 3].map(async (recipients) => {
      const to = RECIPIENTS.slice(0, recipients)
      const emails = Array.from({ length: 1000 }, () => ({ to }))
      return [recipients, await sendBatch(base, organisation, emails)] as const
    }),
  ),
)

/** A queued message to that many recipients. */
function aMessage(recipients = 1): string {
  const id = stock.get(recipients)?.pop()
  if (!id) throw new Error('the stock of messages is used up')
  return id
}

const uuidOf = async (id: string) => (await messageOf(sql, id)).id

async function record(id: string, receipts: Receipt[]): Promise<number> {
  const message_id = await uuidOf(id)
  const stored = await call('finish_poll', {
    receipts: anyJson(receipts.map((receipt) => ({ message_id, ...receipt }))),
  })
  return stored.length
}

/** Deletes suppressions: all messages have the same recipients, and a bounce of one case must not stop the next. */
async function forgetSuppressions() {
  await sql`delete from app.suppressions`
  await sql`delete from app.hard_bounces`
}

async function start(id: string) {
  await forgetSuppressions()
  return call('start_emails', { ids: [await uuidOf(id)] })
}

const finish = async (id: string, outcome = 'sent') =>
  call('finish_messages', {
    results: anyJson([{ id: await uuidOf(id), provider: 'stand-in', outcome }]),
  })

/** The suppressed recipients, each with its strongest reason. */
async function suppressionsOf() {
  const rows = await sql<{ email: string; reason: string }[]>`
    select email, reason from app.suppressions order by email`
  // The first of two suppressions that block everything stays.
  return rows.map(({ email, reason }) => [email, reason === 'unsubscribe'])
}

/** Everything that receipts decide, without times that the database sets. */
async function stateOf(id: string) {
  const { status, deliveredAt, errorCode, errorMessage, sentAt } = await messageOf(sql, id)
  const timeline = (await timelineOf(sql, id)).map((event) =>
    ['queued', 'sent'].includes(event.type) ? event.type : event,
  )
  return { status, deliveredAt, errorCode, errorMessage, isSent: sentAt !== null, timeline }
}

let eventsMade = 0
const receipt = (type: string, seconds: number, more: Partial<Receipt> = {}): Receipt => {
  eventsMade += 1
  return {
    provider_event_id: `event-${eventsMade}`,
    type,
    occurred_at: new Date(Date.now() + seconds * 1000).toISOString(),
    recipient: RECIPIENTS[0] as string,
    ...more,
  }
}

const aReceipt = (recipients: number): fc.Arbitrary<Omit<Receipt, 'provider_event_id'>> =>
  fc.record(
    {
      type: fc.constantFrom(
        'sent',
        'delivered',
        'bounced',
        'complained',
        'deferred',
        'failed',
        'expired',
        'opted_out',
      ),
      // Few values, so that some are equal; some before the message, because clocks differ.
      occurred_at: fc
        .constantFrom(-3600, 1, 2, 3, 4)
        .map((seconds) => new Date(STARTED_AT + seconds * 1000).toISOString()),
      recipient: fc.constantFrom(...RECIPIENTS.slice(0, recipients)),
      code: fc.constantFrom('550', '452'),
      text: fc.constantFrom('full', 'gone', 'busy'),
      is_hard: fc.boolean(),
    },
    { requiredKeys: ['type', 'occurred_at', 'recipient'] },
  )

/** A set of receipts, and two orders of arrival with repetitions, split into calls. */
const aHistory = fc.constantFrom(1, 3).chain((recipients) =>
  fc
    .array(aReceipt(recipients), { minLength: 1, maxLength: 7 })
    .map((receipts) => receipts.map((one, place) => ({ ...one, provider_event_id: `e${place}` })))
    .chain((receipts) =>
      fc.record({
        recipients: fc.constant(recipients),
        receipts: fc.constant(receipts),
        arrivals: fc
          .shuffledSubarray([...receipts, ...receipts.slice(0, 3)], { minLength: 0 })
          .map((some) => [...some, ...receipts.filter((one) => !some.includes(one))]),
        cuts: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 12, maxLength: 12 }),
        /** The call before which the attempt ends; null: never, as after a crash. */
        finishBefore: receipts.some(({ type }) => type === 'sent')
          ? fc.option(fc.integer({ min: 0, max: 8 }))
          : fc.integer({ min: 0, max: 8 }),
      }),
    ),
)

const RANK = ['queued', 'sent', 'delivered', 'expired', 'failed', 'bounced', 'complained']

t.test('record_receipts: order and repetition of receipts do not change the result', async (t) => {
  await fc.assert(
    fc.asyncProperty(aHistory, async ({ recipients, receipts, arrivals, cuts, finishBefore }) => {
      const [inOrder, shuffled] = [aMessage(recipients), aMessage(recipients)]
      await start(inOrder)
      await finish(inOrder)
      await record(inOrder, receipts)
      const suppressions = await suppressionsOf()

      await start(shuffled)
      const statuses = []
      let rest = arrivals
      for (const [place, cut] of cuts.entries()) {
        if (place === finishBefore) await finish(shuffled)
        if (rest.length > 0) await record(shuffled, rest.slice(0, cut))
        rest = rest.slice(cut)
        statuses.push((await messageOf(sql, shuffled)).status)
      }
      const expected = { ...(await stateOf(inOrder)), suppressions }
      const actual = { ...(await stateOf(shuffled)), suppressions: await suppressionsOf() }
      const places = statuses.map((status) => RANK.indexOf(status))
      if (places.some((place, step) => place < (places[step - 1] ?? 0))) {
        throw new Error(`went back: ${statuses.join(', ')}`)
      }
      if (JSON.stringify(actual) !== JSON.stringify(expected)) {
        throw new Error(`${JSON.stringify(actual)}\nis not\n${JSON.stringify(expected)}`)
      }
    }),
    { numRuns: 200 },
  )
  const [queued] =
    await sql`select count(*)::integer as n from app.messages where status = 'queued'`
  t.equal(await backlogOf(sql, organisation), queued?.n, 'each attempt was counted once')
  const [sent] = await sql`
    select d.emails_sent::integer as counted,
      (select count(*)::integer from app.messages where sent_at is not null) as n
    from app.counters d`
  t.equal(sent?.counted, sent?.n, 'each sent message was counted once')
})

t.test('record_receipts: a late delivery does not change a bounced message', async (t) => {
  const id = aMessage()
  await start(id)
  await finish(id)
  await record(id, [receipt('bounced', 2, { text: 'gone', is_hard: true })])
  await record(id, [receipt('delivered', 1)])
  t.match(await messageOf(sql, id), { status: 'bounced', errorCode: 'hard_bounce' })
  t.match(await timelineOf(sql, id), [
    { type: 'queued' },
    { type: 'sent' },
    { type: 'delivered' },
    { type: 'bounced' },
  ])
})

t.test('record_receipts: complained follows delivered, but not the reverse', async (t) => {
  const id = aMessage()
  await start(id)
  await finish(id)
  await record(id, [receipt('complained', 5)])
  t.match(await messageOf(sql, id), { status: 'complained', deliveredAt: null })
  const delivered = receipt('delivered', 1)
  await record(id, [delivered])
  t.match(await messageOf(sql, id), {
    status: 'complained',
    deliveredAt: new Date(delivered.occurred_at),
    errorCode: null,
  })
})

t.test('record_receipts: the last delivery or the first bounce sets the status', async (t) => {
  const [all, one] = [aMessage(3), aMessage(3)]
  for (const id of [all, one]) {
    await start(id)
    await finish(id)
  }
  for (const [place, recipient] of RECIPIENTS.entries()) {
    t.equal((await messageOf(sql, all)).status, 'sent')
    await record(all, [receipt('delivered', place, { recipient })])
    await record(all, [receipt('delivered', place + 10, { recipient })])
  }
  t.match(await messageOf(sql, all), { status: 'delivered' })

  await record(one, [receipt('delivered', 1, { recipient: RECIPIENTS[0] as string })])
  await record(one, [receipt('bounced', 2, { recipient: RECIPIENTS[1] as string, text: 'full' })])
  t.match(await messageOf(sql, one), {
    status: 'bounced',
    errorCode: 'soft_bounce',
    errorMessage: `${RECIPIENTS[1]}: full`,
    deliveredAt: null,
  })
  await record(one, [
    receipt('bounced', 3, { recipient: RECIPIENTS[2] as string, text: 'none', is_hard: true }),
  ])
  t.match(await messageOf(sql, one), {
    errorCode: 'soft_bounce',
    errorMessage: `${RECIPIENTS[1]}: full`,
  })
})

t.test('record_receipts: the error comes from the receipt that set the status', async (t) => {
  const id = aMessage(3)
  await start(id)
  await finish(id)
  await record(id, [
    receipt('failed', 1, { recipient: RECIPIENTS[0] as string, text: 'failed first' }),
    receipt('bounced', 2, { recipient: RECIPIENTS[1] as string, text: 'bounced', is_hard: true }),
  ])
  t.match(await messageOf(sql, id), {
    status: 'bounced',
    errorCode: 'hard_bounce',
    errorMessage: `${RECIPIENTS[1]}: bounced`,
  })
})

t.test('record_receipts: a receipt is stored once by its provider event id', async (t) => {
  const id = aMessage()
  await start(id)
  await finish(id)
  const one = receipt('deferred', 1)
  t.equal(await record(id, [one, one, { ...one, text: 'another' }]), 1)
  t.equal(await record(id, [one]), 0)
  const other = aMessage()
  t.equal(await record(other, [one]), 1, 'an event ID is unique for its message only')
  const concurrent = receipt('deferred', 2)
  const stored = await Promise.all(Array.from({ length: 8 }, () => record(id, [concurrent])))
  t.equal(
    stored.reduce((sum, count) => sum + count, 0),
    1,
  )
  t.equal((await timelineOf(sql, id)).filter(({ type }) => type === 'deferred').length, 2)
})

t.test('record_receipts: receipts of unknown messages are ignored', async (t) => {
  const id = aMessage()
  await start(id)
  await finish(id)
  const { json } = await post(
    `${base}/v1/emails`,
    organisation.testKey,
    anEmail(organisation.domain),
  )
  const receipts = [
    { message_id: '01890000-0000-7000-8000-000000000000', ...receipt('delivered', 1) },
    { message_id: '00000000-0000-4000-8000-000000000000', ...receipt('bounced', 1) },
    { message_id: await uuidOf(json.id), ...receipt('bounced', 1) },
    { message_id: await uuidOf(id), ...receipt('delivered', 1) },
  ]
  t.same(await call('finish_poll', { receipts: anyJson(receipts) }), ['delivered'])
  t.match(await messageOf(sql, id), { status: 'delivered' })
  t.match(await messageOf(sql, json.id), { status: 'sent' }, 'a test message has no receipts')
  t.same(await call('finish_poll', { receipts: [] }), [])
})

t.test('record_receipts: a receipt before the end of its attempt counts it once', async (t) => {
  const before = await backlogOf(sql, organisation)
  const id = aMessage()
  await start(id)
  const { attemptStartedAt } = await messageOf(sql, id)
  await record(id, [receipt('delivered', 1)])
  t.equal(await backlogOf(sql, organisation), before - 1)
  t.match(await messageOf(sql, id), { status: 'delivered', sentAt: attemptStartedAt })
  await finish(id)
  await finish(id)
  await record(id, [receipt('complained', 2)])
  t.equal(await backlogOf(sql, organisation), before - 1)
  t.match(await messageOf(sql, id), {
    status: 'complained',
    sentAt: attemptStartedAt,
    attemptStartedAt: null,
    provider: 'stand-in',
  })
  t.same(await start(id), [], 'there is no further attempt')
})

t.test('record_receipts: a receipt during the end of its attempt counts it once', async (t) => {
  const before = await backlogOf(sql, organisation)
  const ids = Array.from({ length: 20 }, () => aMessage())
  await Promise.all(ids.map(start))
  await Promise.all(
    ids.flatMap((id) => [finish(id), record(id, [receipt('delivered', 1)]), finish(id)]),
  )
  for (const id of ids) t.match(await stateOf(id), { status: 'delivered', isSent: true })
  t.equal(await backlogOf(sql, organisation), before - ids.length)
})

t.test('record_receipts: `sent` settles an ambiguous attempt', async (t) => {
  const before = await backlogOf(sql, organisation)
  const id = aMessage()
  await start(id)
  await finish(id, 'ambiguous')
  const { attemptStartedAt } = await messageOf(sql, id)
  t.equal(
    await record(id, [receipt('sent', 1), receipt('sent', 2)]),
    0,
    '`sent` does not add an event',
  )
  t.match(await messageOf(sql, id), {
    status: 'sent',
    sentAt: attemptStartedAt,
    provider: 'stand-in',
  })
  t.equal(await backlogOf(sql, organisation), before - 1)
  t.match(
    (await timelineOf(sql, id)).map(({ type }) => type),
    ['queued', 'sent', 'deferred'],
  )
  t.same(await start(id), [], 'there is no further attempt')
  await record(id, [receipt('sent', 3), receipt('delivered', 4)])
  t.match(await messageOf(sql, id), { status: 'delivered', sentAt: attemptStartedAt })
  await record(id, [receipt('sent', 5)])
  t.match(await messageOf(sql, id), { status: 'delivered' })
  t.equal(await backlogOf(sql, organisation), before - 1)
})

t.test('record_receipts: `sent` before the end of its attempt names the provider', async (t) => {
  const before = await backlogOf(sql, organisation)
  const id = aMessage()
  await start(id)
  await record(id, [receipt('sent', 1)])
  t.match(await messageOf(sql, id), { status: 'sent', provider: null })
  await finish(id)
  t.match(await messageOf(sql, id), {
    status: 'sent',
    provider: 'stand-in',
    attemptStartedAt: null,
  })
  t.equal(await backlogOf(sql, organisation), before - 1)
})

t.test('record_receipts: `sent` without an attempt or after a refusal is ignored', async (t) => {
  const waiting = aMessage()
  await record(waiting, [receipt('sent', 1)])
  t.match(await messageOf(sql, waiting), { status: 'queued', sentAt: null })

  for (const [outcome, status] of [
    ['deferred', 'queued'],
    ['failed', 'failed'],
  ] as const) {
    const id = aMessage()
    await start(id)
    await finish(id, outcome)
    const before = await messageOf(sql, id)
    await record(id, [receipt('sent', 1)])
    t.same(await messageOf(sql, id), before)
    t.equal(before.status, status)
  }
})

t.test('record_receipts: `sent` for one copy does not settle the others', async (t) => {
  const to = ['one@example.com', 'two@example.com']
  const [id = ''] = await sendBatch(base, organisation, [{ to, class: 'marketing' }])
  await start(id)
  await record(id, [receipt('sent', 1)])
  t.match(await messageOf(sql, id), { status: 'queued', sentAt: null })
})

const suppressionOf = async (email: string) => {
  const [row] = await sql<{ reason: string; note: string; messageId: string }[]>`
    select reason, note, message_id from app.suppressions where email = ${email}`
  return row && { ...row }
}

t.test('record_receipts: opted_out is in the timeline and blocks marketing only', async (t) => {
  const id = aMessage()
  const [recipient = ''] = RECIPIENTS
  await start(id)
  await finish(id)
  await record(id, [receipt('opted_out', 1, { text: 'one click' })])
  t.match(await messageOf(sql, id), { status: 'sent', errorCode: null })
  t.match(await timelineOf(sql, id), [
    { type: 'queued' },
    { type: 'sent' },
    { type: 'opted_out', detail: { recipient, text: 'one click' } },
  ])
  const { id: messageId } = await messageOf(sql, id)
  const entry = { reason: 'unsubscribe', note: 'one click', messageId }
  t.same(await suppressionOf(recipient), entry)
  t.same(await sql`select from app.hard_bounces where email = ${recipient}`, [])
  await record(id, [receipt('opted_out', 2, { text: 'once more' })])
  t.same(await suppressionOf(recipient), entry, 'a second one changes nothing')
})

t.test('record_receipts: opted_out never replaces a stronger suppression', async (t) => {
  const [recipient = ''] = RECIPIENTS
  const strong = [
    receipt('complained', 1, { text: 'spam' }),
    receipt('bounced', 1, { text: 'gone', is_hard: true }),
  ]
  for (const one of strong) {
    const reason = one.type === 'complained' ? 'complaint' : 'hard_bounce'
    for (const receipts of [
      [[one], [receipt('opted_out', 2)]],
      [[receipt('opted_out', 2)], [one]],
      [[receipt('opted_out', 2), one]],
    ]) {
      const id = aMessage()
      await start(id)
      await finish(id)
      for (const together of receipts) await record(id, together)
      t.match(await suppressionOf(recipient), { reason, note: one.text })
    }
  }
  await forgetSuppressions()
  await sql`
    select api.add_suppression(core.decode_id('org', ${organisation.id}), 'live', '', ${recipient}, 'manual', 'ours')`
  const id = aMessage()
  await record(id, [receipt('opted_out', 2)])
  t.match(await suppressionOf(recipient), { reason: 'manual', note: 'ours' })
})

t.test('record_receipts: a message that ended before its attempt stays ended', async (t) => {
  const id = aMessage()
  await start(id)
  await finish(id, 'failed')
  const before = await messageOf(sql, id)
  await record(id, [receipt('delivered', 1)])
  t.same(await messageOf(sql, id), before)
})

t.test('record_receipts: concurrent calls for many messages do not deadlock', async (t) => {
  const ids = Array.from({ length: 60 }, () => aMessage(3))
  const uuids = await Promise.all(ids.map(uuidOf))
  await forgetSuppressions()
  await call('start_emails', { ids: uuids })
  const batches = Array.from({ length: 12 }, (_, caller) => {
    const receipts = uuids.map((message_id, place) => ({
      message_id,
      ...receipt('bounced', caller, {
        provider_event_id: `${caller % 6}`,
        recipient: RECIPIENTS[(place + caller) % 3] as string,
        is_hard: true,
      }),
    }))
    return caller % 2 ? receipts : receipts.toReversed()
  })
  const stored = await Promise.all(
    batches.map((receipts) => call('finish_poll', { receipts: anyJson(receipts) })),
  )
  t.equal(stored.flat().length, 6 * ids.length)
  for (const id of ids) t.match(await messageOf(sql, id), { status: 'bounced' })
})
