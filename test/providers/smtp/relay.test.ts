import { createServer } from 'node:tls'
import t, { type Test } from 'tap'
import { createSmtp } from '../../../src/providers/smtp/index.ts'
import { readRelay } from '../../../src/providers/smtp/relay.ts'
import { listen, selfSigned } from '../../fixtures/network.ts'
import { emailTo } from '../../fixtures/providers.ts'
import {
  noSmtpServer,
  type SmtpServer,
  type SmtpServerOptions,
  secrets,
  startScriptedRelay,
  startSmtpServer,
} from '../../fixtures/smtp.ts'

const ann = 'ann@there.example'

t.test('readRelay(): reads host, port, TLS and login from the URL', async (t) => {
  t.strictSame(readRelay('smtp://Relay.Example'), {
    connection: {
      host: 'relay.example',
      secure: false,
      requireTLS: false,
      tls: { rejectUnauthorized: true },
      maxConnections: 10,
    },
    publicHost: 'relay.example',
  })
  t.strictSame(
    readRelay(
      'smtps://us%40er:p%3A%40ss%2Fw%23rd@smtp.example.co.za:4650/?requireTLS=true' +
        '&tls.rejectUnauthorized=false&maxConnections=3&name=APP.example.org',
    ),
    {
      connection: {
        host: 'smtp.example.co.za',
        secure: true,
        requireTLS: true,
        tls: { rejectUnauthorized: false },
        maxConnections: 3,
        port: 4650,
        name: 'app.example.org',
        auth: { user: 'us@er', pass: 'p:@ss/w#rd' },
      },
      publicHost: 'smtp.example.co.za',
    },
  )
})

t.test('readRelay(): port 465 uses implicit TLS whatever the scheme', async (t) => {
  for (const [url, secure] of [
    ['smtp://relay.example:465', true],
    ['smtps://relay.example:465', true],
    ['smtps://relay.example', true],
    ['smtp://relay.example:587', false],
    ['smtp://relay.example', false],
  ] as const) {
    t.match(readRelay(url), { connection: { secure } }, url)
  }
})

t.test(
  'a password goes to another machine over TLS only, unless the URL says otherwise',
  async (t) => {
    for (const [url, requireTLS] of [
      ['smtp://me:hunter2@relay.example', true],
      ['smtp://me:hunter2@10.0.0.5?name=relay.example', true],
      ['smtps://me:hunter2@relay.example', true],
      ['smtp://me:hunter2@relay.example?requireTLS=false', false],
      ['smtp://relay.example', false],
      ['smtp://relay.example?requireTLS=true', true],
      ['smtp://me:hunter2@localhost?name=relay.example', false],
      ['smtp://me:hunter2@127.0.0.1:2525?name=relay.example', false],
      ['smtp://me:hunter2@[::1]?name=relay.example', false],
    ] as const) {
      t.match(readRelay(url), { connection: { requireTLS } }, url)
    }
    const relay = await startScriptedRelay(t, {})
    const url = `smtp://me:hunter2@${relay.address}?name=relay.example&requireTLS=true`
    const smtp = createSmtp({ url, secrets })
    t.match(await smtp.send(emailTo(ann)), { outcome: 'deferred' })
    await smtp.close()
    t.notOk(relay.commands.some((command) => /^(AUTH|MAIL)/i.test(command)))
  },
)

t.test('readRelay(): a relay without a public host uses ?name=', async (t) => {
  for (const host of [
    '127.0.0.1:25',
    '[::1]:25',
    '203.0.113.5',
    'localhost',
    'postfix',
    'mail.local',
  ]) {
    t.match(readRelay(`smtp://${host}`), { problem: /^needs \?name=/ }, host)
    t.match(readRelay(`smtp://${host}?name=host.example`), { publicHost: 'host.example' }, host)
  }
  t.match(readRelay('smtp://[::1]:25?name=host.example'), { connection: { host: '::1', port: 25 } })
})

t.test('an invalid URL is refused without quoting it', async (t) => {
  const problems = {
    'must be an smtp:// or smtps:// URL; write special characters as %XX': [
      '',
      'relay.example',
      'http://relay.example',
      'smtp:relay.example',
      'smtp://',
      'smtp://hunter2@relay.example',
      'smtp://:hunter2@relay.example',
      'smtp://user:hunter2%@relay.example',
      'smtp://user:hunter2%zz@relay.example',
      'smtp://user:12/hunter2@relay.example',
      'smtp://user:12#hunter2@relay.example',
      'smtp://user:hunter2@relay.example/path',
      'smtp://user:hunter2@relay example',
      'smtp://user:hunter2@rel_ay.example',
      'smtp://user:hunter2@relay.example:99999',
      'smtp://user:hunter2@-relay.example',
      'smtp://user:hunter2@relay..example',
      `smtp://user:hunter2@${'a.'.repeat(130)}example`,
    ],
    'accepts only the parameters requireTLS, tls.rejectUnauthorized, maxConnections, name': [
      'smtp://user:12?hunter2@relay.example',
      'smtp://relay.example?debug=true',
      'smtp://relay.example?tls.ca=hunter2',
      'smtp://relay.example?requireTLS=yes',
      'smtp://relay.example?requireTLS=',
      'smtp://relay.example?tls.rejectUnauthorized=0',
      'smtp://relay.example?maxConnections=0',
      'smtp://relay.example?maxConnections=1000',
      'smtp://relay.example?maxConnections=1e2',
      'smtp://relay.example?name=localhost',
      'smtp://relay.example?name=127.0.0.1',
      'smtp://relay.example?name=a%0d%0aRSET.example',
      'smtp://relay.example?__proto__=1',
    ],
  }
  for (const [problem, urls] of Object.entries(problems)) {
    for (const url of urls) {
      t.strictSame(readRelay(url), { problem }, url)
      t.throws(() => createSmtp({ url, secrets }), { message: `SMTP_URL ${problem}` })
    }
  }
})

const certificate = selfSigned()
const skip = noSmtpServer || (certificate ? false : 'openssl is not installed')

/** Sends an email to a server with this URL; returns the outcome and the received mail. */
async function sendOver(
  t: Test,
  options: SmtpServerOptions,
  urlOf: (address: string) => string,
): Promise<[outcome: unknown, protocol: string | undefined]> {
  const server: SmtpServer = await startSmtpServer(t, options)
  const smtp = createSmtp({ url: urlOf(server.address), secrets, timeoutMs: 20_000 })
  const answer = await smtp.send(emailTo(ann))
  t.notMatch(JSON.stringify(answer), /hunter|w%23rd|w#rd/)
  await smtp.close()
  const [mail] = await server.mails()
  return [answer, /^Received: by relay.example with (\S+);/m.exec(`${mail}`)?.[1]]
}

t.test('smtp: offered STARTTLS requires a trusted certificate', { skip }, async (t) => {
  const sent = { outcome: 'sent' }
  const distrusted = { outcome: 'deferred', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }
  const url = (address: string) => `smtp://${address}?name=relay.example`
  const lax = (address: string) => `${url(address)}&tls.rejectUnauthorized=false`
  const overTls = (address: string) => lax(address).replace('smtp:', 'smtps:')
  t.match(await sendOver(t, {}, url), [sent, 'esmtp'])
  t.match(await sendOver(t, { certificate }, lax), [sent, 'esmtps'])
  t.match(await sendOver(t, { certificate }, url), [distrusted, undefined])
  t.match(await sendOver(t, { certificate, isTlsFromTheStart: true }, overTls), [sent, 'esmtps'])
  t.match(await sendOver(t, {}, overTls), [{ outcome: 'deferred' }, undefined])
  const strict = (address: string) => `${lax(address)}&requireTLS=true`
  t.match(await sendOver(t, { certificate }, strict), [sent, 'esmtps'])
  t.match(await sendOver(t, {}, strict), [{ outcome: 'deferred' }, undefined])
})

t.test('smtp: logs in if the URL has a login', { skip }, async (t) => {
  const login = { user: 'us@er', password: 'p:@ss/w#rd' }
  const sent = { outcome: 'sent' }
  const parameters = '?name=relay.example&tls.rejectUnauthorized=false'
  const url = (address: string) => `smtp://us%40er:p%3A%40ss%2Fw%23rd@${address}${parameters}`
  const wrong = (address: string) => `smtp://us%40er:hunter2@${address}${parameters}`
  const without = (address: string) => `smtp://${address}${parameters}`
  t.match(await sendOver(t, { login }, url), [sent, 'esmtpa'])
  t.match(await sendOver(t, { login, certificate }, url), [sent, 'esmtpsa'])
  t.match(await sendOver(t, { login }, wrong), [
    { outcome: 'deferred', code: '535', text: 'The relay refuses the login.' },
    undefined,
  ])
  t.match(await sendOver(t, { login }, without), [
    { outcome: 'deferred', code: '530 5.7.0', text: 'Authentication required' },
    undefined,
  ])
})

t.test('check(): returns a hint of one line for each failure', { skip }, async (t) => {
  const login = { user: 'me', password: 'right' }
  const self = await startSmtpServer(t, { certificate })
  const clear = await startSmtpServer(t, { login })
  const atOnce = await listen(createServer(certificate ?? {}))
  for (const [url, line] of [
    [
      `smtp://${self.address}?`,
      /^the certificate of the relay is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\): install a trusted one, or set \?tls\.rejectUnauthorized=false/,
    ],
    [
      `smtps://127.0.0.1:${atOnce.port}?`,
      /^the certificate of the relay is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    ],
    [`smtps://${clear.address}?`, /does not use implicit TLS \(\w+\): use smtp:\/\//],
    [
      `smtp://me:hunter2@${clear.address}?`,
      /refuses the login \(535 .*\): check user and password$/,
    ],
    [`smtp://${clear.address}?requireTLS=true&`, /offers no TLS \(ETLS\): .* \?requireTLS=false$/],
    [`smtp://127.0.0.1:${atOnce.port}?`, /sends no greeting: check the port, and use smtps:\/\//],
    ['smtp://127.0.0.1:1?', /cannot be reached \(ECONNREFUSED\): check host and port/],
    ['smtp://none.invalid?', /^the host of SMTP_URL has no address \(\w+\)/],
  ] as const) {
    const smtp = createSmtp({ url: `${url}name=relay.example`, secrets })
    const said = `${await smtp.check()}`
    await smtp.close()
    t.match(said, line, url)
    t.notMatch(said, /\n|hunter2|Node/)
  }
})

t.test('smtp: EHLO has the name of ?name=', async (t) => {
  const relay = await startScriptedRelay(t, {})
  const url = `smtp://${relay.address}?name=app.example.org`
  const smtp = createSmtp({ url, secrets })
  t.match(await smtp.send(emailTo(ann)), { outcome: 'sent' })
  t.equal(relay.commands[0], 'EHLO app.example.org')
  await smtp.close()
})
