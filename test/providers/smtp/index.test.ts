import t from 'tap'
import { createSecrets } from '../../../src/crypto/secrets.ts'
import type { OutgoingEmail } from '../../../src/providers/email.ts'
import { messageIdOf } from '../../../src/providers/message-id.ts'
import { createSmtp } from '../../../src/providers/smtp/index.ts'
import { emailTo, testProvider } from '../../fixtures/providers.ts'
import {
  headerOf,
  noMailReader,
  noSmtpServer,
  readMails,
  type SmtpServer,
  secrets,
  smtpTo,
  startScriptedRelay,
  startSmtpServer,
} from '../../fixtures/smtp.ts'

const [ann, bob, carol] = ['ann@there.example', 'bob@there.example', 'carol@there.example']
const refused = 'refused@there.example'
const later = 'later@there.example'

/** Returns the recipients of each transaction by which an email arrived. */
async function arrivals(server: SmtpServer, email: OutgoingEmail): Promise<string[][]> {
  const mails = (await server.mails()).map((raw) => raw.toString())
  return mails
    .filter((mail) => mail.includes(`Message-ID: <${messageIdOf(email)}>`))
    .map((mail) => /^Envelope-to: ((?:.|\n )*)$/m.exec(mail)?.[1]?.split(/,\s*/).sort() ?? [])
    .sort()
}

if (noSmtpServer) {
  t.test('smtp provider (all email providers)', { skip: noSmtpServer }, () => undefined)
} else {
  const server = await startSmtpServer(t)
  testProvider('smtp', async () => ({
    provider: smtpTo(server.address),
    recipients: {
      accepted: ann,
      refused,
      refusedTemporarily: later,
      refusedByAll: 'busy@there.example',
    },
    disconnected: () => smtpTo('127.0.0.1:1'),
    attemptsOf: async (email) => (await arrivals(server, email)).length,
    can: { lookUp: false, keepKeys: false, tellUnknownDomains: false },
    publish: async () => undefined,
  }))
}

for (const [kind, settings] of [
  ['all commands at once', []],
  ['one command at a time', ['pipelining_advertise_hosts =']],
] as const) {
  t.test(`smtp: refuses single recipients: ${kind}`, { skip: noSmtpServer }, async (t) => {
    const server = await startSmtpServer(t, { settings: [...settings] })
    const smtp = smtpTo(server.address)
    const email = emailTo(ann, { to: [ann, refused], cc: [bob], bcc: [later] })
    t.strictSame(await smtp.send(email), {
      outcome: 'sent',
      refused: [
        { recipient: refused, code: '550 5.1.1', text: 'No such mailbox' },
        { recipient: later, code: '451 4.2.0', text: 'Not now' },
      ],
    })
    t.same(await arrivals(server, email), [[ann, bob]])

    const toNobody = emailTo(refused, { to: [refused, `${refused}.za`] })
    t.match(await smtp.send(toNobody), { outcome: 'failed', code: '550 5.1.1' })
    const toNobodyNow = emailTo(later, { to: [later, refused] })
    t.match(await smtp.send(toNobodyNow), { outcome: 'deferred', code: '451 4.2.0' })
    const next = emailTo(ann)
    t.strictSame(await smtp.send(next), { outcome: 'sent' }, 'the connection is good for more')
    t.same(await arrivals(server, toNobody), [])
    t.same(await arrivals(server, next), [[ann]])
    await smtp.close()
  })
}

t.test(
  "smtp: recipients beyond the relay's limit follow later",
  { skip: noSmtpServer },
  async (t) => {
    const server = await startSmtpServer(t, { settings: ['recipients_max = 2'] })
    const smtp = smtpTo(server.address)
    const email = emailTo(ann, {
      to: [ann, bob],
      cc: [refused, carol],
      bcc: ['dave@there.example'],
    })
    t.match(await smtp.send(email), { outcome: 'sent', refused: [{ recipient: refused }] })
    t.same((await arrivals(server, email)).flat().sort(), [ann, bob, carol, 'dave@there.example'])
    await smtp.close()
  },
)

t.test('smtp: recipients refused in a further transaction are named', async (t) => {
  const noWord = 'The relay did not confirm the message.'
  for (const [second, refusal] of [
    ['451 4.3.0 Full', { recipient: bob, code: '451 4.3.0', text: 'Full' }],
    ['554 5.3.0 Done', { recipient: bob, code: '554 5.3.0', text: 'Done' }],
    ['cut', { recipient: bob, code: 'ECONNRESET', text: noWord }],
  ] as const) {
    const relay = await startScriptedRelay(t, {
      RCPT: ['250 OK', '452 4.5.3 Too many', '250 OK'],
      '.': ['250 Taken', second],
    })
    const smtp = smtpTo(relay.address)
    t.strictSame(await smtp.send(emailTo(ann, { to: [ann, bob] })), {
      outcome: 'sent',
      refused: [refusal],
    })
    t.same(
      relay.commands.filter((command) => command.startsWith('RCPT')),
      [ann, bob, bob].map((address) => `RCPT TO:<${address}>`),
    )
    await smtp.close()
  }
})

t.test('smtp: a key that cannot be opened defers the email and is not revealed', async (t) => {
  const others = createSecrets([Buffer.alloc(32, 8).toString('base64')])
  const smtp = smtpTo('127.0.0.1:9')
  for (const dkimPrivateKey of [others.seal('PRIVATE'), secrets.seal('PRIVATE'), 'PRIVATE', '']) {
    const answer = await smtp.send(emailTo(ann, { dkimSelector: 's1', dkimPrivateKey }))
    t.match(answer, {
      outcome: 'deferred',
      text: /^The DKIM key of sender\.example cannot be opened/,
    })
    t.notMatch(JSON.stringify(answer), 'PRIVATE')
  }
  await smtp.close()
})

t.test("createDomain(): returns two sealed keys and records with the relay's host", async (t) => {
  const smtp = createSmtp({ url: 'smtp://Relay.Example:2525', secrets })
  const domain = {
    name: 'sender.example',
    mailFrom: 'mail.sender.example',
    selectors: ['pg1', 'pg2', 'pg3'],
  }
  const identity = await smtp.createDomain(domain)
  t.match(identity.keys, [
    { selector: 'pg1', state: 'active', value: /^v=DKIM1; k=rsa; p=/ },
    { selector: 'pg2', state: 'next', value: /^v=DKIM1; k=rsa; p=/ },
  ])
  t.same(identity.mail_from_mx, { priority: 10, host: 'relay.example' })
  t.equal(identity.mail_from_spf, 'v=spf1 a:relay.example ~all')
  const again = await smtp.createDomain(domain)
  const renewed = await smtp.rotateDkim('sender.example', {
    activate: 'pg2',
    retire: 'pg1',
    renew: 'pg3',
  })
  t.match(renewed, { selector: 'pg3', state: 'next' })
  const keys = [...identity.keys, ...again.keys, renewed]
  t.equal(new Set(keys.map(({ value }) => value)).size, 5, 'each key is different')

  t.equal(await smtp.checkDomain('sender.example'), 'active')
  t.equal(
    await smtp.checkDomain('unknown.example'),
    'active',
    'a relay has no status of domains, so DNS decides',
  )
  await smtp.deleteDomain('sender.example')
  await smtp.removeSuppression('sender.example', ann)
  t.same(
    await smtp.receiptsOf({
      id: emailTo(ann).id,
      domain: 'sender.example',
      mailFromDomain: 'mail.sender.example',
      copies: 1,
    }),
    [],
  )
  t.equal(smtp.readCallback, null)
  await smtp.close()
})

t.test(
  'rotateDkim(): a signature with the new key is valid',
  { skip: noSmtpServer || noMailReader },
  async (t) => {
    const server = await startSmtpServer(t)
    const smtp = smtpTo(server.address)
    const rotation = { activate: 'pg2', retire: 'pg1', renew: 'pg3' }
    const { selector, value, private_key } = await smtp.rotateDkim('sender.example', rotation)
    const email = emailTo(ann, { dkimSelector: selector, dkimPrivateKey: private_key })
    t.match(await smtp.send(email), { outcome: 'sent' })
    await smtp.close()
    const [mail] = await readMails(await server.mails(), {
      'pg3._domainkey.sender.example': value,
    })
    t.match(mail?.dkim, { isValid: true, selector: 'pg3', domain: 'sender.example' })
    t.equal(mail && headerOf(mail, 'return-path'), '<bounces@mail.sender.example>')
  },
)

t.test('send(): after close() an email is deferred', async (t) => {
  const smtp = smtpTo('127.0.0.1:9')
  await smtp.close()
  t.match(await smtp.send(emailTo(ann)), { outcome: 'deferred' })
})
