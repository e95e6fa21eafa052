import fc from 'fast-check'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { createLives, messageOf, sendBatch, sendSms } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { createEndpoint, eventsOf, inShort } from '../fixtures/webhooks.ts'

// Only the API runs: the test acts as the worker and the provider.
const database = await createDatabase()
const { url, sql } = database
const { base } = await startTestService(url, { roles: ['api'] })
const { start, finish, record } = createLives(database)

const organisation = await createOrganisation(sql)
await createEndpoint(sql, organisation)
// More complaints than these pause an organisation: none of today counts.
await sql`update app.organisations set complaints_since = now() + interval '1 day'`

const RECIPIENTS = ['a@c.example', 'b@c.example']
const stock = await sendBatch(
  base,
  organisation,
  Array.from({ length: 500 }, () => ({ to: RECIPIENTS })),
)

/** Returns an email to both recipients whose attempt has started. */
async function begun(): Promise<string> {
  const id = stock.pop()
  if (!id) throw new Error('the stock of messages is used up')
  // Bounces of one case must not block the next.
  await sql`delete from app.suppressions`
  await sql`delete from app.hard_bounces`
  await start(id)
  return id
}

const RANK = ['sent', 'delivered', 'expired', 'failed', 'bounced', 'complained']

const aReceipt = fc.record({
  type: fc.constantFrom('sent', 'delivered', 'bounced', 'complained', 'deferred', 'failed'),
  recipient: fc.constantFrom(...RECIPIENTS),
  is_hard: fc.boolean(),
  provider_event_id: fc.constantFrom('1', '2', '3', '4', '5', '6', '7', '8'),
})
/** Receipts by call, and before which calls the result of the attempt is recorded. */
const aLife = fc.record({
  calls: fc.array(fc.array(aReceipt, { minLength: 1, maxLength: 3 }), { maxLength: 5 }),
  finishBefore: fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 2 }),
})

t.test('emit_events: any order of receipts gives each event once and in order', async (t) => {
  const asserted = fc.assert(
    fc.asyncProperty(aLife, async ({ calls, finishBefore }) => {
      const id = await begun()
      for (const [place, receipts] of [...calls, []].entries()) {
        if (finishBefore.includes(place)) await finish(id, 'sent')
        if (receipts.length > 0) await record(id, ...receipts)
      }
      await finish(id, 'sent')
      const message = await messageOf(sql, id)
      const events = await eventsOf(sql, organisation, id)
      const told = inShort(events)
      const fail = (why: string) => {
        throw new Error(`${why}: ${told.join(', ')}`)
      }
      if (told[0] !== 'email.sent sent') fail('sent is not first')
      for (const type of ['email.sent', 'email.delivered', 'email.complained']) {
        if (events.filter((event) => event.type === type).length > 1) fail(`more than one ${type}`)
      }
      const ranks = events.map(({ data }) => RANK.indexOf(data.status))
      if (ranks.some((rank, place) => rank < (ranks[place - 1] ?? 0))) fail('went back')
      if (events.at(-1)?.data.status !== message.status) fail(`is ${message.status}`)
      const codes = events.map(({ data }) => data.error?.code ?? null)
      if (!codes.includes(message.errorCode)) fail(`has ${message.errorCode}`)
      if (
        (message.status === 'complained') !==
        events.some(({ type }) => type === 'email.complained')
      )
        fail('complaint')
    }),
    { numRuns: 150 },
  )
  await t.resolves(asserted)
})

t.test(
  'emit_events: receipts during the recording of a result add no second sent event',
  async (t) => {
    const ids = await Promise.all(Array.from({ length: 40 }, begun))
    await Promise.all(
      ids.flatMap((id) => [
        finish(id, 'sent'),
        ...RECIPIENTS.map((recipient) => record(id, { type: 'delivered', recipient })),
        finish(id, 'sent'),
      ]),
    )
    for (const id of ids) {
      t.strictSame(inShort(await eventsOf(sql, organisation, id)), [
        'email.sent sent',
        'email.delivered delivered',
      ])
    }
  },
)

t.test('emit_events: a change that waited for another one is later', async (t) => {
  const id = await begun()
  const { id: uuid } = await messageOf(sql, id)
  const receipts = RECIPIENTS.map((recipient) => ({
    ...{ message_id: uuid, type: 'delivered', recipient, provider_event_id: recipient },
    occurred_at: new Date(0).toISOString(),
  }))
  await sql.begin(async (tx) => {
    // This transaction's time is before that of the attempt's result.
    await tx`select now()`
    await finish(id, 'sent')
    await tx`select core.record_receipts(${JSON.stringify(receipts)}::text::jsonb)`
  })
  const [sent, delivered] = await eventsOf(sql, organisation, id)
  t.match([sent, delivered], [{ type: 'email.sent' }, { type: 'email.delivered' }])
  t.ok((delivered?.occurredAt ?? '') > (sent?.occurredAt ?? ''))
})

t.test('emit_events: a status within milliseconds of an opt-out is later', async (t) => {
  const id = await sendSms(base, organisation)
  await start(id)
  await finish(id, 'sent')
  const { id: uuid } = await messageOf(sql, id)
  // The same as two transactions, one right after the other.
  await sql`
    select core.emit_events(array[(m.id, m.organisation_id, c.change)::core.message_change])
    from app.messages m, unnest('{opted_out,delivered}'::app.event_type[]) c (change)
    where m.id = ${uuid}`
  // The sent event is not compared: the test leaves only milliseconds between it and the opt-out.
  const listed = inShort(await eventsOf(sql, organisation, id)).filter(
    (one) => one !== 'sms.sent sent',
  )
  t.strictSame(listed, ['sms.opted_out sent', 'sms.delivered delivered'])
})
