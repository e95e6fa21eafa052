import t from 'tap'
import { checkRecords } from '../../src/domains/check-records.ts'
import { recordsOf } from '../../src/domains/records.ts'
import { createResolver } from '../../src/domains/resolver.ts'
import { createDatabase, raisedBy, rolledBack } from '../fixtures/database.ts'
import { addDkimKeys, newDkimValue, noNsd, startNsd } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()
const { id: organisation, domain } = await createOrganisation(sql)
const values = [newDkimValue(), newDkimValue()]
const token = await addDkimKeys(sql, { domain, dkimZone: 'dkim.zone', values })

t.test('ops.dns_zone: each key has a line with its name in the zone', async (t) => {
  const rows = await sql`select zone, name, type, ttl, value from ops.dns_zone order by name`
  t.same(
    rows,
    values.map((value, place) => ({
      zone: 'dkim.zone',
      name: `pg${place + 1}.${token}.dkim.zone.`,
      type: 'TXT',
      ttl: 3600,
      value,
    })),
  )
})

t.test('ops.dns_zone: a domain without a zone has no lines', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`update app.domains set dkim_zone = null`
    t.same(await tx`select from ops.dns_zone`, [])
    t.same(await tx`select from ops.powerdns_records`, [])
  })
})

t.test(
  'ops.dns_zone: a value is split into quoted and escaped strings of 255 characters',
  async (t) => {
    for (const [value, strings] of [
      ['k=rsa; p=abc', '"k=rsa; p=abc"'],
      [String.raw`a "b" \c`, String.raw`"a \"b\" \\c"`],
      ['x'.repeat(255), `"${'x'.repeat(255)}"`],
      ['x'.repeat(256), `"${'x'.repeat(255)}" "x"`],
      [
        '"'.repeat(511),
        ['\\"'.repeat(255), '\\"'.repeat(255), '\\"'].map((s) => `"${s}"`).join(' '),
      ],
    ] as const) {
      const [row] = await sql`select core.txt_strings(${value}) as strings`
      t.equal(row?.strings, strings)
    }
  },
)

t.test('ops.dns_zone: a value that could end its line is refused', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const value of ['k=rsa\nevil. 60 IN A 192.0.2.1', 'k=rsa;\tp=', 'k=rsa; p=\u00e9', '']) {
      const { constraint_name: rule } = await raisedBy(
        tx,
        (inner) => inner`update app.dkim_keys set value = ${value}`,
      )
      t.match(rule, /^dkim_keys_value_/)
    }
  })
})

t.test('ops.powerdns_records: a name is found by an index', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.domains (id, organisation_id, name, dkim_zone)
      select core.new_id(now()), core.decode_id('org', ${organisation}), 'd' || n || '.zone', 'dkim.zone'
      from generate_series(1, 2000) n`
    await tx`
      insert into app.dkim_keys (domain_id, selector, state, host, value, created_at)
      select d.id, 'pg1', 'active', core.dkim_host('pg1', d.id, 'dkim.zone'), 'k=rsa; p=', now()
      from app.domains d where d.name like 'd%.zone'`
    await tx`analyze app.domains`
    await tx`analyze app.dkim_keys`
    const plan = await tx`
      explain select * from ops.powerdns_records where name = ${`pg1.${token}.dkim.zone`} and domain_id = 1`
    t.notMatch(JSON.stringify(plan), 'Seq Scan')
    t.match(JSON.stringify(plan), 'dkim_keys_one_per_host')
  })
})

t.test('ops.dns_zone: nsd loads the zone', { skip: noNsd }, async (t) => {
  const customers = recordsOf({
    name: 'acme.zone',
    mailFromLabel: 'mail',
    token,
    dkimZone: 'dkim.zone',
    identity: {
      mail_from_mx: { priority: 10, host: 'mx.provider.zone' },
      mail_from_spf: 'v=spf1 include:provider.zone ~all',
    },
  })
  const lines = await sql<{ line: string }[]>`select line from ops.dns_zone`
  const { address } = await startNsd({
    'dkim.zone': lines.map(({ line }) => line).join('\n'),
    'acme.zone': customers
      .map(({ name, type, value }) =>
        type === 'TXT' ? `${name}. TXT "${value}"` : `${name}. ${type} ${value}.`,
      )
      .join('\n'),
  })
  const resolver = createResolver({ servers: [address], hasSandbox: false })

  t.test('ops.dns_zone: nsd returns the keys for names in any case', async (t) => {
    t.same(await resolver.look(`pg1.${token}.dkim.zone`, 'TXT'), [values[0]])
    t.same(await resolver.look(`PG2.${token.toUpperCase()}.DKIM.zone`, 'TXT'), [values[1]])
    t.same(await resolver.look(`pg3.${token}.dkim.zone`, 'TXT'), [])
  })

  t.test('ops.dns_zone: the CNAME records of a domain point to the keys', async (t) => {
    t.same(await resolver.look('pg1._domainkey.acme.zone', 'TXT'), [values[0]])
    t.same(await resolver.look('pg2._domainkey.acme.zone', 'TXT'), [values[1]])
  })

  t.test('ops.dns_zone: all required records of the domain verify', async (t) => {
    const records = await checkRecords(customers, resolver)
    t.same(
      records.map(({ status }) => status),
      Array(6).fill('verified'),
    )
  })
})
