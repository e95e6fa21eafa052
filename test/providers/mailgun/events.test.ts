import { randomUUID } from 'node:crypto'
import t from 'tap'
import { ProviderUnavailable } from '../../../src/providers/email.ts'
import { createMailgun } from '../../../src/providers/mailgun/index.ts'
import { messageIdOf } from '../../../src/providers/message-id.ts'
import { impatient, startMailgun } from '../../fixtures/mailgun-server.ts'
import { emailTo } from '../../fixtures/provider-suite.ts'

const mailgun = await startMailgun()
const { account, messages } = mailgun
mailgun.domains.add('sender.example').state = 'active'
const provider = createMailgun(account)

const EVENTS = /^GET .*\/events/
const anEmail = (overrides = {}) => emailTo('ann@example.com', overrides)

/** What Mailgun has on record of an email. */
const report = (email: ReturnType<typeof anEmail>, event: Record<string, unknown>) =>
  messages.report({ domain: email.domain, id: messageIdOf(email) }, event)

const delivered = (recipient: string) => ({ event: 'delivered', id: randomUUID(), recipient })

t.test('an email is known once an event of it can be seen', async (t) => {
  const email = anEmail()
  messages.eventsAre = 'late'
  await provider.send(email)
  t.equal(await provider.lookup(email), false)
  messages.eventsAre = 'prompt'
  t.equal(await provider.lookup(email), true)
  t.ok(provider.lookupDelayMs >= 10_000, 'so a no is not believed at once')
})

t.test('events of other emails prove nothing', async (t) => {
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

t.test('when Mailgun cannot be asked, nothing is known', async (t) => {
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
  const impatiently = impatient(t, mailgun)
  for (const ask of [
    () => provider.lookup(email),
    () => provider.receiptsOf({ ...email, copies: 1 }),
  ]) {
    for (const answer of answers) {
      mailgun.expectTrouble(EVENTS, { isCarriedOut: true, answer })
      const error = await impatiently<unknown>(ask).catch((error) => error)
      t.type(error, ProviderUnavailable, JSON.stringify(answer))
    }
  }
})

t.test('what became of an email is read from all of its events', async (t) => {
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

t.test('each copy of an email is asked for', async (t) => {
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

t.test('pages without end are not followed for ever', async (t) => {
  const email = anEmail()
  for (const place of Array(300 * 12).keys()) report(email, delivered(`to${place}@example.com`))
  const before = mailgun.requests.length
  await provider.receiptsOf({ ...email, copies: 1 })
  t.equal(mailgun.requests.length - before, 10)
})

t.test('nothing of this is said on the console', async (t) => {
  const said: unknown[][] = []
  t.capture(console, 'warn', (...words: unknown[]) => void said.push(words))
  t.capture(console, 'log', (...words: unknown[]) => void said.push(words))
  const email = anEmail()
  await provider.send(email)
  await provider.lookup(email)
  await provider.receiptsOf({ ...email, copies: 1 })
  t.same(said, [])
})
