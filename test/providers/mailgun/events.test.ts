import { randomUUID } from 'node:crypto'
import t from 'tap'
import { ProviderUnavailable } from '../../../src/providers/email.ts'
import { createMailgun } from '../../../src/providers/mailgun/index.ts'
import { messageIdOf } from '../../../src/providers/message-id.ts'
import { endTimeLimits, startMailgun } from '../../fixtures/mailgun.ts'
import { emailTo } from '../../fixtures/providers.ts'

const mailgun = await startMailgun()
const { account, messages } = mailgun
mailgun.domains.add('sender.example').state = 'active'
const provider = createMailgun(account)

const EVENTS = /^GET .*\/events/
const anEmail = (overrides = {}) => emailTo('ann@example.com', overrides)

/** Mailgun's events of an email. */
const report = (email: ReturnType<typeof anEmail>, event: Record<string, unknown>) =>
  messages.report({ domain: email.domain, id: messageIdOf(email) }, event)

const delivered = (recipient: string) => ({ event: 'delivered', id: randomUUID(), recipient })

t.test('lookup(): true once Mailgun lists an event of the email', async (t) => {
  const email = anEmail()
  messages.eventsAre = 'late'
  await provider.send(email)
  t.equal(await provider.lookup(email), false)
  messages.eventsAre = 'prompt'
  t.equal(await provider.lookup(email), true)
  t.ok(provider.lookupDelayMs >= 10_000, 'an event may be listed late')
})

t.test('lookup(): events of other emails do not count', async (t) => {
  await provider.send(anEmail())
  const email = anEmail()
  const other = {
    event: 'accepted',
    message: { headers: { 'message-id': 'other@sender.example' } },
  }
  const strange = [other, null, 'x', {}, { message: null }, { message: { headers: [] } }]
  const body = { items: strange, paging: {} }
  mailgun.expectTrouble(EVENTS, { isCarriedOut: false, answer: { status: 200, body } })
  t.equal(await provider.lookup(email), false)
})

t.test('lookup(): throws ProviderUnavailable if Mailgun does not respond', async (t) => {
  const email = anEmail()
  await provider.send(email)
  const answers = [
    { status: 500, body: { message: 'Internal Server Error' } },
    { status: 429, body: 'Too Many Requests' },
    { status: 401, body: 'Forbidden' },
    { status: 200, body: 'a page' },
    { status: 200, body: {} },
    { status: 200, body: { items: null } },
    'reset' as const,
    'half, then reset' as const,
    'half' as const,
    'nothing' as const,
  ]
  const untilTimeout = endTimeLimits(t, mailgun)
  for (const ask of [
    () => provider.lookup(email),
    () => provider.receiptsOf({ ...email, copies: 1 }),
  ]) {
    for (const answer of answers) {
      mailgun.expectTrouble(EVENTS, { isCarriedOut: true, answer })
      const error = await untilTimeout<unknown>(ask).catch((error) => error)
      t.type(error, ProviderUnavailable, JSON.stringify(answer))
    }
  }
})

t.test('receiptsOf(): reads all pages of events', async (t) => {
  const email = anEmail()
  await provider.send(email)
  for (const place of Array(700).keys()) report(email, delivered(`to${place}@example.com`))
  report(email, { event: 'opened', recipient: 'ann@example.com' })
  const receipts = await provider.receiptsOf({ ...email, copies: 1 })
  const recipients = receipts.filter(({ type }) => type === 'delivered').map((one) => one.recipient)
  t.equal(new Set(recipients).size, 700)
  t.match(
    receipts.find(({ type }) => type === 'delivered'),
    { message_id: email.id, provider_event_id: String, occurred_at: /^\d{4}-\d\d-\d\dT.*Z$/ },
  )
})

t.test('receiptsOf(): asks for each copy of an email', async (t) => {
  const email = anEmail()
  for (const copy of [1, 2, 3, 4]) {
    report({ ...email, copy }, delivered(`copy${copy}@example.com`))
  }
  report(email, delivered('whole@example.com'))
  const of = async (copies: number) =>
    (await provider.receiptsOf({ ...email, copies })).map(({ recipient }) => recipient)
  t.same(await of(3), ['copy1@example.com', 'copy2@example.com', 'copy3@example.com'])
  t.same(await of(1), ['whole@example.com'])
})

t.test('receiptsOf(): reads at most 10 pages', async (t) => {
  const email = anEmail()
  for (const place of Array(300 * 12).keys()) report(email, delivered(`to${place}@example.com`))
  const before = mailgun.requests.length
  await provider.receiptsOf({ ...email, copies: 1 })
  t.equal(mailgun.requests.length - before, 10)
})

t.test('mailgun: mailgun.js writes nothing to the console', async (t) => {
  const said: unknown[][] = []
  t.capture(console, 'warn', (...words: unknown[]) => void said.push(words))
  t.capture(console, 'log', (...words: unknown[]) => void said.push(words))
  const email = anEmail()
  await provider.send(email)
  await provider.lookup(email)
  await provider.receiptsOf({ ...email, copies: 1 })
  t.same(said, [])
})
