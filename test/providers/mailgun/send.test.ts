import t from 'tap'
import { createMailgun } from '../../../src/providers/mailgun/index.ts'
import { messageIdOf } from '../../../src/providers/message-id.ts'
import { endTimeLimits, startMailgun, type Trouble } from '../../fixtures/mailgun.ts'
import { emailTo } from '../../fixtures/providers.ts'

const mailgun = await startMailgun()
const { account, messages } = mailgun
mailgun.domains.add('sender.example').state = 'active'
mailgun.domains.add('unverified.example')

const provider = createMailgun(account)

const SEND = /^POST .*\/messages$/
const anEmail = (overrides = {}) => emailTo('ann@example.com', overrides)

/** Returns the last message that Mailgun accepted. */
function lastTaken() {
  const message = messages.taken.at(-1)
  if (!message) throw new Error('nothing was taken')
  return message
}

const countOf = (email: ReturnType<typeof anEmail>) =>
  messages.taken.filter(({ id }) => id === messageIdOf(email)).length

t.test('send(): all fields of an email reach Mailgun unchanged', async (t) => {
  const email = anEmail({
    to: ['Ann <ann@example.com>', '"Bee, the b" <bee@example.com>'],
    cc: ['cee@example.com'],
    bcc: ['dee@example.com', 'eff@example.com'],
    sender: 'Zoë <hello@sender.example>',
    replyTo: 'Replies <replies@example.com>',
    subject: 'Ünïcode – “quoted” 🎉',
    text: 'line\nline\n',
    html: '<p>É &amp; 日本語</p>',
    headers: { 'X-Order': '7', 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' },
    tags: ['one', 'two words', 'drei-é'],
  })
  t.same(await provider.send(email), { outcome: 'sent' })
  const { domain, id, form } = lastTaken()
  t.equal(domain, 'sender.example')
  t.equal(id, messageIdOf(email))
  t.same(Object.fromEntries(form), {
    from: ['Zoë <hello@sender.example>'],
    to: ['Ann <ann@example.com>', '"Bee, the b" <bee@example.com>'],
    cc: ['cee@example.com'],
    bcc: ['dee@example.com', 'eff@example.com'],
    subject: ['Ünïcode – “quoted” 🎉'],
    text: ['line\r\nline\r\n'],
    html: ['<p>É &amp; 日本語</p>'],
    'h:Message-Id': [`<${id}>`],
    'h:Reply-To': ['Replies <replies@example.com>'],
    'h:X-Order': ['7'],
    'h:List-Unsubscribe-Post': ['List-Unsubscribe=One-Click'],
    'o:tag': ['one', 'two words'],
    'o:tracking': ['no'],
    'o:tracking-clicks': ['no'],
    'o:tracking-opens': ['no'],
  })
})

t.test('send(): empty fields are sent as a blank', async (t) => {
  const empty = { subject: '', text: '', html: null, headers: { 'X-Empty': '' } }
  t.same(await provider.send(anEmail(empty)), { outcome: 'sent' })
  const { form } = lastTaken()
  t.same(form.get('subject'), [' '])
  t.same(form.get('text'), [' '])
  t.same(form.get('h:X-Empty'), [' '])
  t.notOk(form.has('html'))
})

t.test("send(): text like Mailgun's variables is sent unchanged", async (t) => {
  const text = 'Dear %recipient.name%, 100%recipient% {{name}} %unsubscribe_url%'
  await provider.send(anEmail({ text, html: text, subject: text }))
  const { form } = lastTaken()
  for (const part of ['text', 'html', 'subject']) t.same(form.get(part), [text])
  t.notOk([...form.keys()].some((name) => /^(?:recipient-variables|template|[tv]:)/.test(name)))
})

const page = '<html><head><title>502 Bad Gateway</title></head></html>'
const answer = (status: number, body: unknown): Trouble => ({
  isCarriedOut: false,
  answer: { status, body },
})
const happens = (what: Trouble['answer'], isCarriedOut = false): Trouble => ({
  isCarriedOut,
  answer: what,
})

t.test('send(): each response has its outcome', async (t) => {
  const cases: [string, Trouble, Record<string, unknown>][] = [
    ['late', happens('late', true), { outcome: 'sent' }],
    [
      '400',
      answer(400, { message: 'from is wrong' }),
      { outcome: 'failed', about: 'message', code: '400', text: 'from is wrong' },
    ],
    [
      '400 of a cut line',
      answer(400, ''),
      { outcome: 'failed', about: 'message', code: '400', text: 'Bad Request' },
    ],
    [
      '413',
      answer(413, page),
      { outcome: 'failed', about: 'message', code: '413', text: 'Payload Too Large' },
    ],
    [
      '422',
      answer(422, { error: 'no' }),
      { outcome: 'failed', about: 'message', code: '422', text: 'no' },
    ],
    [
      'quota in a 400',
      answer(400, { message: 'Domain x is not allowed to send: recipient limit exceeded' }),
      { outcome: 'deferred', about: 'provider', code: '400', text: /recipient limit/ },
    ],
    [
      '401',
      answer(401, 'Forbidden'),
      { outcome: 'deferred', about: 'provider', code: '401', text: 'Forbidden' },
    ],
    [
      '402',
      answer(402, { message: 'pay' }),
      { outcome: 'deferred', about: 'provider', code: '402', text: 'pay' },
    ],
    [
      '403',
      answer(403, { message: 'disabled' }),
      { outcome: 'deferred', about: 'provider', code: '403', text: 'disabled' },
    ],
    [
      '404',
      answer(404, { message: 'Domain not found' }),
      { outcome: 'deferred', about: 'message', code: '404' },
    ],
    [
      '420',
      answer(420, { message: 'limit' }),
      { outcome: 'deferred', about: 'provider', code: '420', text: 'limit' },
    ],
    [
      '429',
      answer(429, { message: 'try again after 120 seconds' }),
      { outcome: 'deferred', about: 'provider', code: '429', text: 'try again after 120 seconds' },
    ],
    [
      '302',
      happens({ status: 302, body: '', location: '/v4/domains/sender.example' }),
      { outcome: 'deferred', about: 'provider', code: '302' },
    ],
    [
      '500',
      answer(500, { message: 'Internal Server Error' }),
      { outcome: 'ambiguous', about: 'provider', code: '500', text: 'Internal Server Error' },
    ],
    [
      '500, though taken',
      { isCarriedOut: true, answer: { status: 500, body: 'oops' } },
      { outcome: 'ambiguous', about: 'provider', code: '500', text: 'oops' },
    ],
    [
      '502',
      answer(502, page),
      { outcome: 'ambiguous', about: 'provider', code: '502', text: 'Bad Gateway' },
    ],
    [
      '503 with much to say',
      answer(503, { message: 'x'.repeat(9999) }),
      { outcome: 'ambiguous', about: 'provider', code: '503', text: 'x'.repeat(500) },
    ],
    [
      '200 with a page',
      answer(200, page),
      { outcome: 'ambiguous', about: 'provider', code: '200', text: String },
    ],
    [
      '200 with nothing',
      answer(200, ''),
      { outcome: 'ambiguous', about: 'provider', code: '200', text: String },
    ],
    [
      '200 without an id',
      answer(200, { message: 'Queued.' }),
      { outcome: 'ambiguous', about: 'provider', text: String },
    ],
    [
      '200 from the wrong place',
      answer(200, 'Mailgun Magnificent API'),
      { outcome: 'ambiguous', about: 'provider', code: '200' },
    ],
    [
      'reset',
      happens('reset'),
      { outcome: 'ambiguous', about: 'provider', code: 'ECONNRESET', text: String },
    ],
    [
      'reset, though taken',
      happens('reset', true),
      { outcome: 'ambiguous', about: 'provider', code: 'ECONNRESET' },
    ],
    [
      'reset in the answer',
      happens('half, then reset', true),
      { outcome: 'ambiguous', about: 'provider', code: 'ECONNRESET' },
    ],
  ]
  for (const [name, trouble, expected] of cases) {
    const email = anEmail()
    mailgun.expectTrouble(SEND, trouble)
    t.match(await provider.send(email), expected, name)
    t.equal(countOf(email), trouble.isCarriedOut ? 1 : 0, name)
    t.equal(await provider.lookup(email), trouble.isCarriedOut, name)
  }
})

t.test('send(): a missing or incomplete response is ambiguous at the time limit', async (t) => {
  const untilTimeout = endTimeLimits(t, mailgun)
  for (const what of ['nothing', 'half'] as const) {
    for (const isCarriedOut of [true, false]) {
      const email = anEmail()
      mailgun.expectTrouble(SEND, happens(what, isCarriedOut))
      t.match(await untilTimeout(() => provider.send(email)), {
        outcome: 'ambiguous',
        code: 'timeout',
        text: String,
      })
      t.equal(await provider.lookup(email), isCarriedOut)
    }
  }
})

t.test('send(): a failed connection defers the email', async (t) => {
  for (const apiBase of ['http://nobody.invalid', 'http://127.0.0.1:2', 'http://localhost:2']) {
    const lost = createMailgun({ ...account, apiBase })
    t.match(await lost.send(anEmail()), {
      outcome: 'deferred',
      about: 'connection',
      code: String,
      text: /reached/,
    })
  }
  const encrypted = createMailgun({ ...account, apiBase: account.apiBase.replace('http', 'https') })
  t.match(await encrypted.send(anEmail()), {
    outcome: 'deferred',
    about: 'connection',
    code: /^ERR_SSL/,
  })
})

t.test('send(): wrong settings defer the email', async (t) => {
  const wrongKey = createMailgun({ ...account, apiKey: 'key-wrong' })
  t.match(await wrongKey.send(anEmail()), {
    outcome: 'deferred',
    about: 'provider',
    code: '401',
    text: 'Forbidden',
  })
  const others = { domain: 'other.example' }
  t.match(await provider.send(anEmail(others)), {
    outcome: 'deferred',
    about: 'message',
    code: '404',
  })
  const unverified = { domain: 'unverified.example' }
  t.match(await provider.send(anEmail(unverified)), {
    outcome: 'deferred',
    about: 'message',
    code: '403',
  })
  t.match(await provider.send(emailTo('exceeded@example.com')), {
    outcome: 'deferred',
    about: 'provider',
    code: '400',
  })
})

t.test('send(): the stored text of a failure contains neither API key nor body', async (t) => {
  const untilTimeout = endTimeLimits(t, mailgun)
  const email = anEmail({ text: 'secret words', html: '<p>secret words</p>' })
  const troubles = [
    answer(500, { message: 'x' }),
    happens('reset'),
    happens('nothing'),
    answer(400, page),
  ]
  mailgun.expectTrouble(SEND, ...troubles)
  for (const _ of troubles) {
    const said = JSON.stringify(await untilTimeout(() => provider.send(email)))
    t.notMatch(said, /secret words|key-/)
    t.notMatch(said, Buffer.from(`api:${account.apiKey}`).toString('base64'))
  }
  const withPassword = account.apiBase.replace('http://', 'http://operator:password@')
  const refused = createMailgun({ ...account, apiBase: withPassword })
  t.notMatch(JSON.stringify(await refused.send(email)), /password/)
})

t.test('mailgun: an invalid domain name is never put into a path', async (t) => {
  const before = mailgun.requests.length
  for (const domain of [
    '',
    'localhost',
    'a.example/../b.example',
    'a.example?x',
    'a b.example',
    '..',
  ]) {
    await t.rejects(provider.send(anEmail({ domain })))
    await t.rejects(provider.lookup(anEmail({ domain })))
    await t.rejects(provider.deleteDomain(domain))
  }
  t.equal(mailgun.requests.length, before)
})

t.test('send(): any text of Mailgun can be stored', async (t) => {
  const message = `a\0${'🎉'.repeat(300)}`
  mailgun.expectTrouble(SEND, answer(400, { message }))
  const { outcome, text = '' } = await provider.send(anEmail())
  t.equal(outcome, 'failed')
  t.equal(text, `a\uFFFD${'🎉'.repeat(249)}`)
})
