import { spawnSync } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createResolver } from '../../src/domains/resolver.ts'
import { createDatabase } from '../fixtures/database.ts'
import {
  addDkimKeys,
  newDkimValue,
  newFolder,
  noNsd,
  startNameServer,
  startNsd,
} from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { until } from '../fixtures/time.ts'

const POWERDNS = '/usr/sbin/pdns_server'
const hasPowerDns = spawnSync(POWERDNS, ['--no-config', '--launch=gpgsql', '--config']).status === 0
const skip =
  !hasPowerDns &&
  'there is no PowerDNS on this machine (Debian packages pdns-server and pdns-backend-pgsql)'

const { url, sql } = await createDatabase()
const { domain } = await createOrganisation(sql)
const values = [newDkimValue(), String.raw`k=rsa; n="\"; p=${'A'.repeat(400)}`]
const token = await addDkimKeys(sql, { domain, dkimZone: 'dkim.zone', values })

/** Starts PowerDNS with the settings of ops.powerdns_settings, the address of the database and a port. */
async function startPowerDns() {
  const folder = await newFolder()
  const { hostname, port, pathname, username, password } = new URL(url)
  const lines = await sql<{ line: string }[]>`select line from ops.powerdns_settings`
  await writeFile(
    join(folder, 'pdns.conf'),
    [
      ...lines.map(({ line }) => line),
      `gpgsql-host=${hostname}`,
      `gpgsql-port=${port}`,
      `gpgsql-dbname=${pathname.slice(1)}`,
      `gpgsql-user=${username}`,
      `gpgsql-password=${decodeURIComponent(password)}`,
      'gpgsql-extra-connection-parameters=options=-crole=postgram_report',
    ].join('\n'),
  )
  return startNameServer(POWERDNS, async (port) => [
    `--config-dir=${folder}`,
    `--socket-dir=${folder}`,
    '--local-address=127.0.0.1',
    `--local-port=${port}`,
    // PowerDNS would otherwise query its vendor for known vulnerabilities of this version.
    '--security-poll-suffix=',
    '--disable-syslog',
  ])
}

t.test('PowerDNS serves the zone from the database', { skip }, async (t) => {
  const name = new URL(url).pathname.slice(1)
  await sql.unsafe(
    `alter database ${name} set postgram.name_servers = 'ns1.acme.net, ns2.acme.net'`,
  )
  const { address } = await startPowerDns()
  const { look } = createResolver({ servers: [address], hasSandbox: false })
  const dns = new Resolver()
  dns.setServers([address])

  t.test('PowerDNS: finds keys for names in any case', async (t) => {
    t.same(await look(`pg1.${token}.dkim.zone`, 'TXT'), [values[0]])
    t.same(await look(`PG2.${token.toUpperCase()}.dkim.ZONE`, 'TXT'), [values[1]])
  })

  t.test('PowerDNS: denies names that do not exist', async (t) => {
    t.same(await look(`pg3.${token}.dkim.zone`, 'TXT'), [])
    t.same(await look(`pg1.${token}.dkim.zone`, 'CNAME'), [])
    await t.rejects(look('acme.net', 'TXT'), { message: /: EREFUSED$/ })
  })

  t.test('PowerDNS: the zone has its name servers and a serial of the current time', async (t) => {
    t.same((await dns.resolveNs('dkim.zone')).sort(), ['ns1.acme.net', 'ns2.acme.net'])
    const { serial, ...soa } = await dns.resolveSoa('dkim.zone')
    t.same(soa, {
      nsname: 'ns1.acme.net',
      hostmaster: 'hostmaster.dkim.zone',
      refresh: 900,
      retry: 300,
      expire: 1_209_600,
      minttl: 300,
    })
    t.ok(Math.abs(serial - Date.now() / 1000) < 300)
  })

  t.test('PowerDNS: serves a new zone without a restart', async (t) => {
    const other = await createOrganisation(sql)
    const value = newDkimValue()
    const added = { domain: other.domain, dkimZone: 'other.zone', values: [value] }
    const itsToken = await addDkimKeys(sql, added)
    t.same(await look(`pg1.${itsToken}.other.zone`, 'TXT'), [value])
  })

  t.test('PowerDNS: a secondary can transfer the zone', { skip: noNsd }, async (t) => {
    const secondary = await startNsd({ 'dkim.zone': null }, { primary: address })
    const copy = createResolver({ servers: [secondary.address], hasSandbox: false })
    const look = (selector: string) => copy.look(`${selector}.${token}.dkim.zone`, 'TXT')
    // Until its processes have been replaced after the transfer, some lookups fail.
    const found = await until('the copy', () =>
      Promise.all([look('pg1'), look('pg2')]).catch(() => undefined),
    )
    t.same(found, [[values[0]], [values[1]]])
  })
})

t.test('PowerDNS: without postgram.name_servers the name server is ns1 in the zone', async (t) => {
  await sql.begin(async (tx) => {
    for (const none of ['', ' ', ',']) {
      await tx`select set_config('postgram.name_servers', ${none}, true)`
      const [row] = await tx`
        select content from ops.powerdns_records where name = 'dkim.zone' and type = 'NS'`
      t.same(row, { content: 'ns1.dkim.zone' })
    }
  })
})
