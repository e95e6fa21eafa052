import t from 'tap'
import { createResolver } from '../../src/domains/resolver.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { newDkimValue, noNsd, startNsd } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

type Row = { type: string; name: string; value: string; status: string; found: string[] }

const DKIM_ZONE = 'dkim.service.test'
const SHOP = 'shop.example'

/** A record as its holder writes it into a zone; a priority stays in front of its host. */
const lineOf = ({ type, name, value }: Row) =>
  `${name}. ${type} ${type === 'TXT' ? `"${value}"` : `${value}.`}`

t.test(
  'a domain is verified and its signing key found with a real name server',
  { skip: noNsd },
  async (t) => {
    const { url, sql } = await createDatabase()
    const names = await startNsd({ [SHOP]: '', [DKIM_ZONE]: '' })
    const provider = createStandIn({
      createDomain: async () => ({
        keys: [
          { selector: 'pg1', state: 'active', value: newDkimValue(), private_key: null },
          { selector: 'pg2', state: 'next', value: newDkimValue(), private_key: null },
        ],
        mail_from_mx: { priority: 10, host: 'mxa.provider.test' },
        mail_from_spf: 'v=spf1 include:provider.test ~all',
      }),
    })
    const { base } = await startTestService(url, {
      roles: ['api', 'worker'],
      createEmailProvider: () => provider,
      dkimZone: DKIM_ZONE,
      resolver: createResolver({ servers: [names.address], hasSandbox: false, timeoutMs: 60_000 }),
    })
    const { liveKey } = await createOrganisation(sql)
    const { json } = await post(`${base}/v1/domains`, liveKey, { name: SHOP })
    const records: Row[] = json.records
    const check = async () => (await post(`${base}/v1/domains/${json.id}/verify`, liveKey, {})).json
    const statuses = (domain: { records: Row[] }) => domain.records.map(({ status }) => status)

    const before = await check()
    t.equal(before.status, 'pending')
    t.same(statuses(before), Array(6).fill('missing'))

    const wrong = records.map((row) =>
      row.type === 'MX' ? { ...row, value: '10 mx.elsewhere.test' } : row,
    )
    await names.publish(SHOP, wrong.map(lineOf).join('\n'))
    const half = await until('the zone to be served', async () => {
      const domain = await check()
      return !statuses(domain).includes('missing') && domain
    })
    t.equal(half.status, 'pending')
    t.match(half.records[3], { status: 'mismatch', found: ['10 mx.elsewhere.test'] })
    t.same([...new Set(statuses(half))].sort(), ['mismatch', 'verified'])

    await names.publish(SHOP, records.map(lineOf).join('\n'))
    const after = await until('the mistake to be fixed', async () => {
      const domain = await check()
      return !statuses(domain).includes('mismatch') && domain
    })
    t.equal(after.status, 'verified')
    t.same(statuses(after), Array(6).fill('verified'))
    t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(SHOP))).status, 200)

    const unserved = await post(`${base}/v1/domains`, liveKey, { name: 'unserved.example' })
    await post(`${base}/v1/domains/${unserved.json.id}/verify`, liveKey, {})
    t.same(
      await sql`
        select distinct status, problem ~ 'could not be looked up: EREFUSED$' as is_refused
        from ops.domain_records where domain = 'unserved.example'`,
      [{ status: 'pending', isRefused: true }],
      'operators see why a lookup failed',
    )

    const job = async () => {
      const [row] = await sql<{ lastError: string | null }[]>`
        select j.last_error from graphile_worker._private_jobs j
        join graphile_worker._private_tasks k on k.id = j.task_id where k.identifier = 'rotate_dkim'`
      return row
    }
    await sql`select ops.rotate_dkim(${SHOP})`
    await until('the key to be missed', async () =>
      /not in DNS yet/.test((await job())?.lastError ?? ''),
    )

    const zone = await sql<{ line: string }[]>`select line from ops.dns_zone`
    await names.publish(DKIM_ZONE, zone.map(({ line }) => line).join('\n'))
    await until('the key to sign', async () => {
      await sql`
        select graphile_worker.reschedule_jobs(array(select id from graphile_worker._private_jobs), run_at := now())`
      return !(await job())
    })
    const keys = await sql`
      select k.selector, k.state from app.dkim_keys k join app.domains d on d.id = k.domain_id
      where d.name = ${SHOP} order by k.selector`
    t.same(keys, [
      { selector: 'pg1', state: 'retired' },
      { selector: 'pg2', state: 'active' },
      { selector: 'pg3', state: 'next' },
    ])
  },
)
