import assert from 'node:assert/strict'
import fc from 'fast-check'
import addressparser from 'nodemailer/lib/addressparser'
import MailComposer from 'nodemailer/lib/mail-composer'
import t, { type Test } from 'tap'
import { makeDkimKey } from '../../../src/providers/dkim-keys.ts'
import type { OutgoingEmail } from '../../../src/providers/email.ts'
import { messageIdOf } from '../../../src/providers/message-id.ts'
import { messageOf } from '../../../src/providers/smtp/message.ts'
import { formatAddress, parseAddress } from '../../../src/schemas/address.ts'
import { emailTo } from '../../fixtures/providers.ts'
import {
  headerOf,
  type Mail,
  noMailReader,
  noSmtpServer,
  readMails,
  secrets,
  smtpTo,
  startSmtpServer,
} from '../../fixtures/smtp.ts'

const skip = noSmtpServer || noMailReader

const key = await makeDkimKey(secrets, 'pg1', 'active')
const txt = { 'pg1._domainkey.sender.example': key.value }

/** An email that is signed, unless the overrides say otherwise. */
function signedEmail(overrides: Partial<OutgoingEmail> = {}): OutgoingEmail {
  const signature = { dkimSelector: key.selector, dkimPrivateKey: key.private_key }
  return emailTo('ann@there.example', { ...signature, ...overrides })
}

/** Sends emails through a real server and reads them back, in the same order. */
async function received(t: Test, emails: OutgoingEmail[]): Promise<Mail[]> {
  const server = await startSmtpServer(t)
  const smtp = smtpTo(server.address)
  for (const email of emails) t.strictSame(await smtp.send(email), { outcome: 'sent' })
  await smtp.close()
  const mails = await readMails(await server.mails(), txt)
  return emails.map((email) => {
    const id = `<${messageIdOf(email)}>`
    const mail = mails.find((one) => headerOf(one, 'message-id') === id)
    if (!mail) throw new Error(`${id} did not arrive`)
    t.same(mail.defects, [])
    const tooLong = mail.raw
      .toString('latin1')
      .split('\n')
      .filter((line) => line.length > 998)
    t.same(tooLong, [], 'every line is within RFC 5322 2.1.1')
    return mail
  })
}

async function receivedOne(t: Test, email: OutgoingEmail): Promise<Mail> {
  const [mail] = await received(t, [email])
  return mail as Mail
}

t.test('smtp: headers match the email and hide bcc', { skip }, async (t) => {
  const email = signedEmail({
    sender: '"Zoë, of Acme" <hello@sender.example>',
    to: ['"O\'Brien; Ann" <ann@there.example>', 'bob@there.example'],
    cc: ['日本 太郎 <carol@there.example>'],
    bcc: ['Hidden <dave@there.example>'],
    recipients: ['ann', 'bob', 'carol', 'dave'].map((name) => `${name}@there.example`),
    replyTo: 'Replies <replies@elsewhere.example>',
    subject: 'Ünïcode – “quoted” 🎉',
    headers: { 'X-Order_no': '7 grüne', 'List-Id': 'News <news.sender.example>' },
    tags: ['secret-tag'],
  })
  const mail = await receivedOne(t, email)
  t.equal(headerOf(mail, 'return-path'), '<bounces@mail.sender.example>')
  t.same(headerOf(mail, 'envelope-to')?.split(', ').sort(), email.recipients)
  t.equal(headerOf(mail, 'from'), '"Zoë, of Acme" <hello@sender.example>')
  t.equal(headerOf(mail, 'to'), '"O\'Brien; Ann" <ann@there.example>, bob@there.example')
  t.equal(headerOf(mail, 'cc'), '日本 太郎 <carol@there.example>')
  t.equal(headerOf(mail, 'reply-to'), 'Replies <replies@elsewhere.example>')
  t.equal(headerOf(mail, 'subject'), email.subject)
  t.equal(headerOf(mail, 'x-order_no'), '7 grüne')
  t.equal(headerOf(mail, 'list-id'), 'News <news.sender.example>')
  t.equal(headerOf(mail, 'mime-version'), '1.0')
  t.ok(Math.abs(Date.parse(headerOf(mail, 'date') ?? '') - Date.now()) < 60_000)
  t.equal(headerOf(mail, 'bcc'), undefined)
  const [, afterEnvelope = ''] = mail.raw.toString().split(/^Received:/m)
  t.notMatch(afterEnvelope, /dave|Hidden|secret-tag|nodemailer/i)
})

t.test('smtp: bodies arrive unchanged', { skip }, async (t) => {
  const bodies = {
    plain: 'Hello.\r\nBye.\r\n',
    dots: '.\n..\n.hidden\n\n.\nFrom me\n',
    blanks: '  lead and trail  \n\t\n   \n',
    unicode: 'Grüße – 日本語 🎉 \u2028 \u00a0 e\u0301\n'.repeat(50),
    long: `${'x'.repeat(5000)} ${'日'.repeat(3000)}\n`,
    longAscii: `${'y '.repeat(4000)}\n${'z'.repeat(999)}`,
    equals: '=3D =?utf-8?Q?x?= =\n--boundary\n------=_Part\n',
    controls: 'bell \x07 escape \x1b[31m tab \t\n',
  }
  for (const [type, part] of [
    ['text/plain', 'text'],
    ['text/html', 'html'],
  ] as const) {
    const emails = Object.values(bodies).map((body) => signedEmail({ text: null, [part]: body }))
    const mails = await received(t, emails)
    for (const [place, [name, body]] of Object.entries(bodies).entries()) {
      const mail = mails[place]
      t.same(
        mail?.parts.map((part) => [part.type, lines(part.text)]),
        [[type, lines(body)]],
        `${name} as ${type}`,
      )
      t.ok(mail?.dkim?.isValid, `${name} as ${type} is signed`)
    }
  }
})

/** Line ends are the network's: CRLF on the way, and one at the end. */
function lines(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/\n$/, '')
}

t.test('smtp: text and html are multipart/alternative with text first', { skip }, async (t) => {
  const email = signedEmail({ text: 'Grüße aus\nKöln', html: '<p>Grüße aus<br>Köln 🎉</p>' })
  const mail = await receivedOne(t, email)
  t.equal(mail.type, 'multipart/alternative')
  t.match(mail.parts, [
    { type: 'text/plain', text: 'Grüße aus\nKöln' },
    { type: 'text/html', text: '<p>Grüße aus<br>Köln 🎉</p>' },
  ])
  t.equal(mail.parts.length, 2)
  t.ok(mail.dkim?.isValid)
})

t.test('smtp: a body of 2 MB arrives', { skip }, async (t) => {
  const html = '<p>Grüße an alle, die dies lesen, und einen guten Tag.</p>\n'.repeat(34_000)
  const mail = await receivedOne(t, signedEmail({ html, text: 'short' }))
  t.ok(mail.dkim?.isValid)
  t.equal(mail.parts[1]?.text.length, html.length)
})

t.test('smtp: unusual line ends keep the DKIM signature valid', { skip }, async (t) => {
  const mail = await receivedOne(t, signedEmail({ text: 'one\rtwo\r\nthree\nfour\r\r\n.\r.\r' }))
  t.equal(mail.parts[0]?.text, 'one\ntwo\nthree\nfour\n\n.\n.\n')
  t.ok(mail.dkim?.isValid)
})

t.test('smtp: long and unusual headers arrive unchanged', { skip }, async (t) => {
  const headers = {
    'X-Long-Word': 'a'.repeat(998),
    'X-Long-Words': `${'word '.repeat(199)}end`,
    'X-Long-Unicode': '日'.repeat(998),
    'X-Blanks': `a${' '.repeat(200)}b`,
    'X-Encoded': '=?utf-8?Q?broken',
    'X-Quotes': 'say "hello" and \\',
    [`X-${'N'.repeat(74)}`]: 'b'.repeat(990),
  }
  const subject = '🎉'.repeat(499)
  const mail = await receivedOne(t, signedEmail({ headers, subject }))
  for (const [name, value] of Object.entries(headers)) {
    t.equal(headerOf(mail, name.toLowerCase()), value, name)
  }
  t.equal(headerOf(mail, 'subject'), subject)
  t.ok(mail.dkim?.isValid)
})

t.test('messageOf(): blanks never make a header line too long or empty', async (t) => {
  const headers = {
    'X-Behind-A-Word': `${'a'.repeat(100)} `,
    'X-At-The-End': `a${' '.repeat(50)}${'b'.repeat(30)}${' '.repeat(60)}`,
    'X-Before-A-Word': `a${' '.repeat(60)}${'b'.repeat(937)}`,
  }
  const subject = `${'a'.repeat(990)} `
  const message = await new MailComposer(messageOf(signedEmail({ headers, subject })))
    .compile()
    .build()
  const [head = ''] = message.toString().split('\r\n\r\n')
  for (const line of head.split('\r\n')) {
    t.ok(line.length <= 998 && /\S/.test(line), line.slice(0, 76))
  }
})

t.test('no header gets in by way of another', { skip }, async (t) => {
  const headers = { key: 'Sender', value: 'ceo@bank.example', prepared: 'true', raw: 'x' }
  const breaking = {
    'X-Break': 'one\r\nX-Smuggled: two\r\n\r\nbody',
    'X-Bare': 'one\nX-Smuggled: two\rX-Smuggled: three',
    'X-Name\r\nX-Smuggled': 'four',
  }
  const subject = 'Hello\r\nX-Smuggled: five'
  const sender = 'Hello\r\nX-Smuggled: six <hello@sender.example>'
  const mail = await receivedOne(
    t,
    signedEmail({ headers: { ...headers, ...breaking }, subject, sender }),
  )
  const names = mail.headers.map(([name]) => name)
  t.notOk(names.includes('x-smuggled'))
  t.notOk(names.includes('sender'))
  t.equal(headerOf(mail, 'key'), 'Sender')
  t.equal(headerOf(mail, 'value'), 'ceo@bank.example')
  t.equal(mail.parts[0]?.text, 'A message.\n')
})

t.test('smtp: content never makes nodemailer read files or URLs', { skip }, async (t) => {
  const text = JSON.stringify({ path: '/etc/hostname' })
  const html =
    '<img src="/etc/hostname"><img src="data:image/png;base64,AAAA"><a href="http://127.0.0.1:9/">'
  const mail = await receivedOne(t, signedEmail({ text, html }))
  t.same(
    mail.parts.map((part) => part.text.trimEnd()),
    [text, html],
  )
})

t.test('smtp: the DKIM signature covers the headers that receivers show', { skip }, async (t) => {
  const unsubscribe = {
    'List-Unsubscribe': `<https://mail.example/u/${'t'.repeat(300)}>`,
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  }
  const [full, least] = await received(t, [
    signedEmail({
      cc: ['carol@there.example'],
      replyTo: 'replies@sender.example',
      html: '<p>Hello</p>',
      headers: {
        ...unsubscribe,
        'List-Id': 'news',
        'X-Other': 'x',
        'In-Reply-To': '<a@b.example>',
      },
    }),
    signedEmail(),
  ])
  const always = ['content-type', 'date', 'from', 'message-id', 'mime-version', 'subject', 'to']
  t.match(full?.dkim, { isValid: true, domain: 'sender.example', selector: 'pg1' })
  t.same(
    full?.dkim?.signed.toSorted(),
    [
      ...always,
      ...['cc', 'in-reply-to', 'list-id', 'list-unsubscribe', 'list-unsubscribe-post', 'reply-to'],
    ].sort(),
  )
  t.match(least?.dkim, { isValid: true })
  t.same(least?.dkim?.signed.toSorted(), [...always, 'content-transfer-encoding'].sort())
})

t.test('smtp: the DKIM signature is invalid after any change', { skip }, async (t) => {
  const email = signedEmail({
    text: 'Pay 100 to Ann.',
    headers: { 'List-Unsubscribe': '<https://mail.example/u/1>' },
  })
  const { raw, dkim } = await receivedOne(t, email)
  t.ok(dkim?.isValid)
  const changes: [from: string, to: string][] = [
    ['Pay 100', 'Pay 900'],
    ['Subject: Hello', 'Subject: Hullo'],
    ['From: Hello', 'From: Hullo'],
    ['To: ann@', 'To: eve@'],
    ['/u/1>', '/u/2>'],
    ['d=sender.example', 'd=xender.example'],
  ]
  const changed = changes.map(([from, to]) => Buffer.from(raw.toString().replace(from, to)))
  for (const [place, mail] of (await readMails(changed, txt)).entries()) {
    t.equal(mail.dkim?.isValid, false, `${changes[place]}`)
  }
  const other = await makeDkimKey(secrets, 'pg1', 'active')
  const [byOther] = await readMails([raw], { 'pg1._domainkey.sender.example': other.value })
  t.equal(byOther?.dkim?.isValid, false, 'nor by another key')
})

t.test('smtp: an email without selector or key is sent unsigned', { skip }, async (t) => {
  const mails = await received(t, [
    signedEmail({ dkimSelector: null, dkimPrivateKey: null }),
    signedEmail({ dkimSelector: null }),
    signedEmail({ dkimPrivateKey: null }),
  ])
  for (const { dkim } of mails) t.equal(dkim, null)
})

t.test('smtp: nodemailer parses each accepted address unchanged', async () => {
  const local = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}$/)
  const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(name, local, (name, local) => {
      const given = formatAddress({ name, address: `${local}@there.example` })
      const address = parseAddress(given)
      fc.pre(!('problem' in address))
      const read = { name: address.name ?? '', address: address.address }
      assert.deepEqual(addressparser(formatAddress(address)), [read])
    }),
    { numRuns: 3000 },
  )
})
