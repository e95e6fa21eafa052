import t from 'tap'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'

const { sql } = await createDatabase()

async function problemsOf(tx: Tx, urls: readonly (string | null)[]): Promise<unknown> {
  const rows = await tx<{ url: string | null; problem: string | null }[]>`
    select url, core.webhook_url_problem(url) as problem
    from unnest(${urls}::text[]) with ordinality as given (url, place)
    order by place`
  return rows.map(({ url, problem }) => [url, problem])
}

const LITERAL = 'contains an IP address; use a host name'
const HOST = 'has no valid host name'
const NOT_PUBLIC = 'has a host name that is not public'
const ODD = 'contains a space, a control character or a backslash'
const CREDENTIALS = 'contains a user name or a password'
const NOT_ASCII =
  'contains a character that is not ASCII; write an international name in its ASCII form (xn--)'
const LONG_NAME = `${'a.'.repeat(127)}zone`

/** Invalid with every setting. */
const alwaysWrong: [string | null, string][] = [
  [null, 'is missing'],
  ['', 'is missing'],
  [`https://acme.zone/${'x'.repeat(1983)}`, 'has more than 2000 characters'],
  ['https://café.zone/', NOT_ASCII],
  ['https://acme.zone/ü', NOT_ASCII],
  ['https://acme.zone/a b', ODD],
  [' https://acme.zone/', ODD],
  ['https://acme.zone/\n', ODD],
  ['https://acme.zone\\@evil.zone/', ODD],
  ['https://acme.zone/\u007f', ODD],
  ['acme.zone', 'is not an https URL'],
  ['ftp://acme.zone/', 'is not an https URL'],
  ['https:acme.zone/', 'is not an https URL'],
  ['https:///acme.zone/', 'is not an https URL'],
  ['https://', 'is not an https URL'],
  ['https://?acme.zone', 'is not an https URL'],
  ['javascript:alert(1)//https://acme.zone/', 'is not an https URL'],
  ['https://acme.zone/#top', 'contains a fragment (#), which is never sent'],
  ['https://user@acme.zone/', CREDENTIALS],
  ['https://user:secret@acme.zone/', CREDENTIALS],
  ['https://:@acme.zone/', CREDENTIALS],
  ['https://acme.zone:65536/', 'has a port above 65535'],
  ['https://acme.zone:99999999999999999999/', 'has a port above 65535'],
]

/** Invalid unless private addresses are allowed. */
const wrongInPublic: [string, string][] = [
  ['http://acme.zone/', 'is not an https URL'],
  ['HTTP://acme.zone/', 'is not an https URL'],
  ['https://127.0.0.1/', LITERAL],
  ['https://8.8.8.8/', LITERAL],
  ['https://0x7f.1:8443/', LITERAL],
  ['https://2130706433?x', LITERAL],
  ['https://acme.0X', LITERAL],
  ['https://1.2.3.4./', LITERAL],
  ['https://[::1]/', LITERAL],
  ['https://[2606:4700:4700::1111]:443/', LITERAL],
  ['https://127%2e0%2e0%2e1/', HOST],
  ['https://acme.zone./', HOST],
  ['https://acme..zone/', HOST],
  ['https://.acme.zone/', HOST],
  ['https://-acme.zone/', HOST],
  ['https://acme-.zone/', HOST],
  ['https://*.acme.zone/', HOST],
  ['https://acme.zone:port/', HOST],
  ['https://acme.zone::443/', HOST],
  [`https://${'a'.repeat(64)}.zone/`, HOST],
  [`https://${LONG_NAME}/`, HOST],
  ['https://acme/', NOT_PUBLIC],
  ['https://localhost/', NOT_PUBLIC],
  ['https://LOCALHOST:8443/', NOT_PUBLIC],
  ['https://app.localhost/', NOT_PUBLIC],
  ['https://printer.local/', NOT_PUBLIC],
  ['https://metadata.google.internal/', NOT_PUBLIC],
  ['https://nas.home.arpa/', NOT_PUBLIC],
]

const right = [
  'https://acme.zone',
  'https://acme.zone/',
  'HTTPS://Hooks.Acme.Zone/Path',
  'https://acme.zone?token=a@b',
  'https://acme.zone/a@b:80/%20?c=https://127.0.0.1/&d[]=1',
  'https://acme.zone:443/',
  'https://acme.zone:/',
  'https://acme.zone:8443/hook',
  'https://xn--caf-dma.zone/',
  'https://a_b.c-d.1acme.zone/',
  'https://10.0.0.1.acme.zone/',
  'https://local.acme.zone/',
  `https://${'a'.repeat(63)}.zone/`,
  `https://acme.zone/${'x'.repeat(1982)}`,
]

const expected = (urls: readonly string[]) => urls.map((url) => [url, null])

t.test('webhook_url_problem: returns the problem of each wrong URL', (t) =>
  rolledBack(sql, async (tx) => {
    const wrong = [...alwaysWrong, ...wrongInPublic]
    t.same(
      await problemsOf(
        tx,
        wrong.map(([url]) => url),
      ),
      wrong,
    )
    t.same(await problemsOf(tx, right), expected(right))
  }),
)

t.test('webhook_url_problem: WEBHOOK_ALLOW_PRIVATE allows private addresses', (t) =>
  rolledBack(sql, async (tx) => {
    await tx`select api.set_up_webhooks(true)`
    const allowed = [...wrongInPublic.map(([url]) => url), 'http://localhost:80/', ...right]
    t.same(await problemsOf(tx, allowed), expected(allowed))
    t.same(
      await problemsOf(
        tx,
        alwaysWrong.map(([url]) => url),
      ),
      alwaysWrong,
    )
  }),
)
