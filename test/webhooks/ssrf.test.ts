import type { LookupAddress } from 'node:dns'
import t from 'tap'
import { isPublicAddress } from '../../src/webhooks/addresses.ts'
import { createLookup } from '../../src/webhooks/lookup.ts'
import { createPoster, type PosterOptions } from '../../src/webhooks/post.ts'
import { readTarget } from '../../src/webhooks/target.ts'
import { createDatabase } from '../fixtures/database.ts'
import {
  hasIPv6,
  noNsd,
  noSecondLoopback,
  startFickleDns,
  startNsd,
  startTcpServer,
  type TcpServer,
} from '../fixtures/network.ts'
import { until } from '../fixtures/time.ts'

const { sql } = await createDatabase()

/** All addresses of this machine, of both families if it has both. */
const ALL = hasIPv6 ? '::' : '0.0.0.0'
const everywhere = await startTcpServer((socket) => socket.destroy(), ALL)
const { port } = everywhere

/** A name server has a fifth of this before it is asked again; a slow machine is still faster. */
const PATIENT_MS = 3_600_000

function posterWith(options: Partial<PosterOptions> = {}) {
  const poster = createPoster({
    ...{ allowsPrivate: false, dnsServers: [], timeoutMs: PATIENT_MS },
    ...options,
  })
  t.teardown(() => poster.close())
  return poster
}

const limits = { allowsPrivate: false, isPublic: isPublicAddress }

const post = (url: string, poster = posterWith()) => poster.post({ url, headers: {}, body: '{}' })

async function problemOf(url: string): Promise<string | null> {
  const [row] = await sql<{ problem: string | null }[]>`
    select core.webhook_url_problem(${url}) as problem`
  return row?.problem ?? null
}

/** Hosts of this machine, its network or no machine, in all spellings. */
const hosts = [
  // Loopback, as different URL parsers read it.
  ...[
    '127.0.0.1',
    '127.0.0.2',
    '127.255.255.254',
    '127.1',
    '127.0.1',
    '2130706433',
    '017700000001',
  ],
  ...['0x7f000001', '0x7F000001', '0x7f.0.0.1', '0x7f.1', '0177.0.0.1', '0177.1', '127.0.0.0x1'],
  ...[
    '0x7f.0x0.0x0.0x1',
    '0177.0000.0000.0001',
    '00000177.1',
    '127.0.0.1.',
    '127.1.',
    '2130706433.',
  ],
  ...['%31%32%37.0.0.1', '127%2e0%2e0%2e1', '127%2E1', '%6cocalhost', 'loc%61lhost'],
  ...['１２７.0.0.1', '①②⑦.0.0.1', '127。0。0。1', '127．0．0．1', 'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ', 'local\u00adhost'],
  ...['localhost', 'LOCALHOST', 'localhost.', 'app.localhost', 'app.localhost.', 'LocalHost.'],
  // Addresses of this network, which Linux connects to this machine.
  ...['0', '0.0.0.0', '0.0', '0x0', '00', '0.1.2.3'],
  // Private, shared, link-local, metadata.
  ...['10.0.0.1', '10.1', '0xa.1', '012.0.0.1', '167772161', '172.16.0.1', '172.31.255.255'],
  ...['192.168.0.1', '192.168.1', '0xc0a80001', '100.64.0.1', '100.100.100.200', '100.127.255.255'],
  ...['169.254.169.254', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '169.254.43518'],
  ...['168.63.129.16', '192.0.0.192', '192.0.2.1', '192.88.99.1', '198.18.0.1', '198.19.255.255'],
  ...[
    '198.51.100.7',
    '203.0.113.7',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
  ],
  // IPv6, short and long, and IPv4 inside IPv6.
  ...['[::1]', '[0:0:0:0:0:0:0:1]', '[0000:0000:0000:0000:0000:0000:0000:0001]', '[::]', '[::0]'],
  ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:ffff:127.0.0.1]', '[::FFFF:7F00:0001]'],
  ...['[::ffff:8.8.8.8]', '[::ffff:0:127.0.0.1]', '[::127.0.0.1]', '[::7f00:1]', '[::8.8.8.8]'],
  ...['[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]', '[64:ff9b::8.8.8.8]', '[64:ff9b:1::1]'],
  ...['[2002:7f00:1::1]', '[2002:a00:1::]', '[2001::1]', '[2001:0:7f00:1::1]', '[2001:20::1]'],
  ...['[fe80::1]', '[febf::1]', '[fec0::1]', '[fc00::1]', '[fd00:ec2::254]', '[fdff:ffff::1]'],
  ...['[ff02::1]', '[ff0e::1]', '[2001:db8::1]', '[3fff::1]', '[100::1]', '[5f00::1]', '[4000::1]'],
  // Hosts that every URL parser refuses.
  ...[
    '[fe80::1%25lo]',
    '[::1%lo]',
    '[::1',
    '::1',
    '127.0.0.1.1',
    '256.0.0.1',
    '0x7f.0.0.0.1',
    '09.1',
  ],
]

/** The same hosts in URLs, and other schemes and forms of URLs. */
const urls = [
  ...hosts.map((host) => `https://${host}:${port}/hook`),
  ...['http', 'HTTP', 'ftp', 'ws', 'wss', 'file', 'gopher'].map(
    (scheme) => `${scheme}://127.0.0.1:${port}/hook`,
  ),
  `https:127.0.0.1:${port}/hook`,
  `https:/127.0.0.1:${port}/hook`,
  `https:///127.0.0.1:${port}/hook`,
  `https:\\\\127.0.0.1:${port}\\hook`,
  `https://127.0.0.1:${port}\\@example.com/`,
  `https://example.com@127.0.0.1:${port}/`,
  `https://user:pass@127.0.0.1:${port}/`,
  `https://@127.0.0.1:${port}/`,
  `https://example.com:443@127.0.0.1:${port}/`,
  `https://127.0.0.1:${port}#@example.com/`,
  `https://127.0.0.1:${port}?@example.com/`,
  `\thttps://127.0.0.1:${port}/`,
  ` https://127.0.0.1:${port}/`,
  `https://127.0\n.0.1:${port}/`,
  `ht\ttps://127.0.0.1:${port}/`,
  `https://127.0.0.1\u0001:${port}/`,
]

t.test('no spelling of an address that is not public is accepted, nor connected to', async (t) => {
  const dns = await startFickleDns([['127.0.0.1', '::1']])
  const poster = posterWith({ dnsServers: [dns.address] })
  for (const url of urls) {
    t.type(await problemOf(url), 'string', `psql: ${JSON.stringify(url)}`)
    const { status, error } = await post(url, poster)
    t.equal(status, null)
    t.match(error, /^the (URL |host name has no public)/, JSON.stringify(url))
  }
  t.equal(new Set(urls).size, urls.length)
  t.ok(urls.length > 100)
  t.equal(everywhere.connections(), 0)
})

t.test('without the rule, each of these spellings connects', async (t) => {
  const own = await startTcpServer((socket) => socket.destroy(), ALL)
  const poster = posterWith({ allowsPrivate: true })
  for (const host of [
    ...(noSecondLoopback ? [] : ['127.255.255.254']),
    ...['127.0.0.1', '127.1', '2130706433', '0x7f.1', '0177.0000.0000.0001'],
    ...[
      '127.0.0.1.',
      '127%2e0%2e0%2e1',
      '①②⑦.0.0.1',
      '127。0。0。1',
      'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
      'local\u00adhost',
    ],
    ...['0', '0.0.0.0'],
    ...(hasIPv6 ? ['[::]', '[::1]', '[0:0:0:0:0:ffff:127.0.0.1]'] : []),
  ]) {
    t.ok(hosts.includes(host), host)
    const before = own.connections()
    await post(`https://${host}:${own.port}/`, poster)
    t.ok(own.connections() > before, host)
  }
})

t.test(
  'psql and the poster allow the same ports: 443 and high ones of no other protocol',
  async (t) => {
    const urlOf = (port: number) => `https://acme.zone:${port}/`
    const [row] = await sql<{ allowed: number[] }[]>`
    select array_agg(port order by port) as allowed
    from generate_series(0, 65535) as port
    where core.webhook_url_problem('https://acme.zone:' || port || '/') is null`
    const ports = Array.from({ length: 65_536 }, (_, port) => port)
    t.same(
      ports.filter((port) => 'url' in readTarget(urlOf(port), limits)),
      row?.allowed,
    )
    t.equal(row?.allowed.length, 1 + 65_536 - 1024 - 19)
    const poster = posterWith()
    for (const port of [0, 22, 25, 80, 1023, 2049, 5060, 6667, 10_080]) {
      t.match(await problemOf(urlOf(port)), /^has a port that may not be used/)
      t.match(await post(urlOf(port), poster), { error: 'the URL has a port that is not allowed' })
    }
    t.equal(await problemOf(urlOf(65_536)), 'has a port above 65535')
    t.match(await post(urlOf(65_536), poster), { error: 'the URL cannot be parsed' })
  },
)

t.test('public addresses are not refused', async (t) => {
  for (const host of [
    ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.1', '100.63.255.255', '100.128.0.1'],
    ...['126.255.255.255', '128.0.0.1', '168.63.129.15', '169.253.0.1', '169.255.0.1'],
    ...['172.15.255.255', '172.32.0.1', '192.0.1.1', '192.167.0.1', '192.169.0.1', '198.17.0.1'],
    ...['198.20.0.1', '198.51.101.1', '203.0.112.1', '203.0.114.1', '223.255.255.255'],
  ]) {
    t.ok(isPublicAddress(host), host)
    t.ok('url' in readTarget(`https://${host}/`, limits), host)
  }
  for (const host of [
    ...['2000::1', '2001:200::1', '2001:4860:4860::8888', '2001:db7:ffff::1', '2001:db9::1'],
    ...['2003::1', '2606:4700:4700::1111', '2a00:1450::1', '3ffe::1', '3fff:1000::1'],
  ]) {
    t.ok(isPublicAddress(host), host)
    t.ok('url' in readTarget(`https://[${host}]:8443/`, limits), host)
  }
  for (const host of ['acme.zone', 'hooks.acme.co.uk', 'xn--caf-dma.zone', 'a_b.acme.zone']) {
    t.ok('url' in readTarget(`https://${host}/`, limits), host)
    t.equal(await problemOf(`https://${host}/`), null)
  }
  t.notOk(isPublicAddress('acme.zone'), 'a name is not an address')
  t.notOk(isPublicAddress(''))
})

t.test(
  'names that resolve to addresses that are not public are refused',
  { skip: noNsd },
  async (t) => {
    const { address } = await startNsd({
      'acme.zone': `
four A 127.0.0.1
six AAAA ::1
both A 127.0.0.1
both AAAA ::1
private A 10.0.0.1
private A 192.168.1.1
metadata A 169.254.169.254
mapped AAAA ::ffff:127.0.0.1
nat64 AAAA 64:ff9b::7f00:1
local AAAA fe80::1
unique AAAA fd00::1
any A 0.0.0.0
any AAAA ::
alias CNAME four
far CNAME target.other.zone.
mixed A 127.0.0.1
mixed A 9.9.9.9
mixed AAAA ::1
mixed AAAA 2620:fe::fe
many A 9.9.9.1
many A 9.9.9.2
many A 9.9.9.3
many A 9.9.9.4
many A 9.9.9.5
localhost A 127.0.0.1
`,
      'other.zone': 'target A 127.0.0.1',
      localhost: '@ A 127.0.0.1',
    })
    const poster = posterWith({ dnsServers: [address] })
    const names = [
      'four',
      'six',
      'both',
      'private',
      'metadata',
      'mapped',
      'nat64',
      'local',
      'unique',
    ]
    for (const name of [...names, 'any', 'alias', 'far', 'localhost', 'FOUR']) {
      const url = `https://${name}.acme.zone:${port}/hook`
      t.same(await post(url, poster), {
        status: null,
        error: 'the host name has no public address',
        response: null,
      })
      t.equal(await problemOf(url), null, 'core.webhook_url_problem() does not look names up')
    }
    for (const name of ['localhost', 'localhost.', 'four.acme.zone.']) {
      t.match(await post(`https://${name}:${port}/`, poster), { status: null, error: String }, name)
    }
    t.equal(everywhere.connections(), 0)

    const lookup = lookupBy(address)
    t.same(
      await lookup('mixed.acme.zone'),
      ['9.9.9.9', '2620:fe::fe'],
      'the addresses that are not public are left out',
    )
    t.equal((await lookup('many.acme.zone')).length, 4, 'at most four addresses are tried')
  },
)

t.test(
  'a name that changes its address is connected at the checked address only',
  { skip: noSecondLoopback },
  async (t) => {
    const changes = [['9.9.9.9', '2620:fe::fe'], ['127.0.0.1', '::1'], ['9.9.9.9']]
    const lookup = lookupBy((await startFickleDns(changes)).address)
    t.same(await lookup('acme.zone'), ['9.9.9.9', '2620:fe::fe'])
    await t.rejects(lookup('acme.zone'), { message: 'the host name has no public address' })
    t.same(await lookup('acme.zone'), ['9.9.9.9'], 'no result is cached')

    // The test connects to this machine only, so 127.0.0.2 counts as public here.
    const isPublic = (address: string) => address === '127.0.0.2'
    const inside: TcpServer = await startTcpServer((socket) => socket.destroy(), '127.0.0.1')
    const dns = await startFickleDns([['127.0.0.2'], ['127.0.0.1']])
    const poster = posterWith({ dnsServers: [dns.address], isPublic })
    const url = `https://acme.zone:${inside.port}/`
    t.match(await post(url, poster), { error: 'the connection was refused' }, 'at 127.0.0.2')
    t.same(dns.asked.sort(), ['A', 'AAAA'], 'each type is queried once')
    t.match(await post(url, poster), { error: 'the host name has no public address' })
    t.equal(inside.connections(), 0)

    const outside = await startTcpServer((socket) => socket.destroy(), '127.0.0.2')
    const same = await startFickleDns([['127.0.0.2', '127.0.0.1', '::1'], ['127.0.0.1']])
    const other = posterWith({ dnsServers: [same.address], isPublic })
    await post(`https://acme.zone:${outside.port}/`, other)
    t.equal(outside.connections(), 1, 'the public address is connected')
  },
)

t.test(
  'one address family is enough when the name server does not respond to the other',
  async (t) => {
    const lookupOf = async (silentOn: 'A' | 'AAAA', addresses: string[]) => {
      const { address, asked } = await startFickleDns([addresses], { silentOn })
      const found = await lookupBy(address, { resolutionDelayMs: 1 })('acme.zone')
      t.same(
        asked.sort(),
        ['A', 'AAAA'],
        'before the resolver repeats its query after some seconds',
      )
      return found
    }
    t.same(await lookupOf('AAAA', ['127.0.0.1', '9.9.9.9']), ['9.9.9.9'], 'each address is checked')
    t.same(await lookupOf('A', ['::1', '2620:fe::fe']), ['2620:fe::fe'])
  },
)

t.test('a family without a public address is not enough', async (t) => {
  const both = ['127.0.0.1', '2620:fe::fe']
  const late = await startFickleDns([both], { silentOn: 'AAAA' })
  const looking = lookupBy(late.address, { resolutionDelayMs: 1 })('acme.zone')
  await until('both queries', async () => new Set(late.asked).size === 2)
  late.speak()
  t.same(await looking, ['2620:fe::fe'], 'the response for the other family is waited for')
})

/** Looks names up as a poster does that uses this name server; by default it waits for both families. */
function lookupBy(
  address: string,
  { timeoutMs = PATIENT_MS, resolutionDelayMs = 60_000 } = {},
): (name: string) => Promise<string[]> {
  const over = new AbortController()
  t.teardown(() => over.abort())
  const options = { timeoutMs, resolutionDelayMs, signal: over.signal }
  const lookup = createLookup({ servers: [address], isPublic: isPublicAddress, ...options })
  return (name) =>
    new Promise((resolve, reject) => {
      lookup(name, { all: true }, (error, found) => {
        if (error) reject(error)
        else resolve((found as LookupAddress[]).map(({ address }) => address))
      })
    })
}
