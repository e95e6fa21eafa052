import t from 'tap'
import { readConfig } from '../../src/config/index.ts'
import { readLaunch } from '../../src/config/launch.ts'
import { SetupError } from '../../src/errors.ts'

type Env = Record<string, string | undefined>

const SECRET = Buffer.alloc(32, 7).toString('base64')
const OLD_SECRET = Buffer.alloc(32, 8).toString('base64')
const DATABASE = 'postgres://service:hunter2@db.example:5432/postgram'
const OWNER = 'postgres://owner:hunter3@db.example:5432/postgram'

const read = (env: Env, isServing = true) => readConfig(env, { isServing })

/** The lines with which a start stops. */
function problems(env: Env, isServing = true): string[] {
  try {
    read(env, isServing)
  } catch (error) {
    if (error instanceof SetupError) return error.message.split('\n')
    throw error
  }
  return []
}

t.test('readConfig: every setting has a default', async (t) => {
  t.strictSame(read({}), {
    databaseUrl: null,
    migrateDatabaseUrl: null,
    isEmbedded: true,
    embeddedProblem: null,
    dataFolder: '.postgram',
    host: '127.0.0.1',
    port: 3000,
    publicUrl: null,
    secretKeys: null,
    email: { provider: 'sandbox' },
    dkimZone: 'dkim.postgram.test',
    mailFromLabel: 'mail',
    systemFrom: 'Postgram <postgram@sandbox.postgram.test>',
    dnsServers: [],
    hasSandboxDns: true,
    sms: { provider: 'sandbox' },
    webhookAllowPrivate: false,
    workerConcurrency: 200,
    logLevel: 'info',
    metricsPort: null,
    clock: {},
    isProduction: false,
    isRunByNpm: false,
    commandPrefix: null,
  })
})

t.test('readConfig: reads every setting', async (t) => {
  t.strictSame(
    read({
      DATABASE_URL: DATABASE,
      MIGRATE_DATABASE_URL: OWNER,
      POSTGRAM_DATA: '/var/lib/postgram data',
      HOST: '::1',
      PORT: '0',
      PUBLIC_URL: 'https://mail.example/',
      SECRET_KEY: `${SECRET}, ${OLD_SECRET}`,
      EMAIL_PROVIDER: 'mailgun',
      MAILGUN_API_KEY: 'key-1',
      MAILGUN_API_BASE: 'https://api.eu.mailgun.net/',
      MAILGUN_WEBHOOK_SIGNING_KEY: 'key-2',
      DKIM_ZONE: 'DKIM.Mail.Example.',
      MAIL_FROM_LABEL: 'Bounce',
      SYSTEM_FROM: '"Acme, Inc." <post@MAIL.example>',
      DNS_SERVERS: '127.0.0.1:5353, [::1]:53, sandbox, 2001:db8::1',
      SMS_PROVIDER: 'sandbox',
      WEBHOOK_ALLOW_PRIVATE: 'true',
      WORKER_CONCURRENCY: '1',
      LOG_LEVEL: 'silent',
      METRICS_PORT: '9464',
      POSTGRAM_NOW: '2024-02-29T10:00:00+02:00',
      NODE_ENV: 'test',
    }),
    {
      databaseUrl: DATABASE,
      migrateDatabaseUrl: OWNER,
      isEmbedded: false,
      embeddedProblem: null,
      dataFolder: '/var/lib/postgram data',
      host: '::1',
      port: 0,
      publicUrl: 'https://mail.example',
      secretKeys: [SECRET, OLD_SECRET],
      email: {
        provider: 'mailgun',
        apiKey: 'key-1',
        apiBase: 'https://api.eu.mailgun.net',
        signingKey: 'key-2',
      },
      dkimZone: 'dkim.mail.example',
      mailFromLabel: 'bounce',
      systemFrom: '"Acme, Inc." <post@mail.example>',
      dnsServers: ['127.0.0.1:5353', '[::1]:53', '2001:db8::1'],
      hasSandboxDns: true,
      sms: { provider: 'sandbox' },
      webhookAllowPrivate: true,
      workerConcurrency: 1,
      logLevel: 'silent',
      metricsPort: 9464,
      clock: { 'postgram.now': '2024-02-29T08:00:00.000Z' },
      isProduction: false,
      isRunByNpm: false,
      commandPrefix: null,
    },
  )
})

t.test(
  'readLaunch: isRunByNpm is true only for the script with the name of the command',
  async (t) => {
    const cases: [env: Env, command: string, launch: ReturnType<typeof readLaunch>][] = [
      [{}, 'start', { commandWords: null, isRunByNpm: false }],
      [{ npm_lifecycle_event: 'start' }, 'start', { commandWords: null, isRunByNpm: true }],
      [{ npm_lifecycle_event: 'doctor' }, 'doctor', { commandWords: null, isRunByNpm: true }],
      [{ npm_lifecycle_event: 'deploy' }, 'start', { commandWords: null, isRunByNpm: false }],
      [{ POSTGRAM_COMMAND: '' }, 'help', { commandWords: null, isRunByNpm: false }],
      [{ POSTGRAM_COMMAND: 'make' }, 'help', { commandWords: 'make', isRunByNpm: false }],
    ]
    for (const [env, command, launch] of cases) t.same(readLaunch(env, command), launch)
    t.match(readConfig({}, { isServing: true, isRunByNpm: true, commandPrefix: 'make' }), {
      isRunByNpm: true,
      commandPrefix: 'make',
    })
  },
)

t.test(
  'readConfig: production needs DATABASE_URL=embedded for the embedded database',
  async (t) => {
    const production = { NODE_ENV: 'production' }
    const line =
      'DATABASE_URL: is required with NODE_ENV=production; DATABASE_URL=embedded runs a Postgres with its data in POSTGRAM_DATA'
    t.same(problems(production), [line])
    t.match(read(production, false), { isEmbedded: true, embeddedProblem: line })
    t.match(read({ ...production, DATABASE_URL: 'embedded' }), {
      databaseUrl: null,
      isEmbedded: true,
      embeddedProblem: null,
      secretKeys: null,
    })
    t.match(read({ ...production, MIGRATE_DATABASE_URL: OWNER }, false), { embeddedProblem: null })
    t.same(problems({ DATABASE_URL: 'embedded', MIGRATE_DATABASE_URL: OWNER }, false), [
      'MIGRATE_DATABASE_URL: must not be set with DATABASE_URL=embedded',
    ])
  },
)

t.test('readConfig: an empty variable counts as not set, an unknown one is ignored', async (t) => {
  const empty = Object.fromEntries(
    [
      'DATABASE_URL',
      'MIGRATE_DATABASE_URL',
      'POSTGRAM_DATA',
      'HOST',
      'PORT',
      'PUBLIC_URL',
      'SECRET_KEY',
      'EMAIL_PROVIDER',
      'MAILGUN_API_KEY',
      'MAILGUN_API_BASE',
      'MAILGUN_WEBHOOK_SIGNING_KEY',
      'SMTP_URL',
      'DKIM_ZONE',
      'MAIL_FROM_LABEL',
      'SYSTEM_FROM',
      'DNS_SERVERS',
      'SMS_PROVIDER',
      'SMPP_URL',
      'SMPP_WINDOW',
      'SMPP_RATE',
      'SMPP_COUNTRY_CODE',
      'POSTGRAM_NOW',
      'LOG_LEVEL',
      'METRICS_PORT',
    ].map((name) => [name, '']),
  )
  t.strictSame(
    read({ ...empty, PATH: '/bin', PGHOST: 'elsewhere', UNDEFINED: undefined }),
    read({}),
  )
})

const good: [name: string, values: string[]][] = [
  [
    'DATABASE_URL',
    [
      DATABASE,
      'postgresql:///postgram',
      'postgres://owner:a%2Fb%40c,d@db/x',
      'postgres://db',
      'postgres://[::1]:5433/x?sslmode=require',
      'postgres://a,b:5433/postgram?target_session_attrs=read-write',
    ],
  ],
  ['HOST', ['0.0.0.0', '::', 'localhost', 'api.internal']],
  ['PORT', ['0', '1', '65535']],
  ['PUBLIC_URL', ['http://localhost:3000', 'https://mail.example', 'https://[::1]:3000/']],
  [
    'SECRET_KEY',
    [
      SECRET,
      SECRET.replace('=', ''),
      Buffer.alloc(32, 255).toString('base64url'),
      `${SECRET},${OLD_SECRET}`,
      ` ${SECRET} , ${OLD_SECRET} `,
    ],
  ],
  ['EMAIL_PROVIDER', ['sandbox', 'mailgun', 'smtp']],
  ['MAILGUN_API_KEY', ['0123456789abcdef-01234567-89abcdef', 'x']],
  ['MAILGUN_WEBHOOK_SIGNING_KEY', ['0123456789abcdef', '!~']],
  ['MAILGUN_API_BASE', ['https://api.eu.mailgun.net', 'http://127.0.0.1:4000/mailgun/']],
  [
    'SMTP_URL',
    [
      'smtp://relay.example',
      'smtps://us%40er:p%2Fw%23@relay.example:465',
      'smtp://localhost:25?name=mail.example&requireTLS=true',
    ],
  ],
  ['DKIM_ZONE', ['dkim.mail.example', 'xn--bcher-kva.example', 'DKIM.example.', 'a.b']],
  ['MAIL_FROM_LABEL', ['mail', 'em', 'a', '7', 'post-1', 'x'.repeat(63), 'Mail']],
  ['SYSTEM_FROM', ['post@mail.example', 'Acme <post@mail.example>', '"A, B" <p@mail.example>']],
  [
    'DNS_SERVERS',
    ['sandbox', '8.8.8.8', '8.8.8.8:53,1.1.1.1', '::1', '[2001:db8::1]:53', ' ::1 , sandbox'],
  ],
  ['SMS_PROVIDER', ['sandbox', 'smpp']],
  [
    'SMPP_URL',
    [
      'smpp://postgram:hunter2@smsc.example',
      'smpps://po%40st:p%2Fw%23@smsc.example:3551',
      'smpp://a:b@[2001:db8::1]:2775?systemType=VMA&tls.rejectUnauthorized=false',
    ],
  ],
  ['SMPP_WINDOW', ['1', '1000']],
  ['SMPP_RATE', ['1', '10000']],
  ['SMPP_COUNTRY_CODE', ['27', '+27', '1', '225']],
  ['WORKER_CONCURRENCY', ['1', '1000']],
  ['LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']],
  ['METRICS_PORT', ['0', '9464', '65535']],
  [
    'POSTGRAM_NOW',
    ['2024-02-29T10:00:00Z', '2024-02-29T10:00:00.123+02:00', '+36h', '-5m', '+2d', '-90s'],
  ],
]

for (const [name, values] of good) {
  t.test(`${name}: accepts every valid form`, async (t) => {
    for (const value of values) t.strictSame(problems({ [name]: value }, false), [], value)
  })
}

const bad: [name: string, values: string[], problem: string][] = [
  [
    'DATABASE_URL',
    [
      'postgram',
      'mysql://db/postgram',
      '/var/run/postgresql',
      'postgres:db',
      'postgres://owner:p/w@db/x',
      'postgres://owner:p@db:99999/x',
      'postgres://owner:%zz@db/x',
      'postgres://a b/x',
    ],
    'must be a postgres:// URL; write special characters in it as %XX',
  ],
  ['HOST', ['http://localhost', 'a b', '127.0.0.1:3000', 'a/b'], 'must be an address'],
  ['PORT', ['http', '3000x', '-1', '3.5', ' 80', '0x50', '9999999999'], 'must be a whole number'],
  ['PORT', ['65536'], 'must be at most 65535'],
  [
    'PUBLIC_URL',
    [
      'mail.example',
      'ftp://mail.example',
      'https://',
      '/api',
      'https:mail.example',
      'https:/mail.example',
      'https://mail.example\n',
      'https://mail\r\n.example',
      ' https://mail.example',
      'https://mail.example/a b',
      'https://mail.example/<b>',
      'https://bücher.example',
    ],
    'must be an http or https URL',
  ],
  ['PUBLIC_URL', ['https://me:secret@mail.example'], 'must have no user and password in it'],
  ['MAILGUN_API_BASE', ['https://api:key@api.mailgun.net'], 'must have no user and password in it'],
  [
    'PUBLIC_URL',
    ['https://a.example?x=1', 'https://a.example/#x'],
    'must end with its path, without ? and #',
  ],
  [
    'PUBLIC_URL',
    ['https://a.example/api', 'https://a.example/v1/', 'https://a.example//x'],
    'must have no path, as https://api.example.net',
  ],
  ['DATABASE_URL', ['postgres://me:x@db/postgram?ssl=true'], 'takes sslmode, not ssl'],
  [
    'DATABASE_URL',
    ['postgres://me:x@db/postgram?sslmode=prefer', 'postgres://db/x?sslmode=no-verify'],
    'sslmode must be one of disable, require, verify-ca, verify-full',
  ],
  [
    'SECRET_KEY',
    [
      'secret',
      SECRET.slice(4),
      `AAAA${SECRET}`,
      'f'.repeat(64),
      ',',
      `${SECRET},`,
      `${SECRET} ${SECRET}`,
      `${SECRET},secret`,
    ],
    'must be 32 bytes in base64, or several such keys separated by commas',
  ],
  ['SECRET_KEY', [Array(11).fill(SECRET).join(',')], 'must be at most 10'],
  ['EMAIL_PROVIDER', ['pigeon', 'Sandbox', 'constructor'], 'must be sandbox, mailgun or smtp'],
  [
    'MAILGUN_API_KEY',
    ['two words', 'line\nbreak', 'schlüssel', 'x'.repeat(501)],
    'must be one word',
  ],
  ['MAILGUN_WEBHOOK_SIGNING_KEY', ['two words'], 'must be one word'],
  ['MAILGUN_API_BASE', ['api.mailgun.net', 'ftp://api'], 'must be an http or https URL'],
  [
    'MAILGUN_API_BASE',
    ['https://api.mailgun.net/v3', 'https://api.mailgun.net/v4/'],
    'must end before the version, as https://api.mailgun.net',
  ],
  [
    'SMTP_URL',
    ['relay.example', 'http://relay.example', 'smtp://user:p/w@relay.example', 'smtp://'],
    'must be an smtp:// or smtps:// URL; write special characters as %XX',
  ],
  [
    'SMTP_URL',
    ['smtp://relay.example?debug=true', 'smtp://user:12?w@relay.example'],
    'accepts only the parameters requireTLS, tls.rejectUnauthorized, maxConnections, name',
  ],
  [
    'SMTP_URL',
    ['smtp://localhost:25', 'smtp://10.0.0.1'],
    'needs ?name= with a public host name, because its host is not one',
  ],
  [
    'DKIM_ZONE',
    [
      'localhost',
      'dkim zone.example',
      '-a.example',
      'a-.example',
      'a..example',
      'ü.example',
      '*.x.y',
    ],
    'must be a domain name',
  ],
  ['DKIM_ZONE', [`${'a.'.repeat(80)}example`], 'must have at most 150 characters'],
  [
    'MAIL_FROM_LABEL',
    ['mail.x', '-mail', 'mail-', 'ma_il', 'x'.repeat(64), 'ma il', 'ü'],
    'must be one label of a host name',
  ],
  [
    'SYSTEM_FROM',
    ['Acme', 'post@'],
    'must be an email address, as name@example.com or Name <name@example.com>',
  ],
  ['SYSTEM_FROM', ['a@mail.example, b@mail.example'], 'must be one address, not a list or a group'],
  [
    'DNS_SERVERS',
    [
      'dns.example',
      '8.8.8.8:0',
      '8.8.8.8:65536',
      '8.8.8',
      '[::1]',
      '::1,',
      'sandbox:53',
      '1.1.1.1 8.8.8.8',
    ],
    'must be IP addresses, each with or without a port, or sandbox',
  ],
  ['DNS_SERVERS', [Array(11).fill('::1').join(',')], 'must be at most 10'],
  ['SMS_PROVIDER', ['pigeon'], 'must be sandbox or smpp'],
  [
    'SMPP_URL',
    [
      'smsc.example',
      'http://a:b@smsc.example',
      'smpp://smsc.example',
      'smpp://a:p/w@smsc.example',
      'smpp://a:12?w@smsc.example',
    ],
    'must be smpp:// or smpps:// with user:password@host; write special characters as %XX',
  ],
  [
    'SMPP_URL',
    ['smpp://1234567890123456:b@smsc.example'],
    'must have a user of at most 15 ASCII characters',
  ],
  [
    'SMPP_URL',
    ['smpp://a:hunter234@smsc.example'],
    'must have a password of at most 8 characters, the limit of SMPP',
  ],
  [
    'SMPP_URL',
    ['smpp://a:b@smsc.example?debug=true'],
    'accepts only the parameters systemType, tls.rejectUnauthorized',
  ],
  ['SMPP_WINDOW', ['ten', '1.5', '-1'], 'must be a whole number'],
  ['SMPP_WINDOW', ['0'], 'must be at least 1'],
  ['SMPP_WINDOW', ['1001'], 'must be at most 1000'],
  ['SMPP_RATE', ['ten', '0.5'], 'must be a whole number'],
  ['SMPP_RATE', ['0'], 'must be at least 1'],
  ['SMPP_RATE', ['10001'], 'must be at most 10000'],
  [
    'SMPP_COUNTRY_CODE',
    ['ZA', '0', '027', '0027', '2782', '+'],
    'must be a country calling code of 1 to 3 digits, such as 27',
  ],
  ['WORKER_CONCURRENCY', ['many'], 'must be a whole number'],
  ['WORKER_CONCURRENCY', ['0'], 'must be at least 1'],
  ['WORKER_CONCURRENCY', ['1001'], 'must be at most 1000'],
  ['LOG_LEVEL', ['verbose', 'INFO'], 'must be fatal, error, warn, info, debug, trace or silent'],
  ['METRICS_PORT', ['http', '-1'], 'must be a whole number'],
  ['METRICS_PORT', ['65536'], 'must be at most 65535'],
  [
    'POSTGRAM_NOW',
    ['tomorrow', '2024-02-29', '2024-02-30T25:00:00Z', '36h', '+36', '+36w', '+1.5h', '1709200000'],
    'must be an ISO 8601 time, or a shift such as +36h, -5m or +2d',
  ],
]

for (const [name, values, problem] of bad) {
  t.test(`${name} ${problem}`, async (t) => {
    for (const value of values)
      t.strictSame(problems({ [name]: value }, false), [`${name}: ${problem}`], value)
  })
}

t.test('readConfig: reports all problems at once, a line each', async (t) => {
  t.same(
    problems({
      DATABASE_URL: 'mysql://db',
      PORT: '99999',
      PUBLIC_URL: 'x',
      LOG_LEVEL: 'loud',
      POSTGRAM_NOW: '+1h',
      NODE_ENV: 'production',
    }).sort(),
    [
      'DATABASE_URL: must be a postgres:// URL; write special characters in it as %XX',
      'LOG_LEVEL: must be fatal, error, warn, info, debug, trace or silent',
      'PORT: must be at most 65535',
      'POSTGRAM_NOW: is for tests and refused when NODE_ENV=production',
      'PUBLIC_URL: must be an http or https URL',
      'SECRET_KEY: is required with DATABASE_URL; make one with "openssl rand -base64 32"',
    ],
  )
})

t.test(
  'readConfig: SECRET_KEY is required only to serve a database that is not embedded',
  async (t) => {
    const needed = [
      'SECRET_KEY: is required with DATABASE_URL; make one with "openssl rand -base64 32"',
    ]
    t.same(problems({ DATABASE_URL: DATABASE }), needed)
    t.same(problems({ DATABASE_URL: DATABASE, SECRET_KEY: '' }), needed)
    t.same(problems({ DATABASE_URL: DATABASE, SECRET_KEY: SECRET }), [])
    t.same(problems({ DATABASE_URL: DATABASE }, false), [])
    t.same(problems({}), [])
  },
)

const OUTSIDE = {
  DKIM_ZONE: 'dkim.mail.example',
  SYSTEM_FROM: 'post@mail.example',
  PUBLIC_URL: 'https://mail.example',
}

for (const [provider, own] of [
  ['mailgun', { MAILGUN_API_KEY: 'key-1', MAILGUN_WEBHOOK_SIGNING_KEY: 'key-2' }],
  ['smtp', { SMTP_URL: 'smtps://user:hunter2@relay.example' }],
] as const) {
  t.test(`readConfig: serving with ${provider} reports all missing settings at once`, async (t) => {
    const needed = { ...own, ...OUTSIDE }
    const lines = Object.keys(needed).map(
      (name) => `${name}: is required with EMAIL_PROVIDER=${provider}`,
    )
    t.same(problems({ EMAIL_PROVIDER: provider }), lines)
    t.same(problems({ EMAIL_PROVIDER: provider, PORT: 'x' }), [
      'PORT: must be a whole number',
      ...lines,
    ])
    t.same(problems({ EMAIL_PROVIDER: provider }, false), [], 'and nothing for other commands')
    t.same(problems({ EMAIL_PROVIDER: provider, ...needed }), [])
    for (const name of Object.keys(needed)) {
      t.same(problems({ EMAIL_PROVIDER: provider, ...needed, [name]: '' }), [
        `${name}: is required with EMAIL_PROVIDER=${provider}`,
      ])
    }
  })
}

t.test('readConfig: SMS_PROVIDER=smpp requires SMPP_URL, and no setting of email', async (t) => {
  const line = 'SMPP_URL: is required with SMS_PROVIDER=smpp'
  t.same(problems({ SMS_PROVIDER: 'smpp' }), [line])
  t.same(problems({ SMS_PROVIDER: 'smpp', SMPP_URL: '' }), [line])
  t.same(problems({ SMS_PROVIDER: 'smpp' }, false), [], 'and nothing for other commands')
  const url = 'smpp://postgram:hunter2@smsc.example'
  const own = { SMS_PROVIDER: 'smpp', SMPP_URL: url }
  t.strictSame(read(own).sms, {
    provider: 'smpp',
    url,
    window: 10,
    rate: 10,
    countryCode: null,
  })
  const set = { SMPP_WINDOW: '50', SMPP_RATE: '200', SMPP_COUNTRY_CODE: '+27' }
  t.strictSame(read({ ...own, ...set }).sms, {
    provider: 'smpp',
    url,
    window: 50,
    rate: 200,
    countryCode: '27',
  })
  t.strictSame(read({ SMPP_URL: url }).sms, { provider: 'sandbox' })
})

t.test('readConfig: passes each provider its own settings', async (t) => {
  const all = {
    ...OUTSIDE,
    MAILGUN_API_KEY: 'key-1',
    MAILGUN_WEBHOOK_SIGNING_KEY: 'key-2',
    SMTP_URL: 'smtps://user:hunter2@relay.example',
  }
  t.strictSame(read(all).email, { provider: 'sandbox' })
  t.strictSame(read({ ...all, EMAIL_PROVIDER: 'smtp' }).email, {
    provider: 'smtp',
    url: 'smtps://user:hunter2@relay.example',
  })
  t.strictSame(read({ ...all, EMAIL_PROVIDER: 'mailgun' }).email, {
    provider: 'mailgun',
    apiKey: 'key-1',
    apiBase: 'https://api.mailgun.net',
    signingKey: 'key-2',
  })
})

t.test('readConfig: sandbox DNS is the default only with the email sandbox', async (t) => {
  const dnsOf = (env: Env) => {
    const { dnsServers, hasSandboxDns } = read(env, false)
    return [dnsServers, hasSandboxDns]
  }
  t.strictSame(dnsOf({}), [[], true])
  t.strictSame(dnsOf({ DNS_SERVERS: '::1' }), [['::1'], false])
  t.strictSame(dnsOf({ DNS_SERVERS: 'sandbox,::1' }), [['::1'], true])
  t.strictSame(dnsOf({ EMAIL_PROVIDER: 'smtp' }), [[], false])
  t.strictSame(dnsOf({ EMAIL_PROVIDER: 'smtp', DNS_SERVERS: 'sandbox' }), [[], true])
})

t.test('POSTGRAM_NOW: a time fixes the clock, a duration shifts it', async (t) => {
  const clockOf = (text: string) => read({ POSTGRAM_NOW: text }).clock
  t.strictSame(clockOf('2031-01-31T23:30:00Z'), { 'postgram.now': '2031-01-31T23:30:00.000Z' })
  t.strictSame(clockOf('+36h'), { 'postgram.shift': '+36 hours' })
  t.strictSame(clockOf('-5m'), { 'postgram.shift': '-5 minutes' })
  t.strictSame(clockOf('+2d'), { 'postgram.shift': '+2 days' })
  t.strictSame(clockOf('-90s'), { 'postgram.shift': '-90 seconds' })
})

t.test('POSTGRAM_NOW: is refused in production', async (t) => {
  const refused = ['POSTGRAM_NOW: is for tests and refused when NODE_ENV=production']
  t.same(
    problems({ POSTGRAM_NOW: '+36h', NODE_ENV: 'production', DATABASE_URL: 'embedded' }),
    refused,
  )
  t.same(
    problems({ POSTGRAM_NOW: '+36h', NODE_ENV: 'production', DATABASE_URL: 'embedded' }, false),
    refused,
  )
  t.same(problems({ POSTGRAM_NOW: '', NODE_ENV: 'production', DATABASE_URL: 'embedded' }), [])
  t.same(problems({ POSTGRAM_NOW: '+36h', NODE_ENV: 'development' }), [])
})

t.test('readConfig: error messages never quote a value', async (t) => {
  const secret = 'hunter2'
  const names = [...new Set([...good, ...bad].map(([name]) => name))]
  for (const name of names) {
    const lines = problems({ [name]: `${secret} ${secret}` }, false)
    t.equal(lines.length, 1, name)
    t.notMatch(lines.join('\n'), secret)
  }
  for (const [name, values] of bad) {
    for (const value of values.filter((one) => one.length > 8)) {
      t.notOk(
        problems({ [name]: value }, false)
          .join('\n')
          .includes(value),
        name,
      )
    }
  }
})
