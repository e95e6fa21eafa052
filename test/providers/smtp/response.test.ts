import t from 'tap'
import { freePort } from '../../fixtures/network.ts'
import { emailTo } from '../../fixtures/providers.ts'
import {
  noSmtpServer,
  type Script,
  type Step,
  smtpTo,
  startScriptedRelay,
  startSmtpServer,
} from '../../fixtures/smtp.ts'
import { timeLimitOf, until } from '../../fixtures/time.ts'

const ann = 'ann@there.example'
const bob = 'bob@there.example'
const cat = 'cat@there.example'

const NO_CONNECTION = /^There is no connection to the relay \(E[A-Z]+\)\.$/
const NO_WORD = 'The relay did not confirm the message.'
const TOO_LONG = 'The relay took too long.'

type Refusal = [
  what: string,
  script: Script,
  outcome: string,
  about: string,
  code: string,
  text: string,
]
const refusals: Refusal[] = [
  [
    'the service',
    { connection: '554 5.3.2 Closed' },
    'deferred',
    'provider',
    '554 5.3.2',
    'Closed',
  ],
  [
    'a client too many',
    { connection: '421 4.3.2 Busy' },
    'deferred',
    'provider',
    '421 4.3.2',
    'Busy',
  ],
  ['a greeting', { EHLO: '421 Busy' }, 'deferred', 'provider', '421', 'Busy'],
  ['the sender', { MAIL: '550 5.7.1 No' }, 'failed', 'message', '550 5.7.1', 'No'],
  ['the sender for now', { MAIL: '451 4.7.1 Wait' }, 'deferred', 'message', '451 4.7.1', 'Wait'],
  ['a missing login', { MAIL: '530 5.7.0 Log in' }, 'deferred', 'provider', '530 5.7.0', 'Log in'],
  ['an open login', { MAIL: '538 5.7.11 TLS' }, 'deferred', 'provider', '538 5.7.11', 'TLS'],
  ['a bad sequence', { MAIL: '503 5.5.1 What' }, 'deferred', 'provider', '503 5.5.1', 'What'],
  ['every recipient', { RCPT: '550 No' }, 'failed', 'message', '550', 'No'],
  [
    'every recipient for now',
    { RCPT: '450 4.2.1 Wait' },
    'deferred',
    'message',
    '450 4.2.1',
    'Wait',
  ],
  [
    'every recipient, as it is full',
    { RCPT: '452 4.2.2 Full' },
    'deferred',
    'message',
    '452 4.2.2',
    'Full',
  ],
  [
    'every recipient, as it is busy',
    { RCPT: '421 4.3.2 Busy' },
    'deferred',
    'provider',
    '421 4.3.2',
    'Busy',
  ],
  ['the sender, as it is full', { MAIL: '452 Full' }, 'deferred', 'provider', '452', 'Full'],
  [
    'DATA for this recipient',
    { DATA: '450 4.2.1 Wait' },
    'deferred',
    'message',
    '450 4.2.1',
    'Wait',
  ],
  ['DATA', { DATA: '554 5.6.0 No' }, 'failed', 'message', '554 5.6.0', 'No'],
  ['DATA for now', { DATA: '452 4.3.1 Full' }, 'deferred', 'provider', '452 4.3.1', 'Full'],
  ['the content', { '.': '554 5.7.1 Spam' }, 'failed', 'message', '554 5.7.1', 'Spam'],
  ['the content for now', { '.': '451 4.3.0 Later' }, 'deferred', 'provider', '451 4.3.0', 'Later'],
  [
    'half of the content',
    { content: '552 5.3.4 Large' },
    'failed',
    'message',
    '552 5.3.4',
    'Large',
  ],
  ['more, and hangs up', { '.': '421 4.3.2 Bye' }, 'deferred', 'provider', '421 4.3.2', 'Bye'],
  [
    'in no SMTP',
    { connection: 'HTTP/1.1 400' },
    'deferred',
    'provider',
    'EPROTOCOL',
    'HTTP/1.1 400',
  ],
]

for (const [what, script, outcome, about, code, text] of refusals) {
  t.test(`smtp: an email is ${outcome} when the relay refuses ${what}`, async (t) => {
    const relay = await startScriptedRelay(t, script)
    const smtp = smtpTo(relay.address)
    t.strictSame(await smtp.send(emailTo(ann, { to: [ann, bob] })), { outcome, about, code, text })
    await smtp.close()
  })
}

t.test('smtp: a real server refuses with the same outcomes', { skip: noSmtpServer }, async (t) => {
  for (const settings of [[], ['pipelining_advertise_hosts =']]) {
    const server = await startSmtpServer(t, { settings })
    const smtp = smtpTo(server.address)
    const answering = (answer: string) =>
      smtp.send(emailTo(ann, { headers: { 'X-Answer': answer } }))
    t.strictSame(await smtp.send(emailTo(ann, { mailFromDomain: 'refused' })), {
      outcome: 'failed',
      about: 'message',
      code: '550 5.7.1',
      text: 'Not from there',
    })
    t.strictSame(await answering('554 5.7.1 This is spam'), {
      outcome: 'failed',
      about: 'message',
      code: '554 5.7.1',
      text: 'This is spam',
    })
    t.strictSame(await answering('451 4.3.0 Try later'), {
      outcome: 'deferred',
      about: 'provider',
      code: '451 4.3.0',
      text: 'Try later',
    })
    t.same(await server.mails(), [])
    await smtp.close()
  }
})

/** Before its content is sent the relay cannot have the message; afterwards it may have it. */
const places: [step: Step, outcome: string][] = [
  ['connection', 'deferred'],
  ['EHLO', 'deferred'],
  ['MAIL', 'deferred'],
  ['RCPT', 'deferred'],
  ['DATA', 'deferred'],
  ['content', 'ambiguous'],
  ['.', 'ambiguous'],
]

for (const [step, outcome] of places) {
  t.test(`smtp: an email is ${outcome} when the connection is cut at ${step}`, async (t) => {
    const relay = await startScriptedRelay(t, { [step]: 'cut' })
    const smtp = smtpTo(relay.address)
    const text = outcome === 'ambiguous' ? NO_WORD : NO_CONNECTION
    const answer = await smtp.send(emailTo(ann))
    const about = outcome === 'ambiguous' ? 'provider' : 'connection'
    t.match(answer, { outcome, about, text, code: /^E[A-Z]+$/ })
    t.equal(relay.steps.filter((one) => one === 'content').length, outcome === 'ambiguous' ? 1 : 0)
    await smtp.close()
  })
}

t.test('smtp: a relay that stops responding ends the attempt at any step', async (t) => {
  const limits = timeLimitOf(t)
  for (const [step, outcome] of places) {
    const silent: Script = step === 'content' ? { '.': 'silence' } : { [step]: 'silence' }
    const relay = await startScriptedRelay(t, silent)
    const smtp = smtpTo(relay.address)
    const sending = smtp.send(emailTo(ann))
    await until('the relay to fall silent', async () => relay.steps.includes(step))
    limits.shift()?.end()
    const text = outcome === 'ambiguous' ? NO_WORD : TOO_LONG
    t.strictSame(await sending, { outcome, about: 'provider', code: 'EABORT', text }, step)
    await smtp.close()
  }
})

t.test('smtp: an attempt ends at the time limit', async (t) => {
  const relay = await startScriptedRelay(t, { connection: 'silence' })
  const smtp = smtpTo(relay.address, { timeoutMs: 50 })
  const answer = { outcome: 'deferred', about: 'provider', code: 'EABORT', text: TOO_LONG }
  t.strictSame(await smtp.send(emailTo(ann)), answer)
  await smtp.close()
})

t.test('smtp: a malformed final reply is ambiguous', async (t) => {
  const relay = await startScriptedRelay(t, { '.': 'What?' })
  const smtp = smtpTo(relay.address)
  t.match(await smtp.send(emailTo(ann)), { outcome: 'ambiguous', text: NO_WORD })
  await smtp.close()
})

t.test('smtp: an email whose wait for a connection timed out is never sent', async (t) => {
  const limits = timeLimitOf(t)
  const relay = await startScriptedRelay(t, { '.': ['silence', '250 Taken'] })
  const smtp = smtpTo(relay.address, { parameters: '&maxConnections=1' })
  const sending = smtp.send(emailTo(ann))
  await until('the relay to fall silent', async () => relay.steps.includes('.'))
  const waiting = smtp.send(emailTo(bob))
  const [ofAnn, ofBob] = limits
  ofBob?.end()
  t.match(await waiting, { outcome: 'deferred', text: TOO_LONG })
  ofAnn?.end()
  t.match(await sending, { outcome: 'ambiguous' })

  t.strictSame(await smtp.send(emailTo(cat)), { outcome: 'sent' })
  const recipients = relay.commands.filter((command) => command.startsWith('RCPT'))
  t.strictSame(recipients, [`RCPT TO:<${ann}>`, `RCPT TO:<${cat}>`])
  await smtp.close()
})

t.test('close(): ends attempts at once with their outcomes', async (t) => {
  for (const [step, outcome] of [
    ['DATA', 'deferred'],
    ['.', 'ambiguous'],
  ] as const) {
    const relay = await startScriptedRelay(t, { [step]: 'silence' })
    const smtp = smtpTo(relay.address, { parameters: '&maxConnections=1' })
    const sending = [smtp.send(emailTo(ann)), smtp.send(emailTo(bob))]
    await until('the relay to fall silent', async () => relay.steps.includes(step))
    await smtp.close()
    // Not ended by the time limit, which would be EABORT.
    t.match(await Promise.all(sending), [
      { outcome, code: 'ECONNECTION' },
      { outcome: 'deferred', code: 'ECONNECTION' },
    ])
  }
})

t.test('smtp: a connection that the relay closed is opened again', async (t) => {
  const relay = await startScriptedRelay(t, {})
  const smtp = smtpTo(relay.address)
  t.strictSame(await smtp.send(emailTo(ann)), { outcome: 'sent' })
  relay.hangUp()
  t.strictSame(await smtp.send(emailTo(ann)), { outcome: 'sent' })
  t.equal(relay.steps.filter((step) => step === '.').length, 2)
  await smtp.close()
})

t.test('smtp: an unreachable relay defers the email', async (t) => {
  const smtp = smtpTo(`127.0.0.1:${await freePort()}`)
  t.strictSame(await smtp.send(emailTo(ann)), {
    outcome: 'deferred',
    about: 'connection',
    code: 'ECONNREFUSED',
    text: 'There is no connection to the relay (ECONNREFUSED).',
  })
  await smtp.close()

  const nowhere = smtpTo('relay.invalid', { timeoutMs: 10_000 })
  t.match(await nowhere.send(emailTo(ann)), { outcome: 'deferred', code: String, text: String })
  await nowhere.close()
})

t.test("smtp: the relay's text is stored without control characters and bounded", async (t) => {
  const long = 'Grüße '.repeat(500)
  for (const [reply, code, text] of [
    [
      '550-5.1.1 No such\r\n550-5.1.1 mailbox\r\n550 5.1.1  here',
      '550 5.1.1',
      'No such mailbox here',
    ],
    ['550 No such mailbox', '550', 'No such mailbox'],
    ['550', '550', 'The relay gives no reason.'],
    ['550 5.1.1', '550 5.1.1', 'The relay gives no reason.'],
    ['550 5.1.1\tTabs\0and\x07bells', '550 5.1.1', 'Tabs and bells'],
    ['550 5.1.10 See 5.1.1', '550 5.1.10', 'See 5.1.1'],
    [`550 ${long}`, '550', long.slice(0, 1000)],
  ] as const) {
    const relay = await startScriptedRelay(t, { RCPT: reply })
    const smtp = smtpTo(relay.address)
    t.strictSame(await smtp.send(emailTo(ann)), { outcome: 'failed', about: 'message', code, text })
    await smtp.close()
  }
})
