import t from 'tap'
import { createSmpp } from '../../../src/providers/smpp/index.ts'
import { readSmsc } from '../../../src/providers/smpp/smsc.ts'
import { createLog } from '../../../src/telemetry/log.ts'

t.test('readSmsc(): reads host, port, TLS and login from the URL', async (t) => {
  t.strictSame(readSmsc('smpp://postgram:hunter2@smsc.example'), {
    host: 'smsc.example',
    port: 2775,
    isSecure: false,
    systemId: 'postgram',
    password: 'hunter2',
    systemType: '',
    isCertificateChecked: true,
  })
  t.strictSame(
    readSmsc(
      'smpps://po%40st%3A:%2Fp%23w%25@[2001:db8::1]:4000/?systemType=VMA&tls.rejectUnauthorized=false',
    ),
    {
      host: '2001:db8::1',
      port: 4000,
      isSecure: true,
      systemId: 'po@st:',
      password: '/p#w%',
      systemType: 'VMA',
      isCertificateChecked: false,
    },
  )
  t.match(readSmsc('smpps://a:b@smsc.example'), { port: 3550 })
  t.match(readSmsc('smpp://123456789012345:12345678@smsc.example?systemType=123456789012'), {
    systemId: '123456789012345',
    password: '12345678',
    systemType: '123456789012',
  })
})

t.test('an invalid URL is refused without quoting it', async (t) => {
  const form =
    'must be smpp:// or smpps:// with user:password@host; write special characters as %XX'
  const problems = {
    [form]: [
      '',
      'smsc.example',
      'http://a:hunter2@smsc.example',
      'ssmpp://a:hunter2@smsc.example',
      'smpp:a:hunter2@smsc.example',
      'smpp://',
      'smpp://smsc.example',
      'smpp://:hunter2@smsc.example',
      'smpp://a:hunter2@',
      'smpp://a:hunter2%zz@smsc.example',
      'smpp://a:hunter2@smsc.example/path',
      'smpp://a:12/hunter2@smsc.example',
      'smpp://a:12#hunter2@smsc.example',
      'smpp://a:12?hunter2@smsc.example',
      'smpp://a:hunter2@smsc.example:99999',
    ],
    'must have a user of at most 15 ASCII characters': [
      'smpp://1234567890123456:hunter2@smsc.example',
      'smpp://%C3%A9:hunter2@smsc.example',
      'smpp://a:hunter%00@smsc.example',
    ],
    'must have a password of at most 8 characters, the limit of SMPP': [
      'smpp://a:hunter234@smsc.example',
    ],
    'accepts only the parameters systemType, tls.rejectUnauthorized': [
      'smpp://a:hunter2@smsc.example?debug=true',
      'smpp://a:hunter2@smsc.example?tls.rejectUnauthorized=0',
      'smpp://a:hunter2@smsc.example?systemType=1234567890123',
      'smpp://a:hunter2@smsc.example?__proto__=1',
    ],
  }
  for (const [problem, urls] of Object.entries(problems)) {
    for (const url of urls) {
      t.strictSame(readSmsc(url), { problem }, url)
      const settings = { url, window: 1, rate: 1, countryCode: null }
      const options = { ...settings, listener: null, log: createLog('silent') }
      t.throws(() => createSmpp(options), { message: `SMPP_URL ${problem}` })
    }
  }
})
