import t, { type Test } from 'tap'
import { checkRecords } from '../../src/domains/check-records.ts'
import { type DnsRecord, recordsOf } from '../../src/domains/records.ts'
import { createResolver, LookupFailed, type Resolver } from '../../src/domains/resolver.ts'
import { freeAddress, noNsd, startNsd, startSilence } from '../fixtures/network.ts'
import { until } from '../fixtures/time.ts'

const TOKEN = '01jd4x3w2f8h6t5vqkz0m7c9ab'

const recordsFor = (name: string) =>
  recordsOf({
    name,
    mailFromLabel: 'mail',
    token: TOKEN,
    dkimZone: 'dkim.zone',
    identity: {
      mail_from_mx: { priority: 10, host: 'MX.Provider.Zone.' },
      mail_from_spf: 'v=spf1 include:provider.zone ~all',
    },
  })

const aliasFor = (selector: string) => `${selector}.${TOKEN}.dkim.zone`

/** Records of other names, and failures, by name and type. */
type Published = Record<string, string[] | 'ESERVFAIL'>

/** A resolver that knows what is listed, as in `'mail MX'`, names being relative to acme.zone. */
function knowing(published: Published): Resolver & { asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    isSandbox: () => false,
    async look(name, type) {
      const question = `${name.replace(/\.acme\.zone$/, '')} ${type}`
      asked.push(question)
      const answer = published[question] ?? []
      if (answer === 'ESERVFAIL') throw new LookupFailed(name, type, answer)
      return answer
    },
  }
}

const right: Published = {
  'pg1._domainkey CNAME': [aliasFor('pg1')],
  'pg2._domainkey CNAME': [aliasFor('pg2')],
  'pg3._domainkey CNAME': [aliasFor('pg3')],
  'mail MX': ['10 mx.provider.zone'],
  'mail TXT': ['v=spf1 include:provider.zone ~all'],
  '_dmarc TXT': ['v=DMARC1; p=none;'],
}

const shown = ({ name, type, status, found }: DnsRecord) => [
  `${name.replace(/\.acme\.zone$/, '')} ${type}`,
  status,
  ...found,
]

/** Returns the result for the record that these responses concern; all others are correct. */
async function resultOf(
  t: Test,
  published: Published,
  keys?: { selector: string; value: string }[],
) {
  const [about = ''] = Object.keys(published)
  const records = await checkRecords(
    recordsFor('acme.zone'),
    knowing({ ...right, ...published }),
    keys,
  )
  const others = records.filter((record) => shown(record)[0] !== about)
  t.ok(others.length < 6 && others.every(({ status }) => status === 'verified'), about)
  const [result = []] = records.map(shown).filter(([question]) => question === about)
  return result.slice(1)
}

t.test('checkRecords(): correct records are verified and show what was found', async (t) => {
  const resolver = knowing(right)
  const records = await checkRecords(recordsFor('acme.zone'), resolver)
  t.same(
    records.map(shown),
    Object.entries(right).map(([question, found]) => [question, 'verified', ...found]),
  )
  t.same(resolver.asked, Object.keys(right), 'each is asked for once')
})

t.test('checkRecords(): a domain without records has all missing', async (t) => {
  const records = await checkRecords(recordsFor('acme.zone'), knowing({}))
  for (const { name, status, found } of records) t.same([status, found], ['missing', []], name)
})

t.test('checkRecords(): a CNAME must have the expected target', async (t) => {
  const question = 'pg2._domainkey CNAME'
  t.same(await resultOf(t, { [question]: ['pg2.elsewhere.zone'] }), [
    'mismatch',
    'pg2.elsewhere.zone',
  ])
  t.same(await resultOf(t, { [question]: [aliasFor('pg1')] }), ['mismatch', aliasFor('pg1')])
  t.same(await resultOf(t, { [question]: [] }), ['missing'])
})

t.test('checkRecords(): a TXT record with our key is valid in place of the CNAME', async (t) => {
  const published = (text: string) => ({
    'pg1._domainkey CNAME': [],
    'pg1._domainkey TXT': [text],
  })
  const keys = [
    { selector: 'pg1', value: 'k=rsa; p=AAAA' },
    { selector: 'pg2', value: 'k=rsa; p=BBBB' },
  ]
  t.same(await resultOf(t, published('k=rsa; p=AAAA'), keys), ['verified', 'k=rsa; p=AAAA'])
  t.same(await resultOf(t, published('k=rsa;p=AA AA'), keys), ['verified', 'k=rsa;p=AA AA'])
  t.same(await resultOf(t, published('k=rsa; p=BBBB'), keys), ['mismatch', 'k=rsa; p=BBBB'])
  t.same(await resultOf(t, published('k=rsa; p=AAAA')), ['mismatch', 'k=rsa; p=AAAA'])
  t.same(await resultOf(t, published('k=rsa; p=aaaa'), keys), ['mismatch', 'k=rsa; p=aaaa'])
})

t.test('checkRecords(): the MX must be among those with the lowest preference', async (t) => {
  for (const hosts of [
    ['50 mx.provider.zone'],
    ['0 mx.provider.zone', '10 backup.zone'],
    ['10 mx.provider.zone', '10 mx2.provider.zone'],
    ['10 mx2.provider.zone', '10 mx.provider.zone', '20 backup.zone'],
  ]) {
    t.same(await resultOf(t, { 'mail MX': hosts }), ['verified', ...hosts])
  }
  for (const hosts of [
    ['10 elsewhere.zone'],
    ['5 elsewhere.zone', '10 mx.provider.zone'],
    ['10 mx2.provider.zone'],
    ['0 .'],
  ]) {
    t.same(await resultOf(t, { 'mail MX': hosts }), ['mismatch', ...hosts])
  }
})

t.test('checkRecords(): other TXT records at a name are ignored', async (t) => {
  const site = 'google-site-verification=abc'
  const spf = 'v=spf1 include:_spf.google.com include:provider.zone -all'
  t.same(await resultOf(t, { 'mail TXT': [site, spf] }), ['verified', spf])
  t.same(await resultOf(t, { 'mail TXT': [site] }), ['mismatch', site])
  const dmarc = 'v=DMARC1; p=reject; rua=mailto:dmarc@acme.zone'
  t.same(await resultOf(t, { '_dmarc TXT': [dmarc, site] }), ['verified', dmarc])
  t.same(await resultOf(t, { '_dmarc TXT': ['v=DMARC1; p=maybe', site] }), [
    'mismatch',
    'v=DMARC1; p=maybe',
  ])
})

t.test('checkRecords(): two SPF or two DMARC records are a mismatch', async (t) => {
  const spfs = ['v=spf1 include:provider.zone ~all', 'v=spf1 -all']
  t.same(await resultOf(t, { 'mail TXT': [...spfs, 'another'] }), ['mismatch', ...spfs])
  const policies = ['v=DMARC1; p=none', 'v=DMARC1; p=reject']
  t.same(await resultOf(t, { '_dmarc TXT': policies }), ['mismatch', ...policies])
})

t.test('checkRecords(): a CNAME that prevents other records is shown', async (t) => {
  const published = (records: Published) => ({ ...records, 'mail CNAME': ['shops.host.zone'] })
  t.same(await resultOf(t, { ...published({ 'mail MX': [] }) }), [
    'mismatch',
    'CNAME shops.host.zone',
  ])
  t.same(await resultOf(t, published({ 'mail MX': ['10 in.host.zone'] })), [
    'mismatch',
    'CNAME shops.host.zone',
    '10 in.host.zone',
  ])
  t.same(await resultOf(t, published({ 'mail TXT': ['v=spf1 -all'] })), [
    'mismatch',
    'CNAME shops.host.zone',
    'v=spf1 -all',
  ])
  t.same(await resultOf(t, published({ 'mail MX': ['10 mx.provider.zone'] })), [
    'verified',
    '10 mx.provider.zone',
  ])
})

t.test('checkRecords(): found values are bounded, but all are compared', async (t) => {
  const long = `v=spf1 ${'ip4:192.0.2.1 '.repeat(200)}include:provider.zone -all`
  const [status, ...found] = await resultOf(t, { 'mail TXT': [long] })
  t.equal(status, 'verified')
  t.same(found, [long.slice(0, 1000)])
  const hosts = Array.from({ length: 50 }, (_, place) => `10 mx${place}.elsewhere.zone`)
  t.same(await resultOf(t, { 'mail MX': [...hosts, '10 mx.provider.zone'] }), [
    'verified',
    ...hosts.slice(0, 10),
  ])
})

t.test(
  'checkRecords(): a failed lookup leaves the record unchanged, with the reason',
  async (t) => {
    const before = recordsFor('acme.zone').map(
      (record): DnsRecord => ({ ...record, status: 'mismatch', found: ['what was there'] }),
    )
    const resolver = knowing({
      ...right,
      'pg1._domainkey CNAME': 'ESERVFAIL',
      // Nothing is there, but what that means cannot be said.
      'pg2._domainkey CNAME': [],
      'pg2._domainkey TXT': 'ESERVFAIL',
      'mail MX': [],
      'mail CNAME': 'ESERVFAIL',
    })
    const records = await checkRecords(before, resolver)
    t.same(
      records.map(({ status }) => status),
      ['mismatch', 'mismatch', 'verified', 'mismatch', 'verified', 'verified'],
    )
    const problem =
      'the CNAME records of pg1._domainkey.acme.zone could not be looked up: ESERVFAIL'
    t.same(records[0], { ...before[0], problem })
    const [repaired] = await checkRecords(records, knowing(right))
    t.match(repaired, { status: 'verified', problem: undefined })
    t.same(before[2]?.status, 'mismatch', 'the argument is not changed')
  },
)

t.test('checkRecords(): other errors are thrown', async (t) => {
  const resolver = { ...knowing({}), look: () => Promise.reject(new TypeError('a bug')) }
  await t.rejects(checkRecords(recordsFor('acme.zone'), resolver), { message: 'a bug' })
})

t.test('checkRecords(): the name of a sandbox domain selects the result', async (t) => {
  const resolver = createResolver({ servers: [], hasSandbox: true })
  const statuses = async (name: string) => {
    const records = await checkRecords(recordsFor(name), resolver)
    const found = new Set(records.map(({ found }) => found.length))
    return [...new Set(records.map(({ status }) => status)), ...found]
  }
  t.same(await statuses('acme.example'), ['verified', 1])
  t.same(await statuses('news.missing.test'), ['verified', 1])
  t.same(await statuses('missing.test'), ['missing', 0])
  t.same(await statuses('missing-shop.acme.example'), ['missing', 0])
  t.same(await statuses('wrong7.example'), ['mismatch', 1])
})

t.test('checkRecords() with a name server', { skip: noNsd }, async (t) => {
  const alias = (selector: string) => `${selector}._domainkey CNAME ${aliasFor(selector)}.`
  const { address, publish } = await startNsd({
    'acme.zone': `
${alias('pg1')}
${alias('pg2').toUpperCase()}
${alias('pg3')}
mail MX 10 Mx.PROVIDER.zone.
mail TXT "v=spf1 include:_spf.other.zone inc" "lude:provider.zone -all"
mail TXT "another"
_dmarc TXT "v=DMARC1; p=quarantine; pct=10"
`,
    'half.zone': `
${alias('pg1')}
pg2._domainkey CNAME pg2.elsewhere.zone.
mail CNAME www.elsewhere.zone.
_dmarc TXT "v=spf1 -all"
`,
    'flat.zone': `
pg1._domainkey TXT "k=rsa; p=AA" "AA"
pg2._domainkey TXT "k=rsa; p=CCCC"
`,
    'broken.zone': null,
  })
  const resolver = createResolver({ servers: [address], hasSandbox: true, timeoutMs: 60_000 })
  const statusesOf = async (name: string, keys?: { selector: string; value: string }[]) => {
    const records = await checkRecords(recordsFor(name), resolver, keys)
    return records.map(({ status }) => status)
  }

  t.test('correct records are verified', async (t) => {
    t.same(await statusesOf('acme.zone'), Array(6).fill('verified'))
  })

  t.test('wrong records are a mismatch with their values, absent ones are missing', async (t) => {
    const records = await checkRecords(recordsFor('half.zone'), resolver)
    t.same(
      records.map(({ status, found }) => [status, ...found]),
      [
        ['verified', aliasFor('pg1')],
        ['mismatch', 'pg2.elsewhere.zone'],
        ['missing'],
        ['mismatch', 'CNAME www.elsewhere.zone'],
        ['mismatch', 'CNAME www.elsewhere.zone'],
        ['mismatch', 'v=spf1 -all'],
      ],
    )
  })

  t.test('a DNS host that resolves CNAMEs itself verifies by our key', async (t) => {
    const keys = ['pg1', 'pg2'].map((selector) => ({ selector, value: 'k=rsa; p=AAAA' }))
    const [first, second, third] = await statusesOf('flat.zone', keys)
    t.same([first, second, third], ['verified', 'mismatch', 'missing'])
  })

  t.test('a domain without a working name server stays unchanged', async (t) => {
    const before = recordsFor('broken.zone')
    const silent = createResolver({
      servers: [await startSilence()],
      hasSandbox: false,
      timeoutMs: 300,
    })
    const gone = createResolver({ servers: [await freeAddress()], hasSandbox: false })
    for (const broken of [resolver, silent, gone]) {
      const problem = /^the \w+ records of \S+ could not be looked up: E/
      const records = await checkRecords(before, broken)
      t.match(
        records,
        before.map((record) => ({ ...record, problem })),
      )
    }
    const refused = recordsFor('unserved.zone')
    t.match(await checkRecords(refused, resolver), refused)
  })

  t.test('a missing record is verified once it is published', async (t) => {
    const [, second] = await statusesOf('flat.zone')
    t.equal(second, 'mismatch')
    await publish('flat.zone', alias('pg2'))
    await until('pg2', async () => {
      const records = await checkRecords(recordsFor('flat.zone'), resolver)
      return records[1]?.status === 'verified'
    })
  })
})
