import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createRegistry } from '../../src/domains/registry.ts'
import { createResolver } from '../../src/domains/resolver.ts'
import { DomainRefused, ProviderUnavailable } from '../../src/providers/email.ts'
import { createDatabase } from '../fixtures/database.ts'
import { get, isRefused, post, request } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const service = connect(url, { role: 'postgram_service', max: 1 })
t.teardown(() => service.end())

/** A provider that keeps identities by name, and is out of reach where the test says so. */
const identities = new Map<string, number>()
let outage: 'none' | 'before' | 'after' = 'none'
const answering = <Result>(work: () => Result): Result => {
  if (outage === 'before') throw new ProviderUnavailable('it cannot be reached')
  const result = work()
  if (outage === 'after') throw new ProviderUnavailable('its answer was lost')
  return result
}
const basic = createStandIn()
const provider = createStandIn({
  createDomain: async (domain) =>
    answering(() => {
      identities.set(domain.name, (identities.get(domain.name) ?? 0) + 1)
      return basic.createDomain(domain)
    }),
  checkDomain: async (name) => answering(() => (identities.has(name) ? 'active' : 'unknown')),
  deleteDomain: async (name) =>
    answering(() => {
      identities.delete(name)
    }),
})
const { base } = await startTestService(url, {
  roles: ['api'],
  createEmailProvider: () => provider,
})
t.afterEach(() => {
  outage = 'none'
})

const add = (key: string, name: string, headers?: Record<string, string>) =>
  post(`${base}/v1/domains`, key, { name }, headers)
const verify = (key: string, id: string) => post(`${base}/v1/domains/${id}/verify`, key, {})
const remove = (key: string, id: string) => request('DELETE', `${base}/v1/domains/${id}`, key)
const list = async (key: string) =>
  (await get(`${base}/v1/domains`, key)).json.data as { name: string; status: string }[]
const namesOf = async (key: string) => (await list(key)).map(({ name }) => name)

for (const moment of ['before', 'after'] as const) {
  t.test(`add(): a provider that fails ${moment} the addition changes nothing`, async (t) => {
    const { liveKey, domain } = await createOrganisation(sql)
    const name = `${moment}.add.example`
    const key = { 'Idempotency-Key': moment }
    outage = moment
    isRefused(t, await add(liveKey, name, key), 'email_provider_unavailable')
    t.same(await namesOf(liveKey), [domain], 'nothing changed')
    t.same(await sql`select from app.domains where name = ${name}`, [])
    t.same(await sql`select from app.idempotency_keys where key = ${`caller:${moment}`}`, [])

    outage = 'none'
    const { status, headers } = await add(liveKey, name, key)
    t.equal(status, 201, 'the next try goes on from there')
    t.equal(headers.get('idempotent-replayed'), null)
  })

  t.test(`remove(): a provider that fails ${moment} the removal changes nothing`, async (t) => {
    const { liveKey, domain } = await createOrganisation(sql)
    const name = `${moment}.remove.example`
    const { json } = await add(liveKey, name)
    await verify(liveKey, json.id)
    outage = moment
    isRefused(t, await remove(liveKey, json.id), 'email_provider_unavailable')
    const [mine] = (await list(liveKey)).filter((one) => one.name !== domain)
    t.match(mine, { name, status: 'verified' }, 'nothing changed')

    outage = 'none'
    t.equal((await verify(liveKey, json.id)).json.status, 'verified')
    t.ok(identities.has(name), 'a missing identity is made again')
    t.equal((await remove(liveKey, json.id)).status, 200)
    t.notOk(identities.has(name))
  })
}

t.test('verify(): a provider that cannot be reached changes nothing', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { json } = await add(liveKey, 'check.example')
  outage = 'before'
  const path = `${base}/v1/domains/${json.id}/verify`
  const key = { 'Idempotency-Key': 'check' }
  isRefused(t, await post(path, liveKey, {}, key), 'email_provider_unavailable')
  t.strictSame((await get(`${base}/v1/domains/${json.id}`, liveKey)).json, json, 'nothing changed')
  outage = 'none'
  const again = await post(path, liveKey, {}, key)
  t.equal(again.json.status, 'verified')
  t.equal(again.headers.get('idempotent-replayed'), null)
})

t.test('add(): concurrent calls for one name add it once and ask the provider once', async (t) => {
  const one = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  const answers = await Promise.all(
    [one, other, one, other, one, other, one, other].map(async ({ id, liveKey }) => ({
      id,
      status: (await add(liveKey, 'race.example')).status,
    })),
  )
  const winner = answers.find(({ status }) => status === 201)?.id
  t.same(answers.map(({ id, status }) => [id === winner, status]).sort(), [
    [false, 409],
    [false, 409],
    [false, 409],
    [false, 409],
    [true, 200],
    [true, 200],
    [true, 200],
    [true, 201],
  ])
  t.equal(identities.get('race.example'), 1)
})

t.test('add(): concurrent calls with one Idempotency-Key run once and replay', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const key = { 'Idempotency-Key': 'many' }
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => add(liveKey, 'many.example', key)),
  )
  t.same(new Set(answers.map(({ status }) => status)), new Set([201]))
  t.equal(new Set(answers.map(({ text }) => text)).size, 1)
  t.equal(answers.filter(({ headers }) => headers.get('idempotent-replayed')).length, 5)
  t.equal(identities.get('many.example'), 1)
})

t.test('add(): concurrent calls do not exceed the plan', async (t) => {
  const { id, liveKey } = await createOrganisation(sql)
  await sql`select ops.create_plan('three', 'Three', 0, 100, 0, 3)`
  await sql`select ops.set_plan(${id}, 'three')`
  const answers = await Promise.all(
    [1, 2, 3, 4, 5].map((place) => add(liveKey, `plan${place}.example`)),
  )
  t.same(answers.map(({ status }) => status).sort(), [201, 201, 402, 402, 402])
  t.equal((await list(liveKey)).length, 3)
})

/** Inserts the row that a process leaves when it is killed while it asks the provider. */
const abandon = (name: string, organisation: string, change: string, age: string) => sql`
  insert into app.domains (id, organisation_id, name, change, change_since)
  values (gen_random_uuid(), core.decode_id('org', ${organisation}), ${name}, ${change}, now() - ${age}::interval)`

t.test('add(): a name reserved by a killed process is free after 3 minutes', async (t) => {
  const one = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  await abandon('own.example', one.id, 'adding', '3 minutes')
  await abandon('others.example', other.id, 'adding', '3 minutes')
  t.same(await namesOf(other.liveKey), [other.domain], 'a reservation is seen by nobody')
  t.equal((await add(one.liveKey, 'own.example')).status, 201)
  t.equal((await add(one.liveKey, 'others.example')).status, 201)
  t.same((await namesOf(one.liveKey)).sort(), ['others.example', 'own.example', one.domain].sort())
})

t.test('add(): the Idempotency-Key of a killed process is free after 3 minutes', async (t) => {
  const { id, liveKey } = await createOrganisation(sql)
  const key = { 'Idempotency-Key': 'killed' }
  await sql`
    insert into app.idempotency_keys (organisation_id, mode, key, created_at, fingerprint, status, body)
    values (core.decode_id('org', ${id}), 'live', 'caller:killed', now() - interval '3 minutes', 'x', null, null)`
  t.equal((await add(liveKey, 'killed.example', key)).status, 201)
  const email = { from: 'a@killed.example', to: 'b@example.com', subject: 'x', text: 'x' }
  isRefused(t, await post(`${base}/v1/emails`, liveKey, email, key), 'idempotency_conflict')
})

t.test('remove(): a removal by a killed process is undone by the next check', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { json } = await add(liveKey, 'begun.example')
  await verify(liveKey, json.id)
  identities.delete('begun.example')
  await sql`
    update app.domains set change = 'removing', change_since = now() - interval '3 minutes'
    where name = 'begun.example'`
  await sql`select api.enqueue_due_domain_checks(${provider.name})`
  const jobs = await sql`
    select payload from graphile_worker._private_jobs j
    join app.domains d on d.id = (j.payload ->> 'id')::uuid
    where d.name = 'begun.example' and d.change is null`
  t.equal(jobs.length, 1, 'a check is to come')
  t.equal((await verify(liveKey, json.id)).json.status, 'verified')
  t.ok(identities.has('begun.example'), 'which makes it again at the provider')
})

t.test('verify(): a domain of another provider is made at this one', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { json } = await add(liveKey, 'moved.example')
  await verify(liveKey, json.id)
  await sql`update app.domains set provider = 'before' where name = 'moved.example'`
  identities.delete('moved.example')
  const moved = await verify(liveKey, json.id)
  t.match(moved.json, { status: 'verified' })
  t.ok(identities.has('moved.example'))
  const [row] = await sql`select provider from app.domains where name = 'moved.example'`
  t.same(row, { provider: 'stand-in' })
})

t.test('verify(): a manually verified domain gets its records at the first check', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const [before] = (await get(`${base}/v1/domains`, liveKey)).json.data
  t.match(before, { name: domain, status: 'verified', records: [] })
  const { json } = await verify(liveKey, before.id)
  t.equal(json.records.length, 6)
  t.equal(json.status, 'verified')
})

t.test('enqueue_due_domain_checks: all domains follow a change of provider', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const { json } = await add(liveKey, 'changed.example')
  await verify(liveKey, json.id)
  const isDue = async () => {
    const [row] = await sql<{ isDue: boolean }[]>`
      select next_check_at < now() + interval '6 minutes' as is_due from app.domains where name = 'changed.example'`
    return row?.isDue
  }
  await sql`update app.domains set next_check_at = now() + interval '1 day'`
  t.equal((await sql`select api.enqueue_due_domain_checks('stand-in') as count`)[0]?.count, 0)
  t.equal(await isDue(), false)
  await sql`update app.domains set provider = 'before' where name = 'changed.example'`
  t.equal(
    (await sql`select api.enqueue_due_domain_checks('stand-in') as count`)[0]?.count,
    0,
    'not while its last check, which may have been refused, is fresh',
  )
  await sql`update app.domains set last_checked_at = now() - interval '5 minutes' where name = 'changed.example'`
  t.equal((await sql`select api.enqueue_due_domain_checks('stand-in') as count`)[0]?.count, 1)
  t.equal(
    (await sql`select api.enqueue_due_domain_checks('stand-in') as count`)[0]?.count,
    0,
    'once',
  )
  t.equal(await isDue(), true, 'and again soon, should that check come to nothing')
})

t.test('check(): a domain that the provider refuses is checked once and not retried', async (t) => {
  const { domain } = await createOrganisation(sql)
  const registry = createRegistry({
    call: caller(service),
    provider: createStandIn({
      createDomain: async () => Promise.reject(new DomainRefused('it is another account’s')),
    }),
    resolver: createResolver({ servers: [], hasSandbox: true }),
    dkimZone: 'dkim.test',
    mailFromLabel: 'mail',
  })
  const [row] = await sql<{ id: string }[]>`select id from app.domains where name = ${domain}`
  await registry.check(row?.id ?? '')
  const [after] = await sql`
    select status, records, last_checked_at > created_at as is_checked from app.domains where name = ${domain}`
  t.same(after, { status: 'verified', records: [], isChecked: true }, 'it stays manually verified')
})

t.test('remove(): blocks checks, and has no effect if it takes too long', async (t) => {
  const { id, liveKey } = await createOrganisation(sql)
  const { json } = await add(liveKey, 'slow.example')
  await sql`
    update app.domains set change = 'removing', change_since = now() where name = 'slow.example'`
  const [work] = await sql<{ verdict: string }[]>`
    select verdict from api.begin_check(core.decode_id('org', ${id}), 'live', 'x', ${json.id})`
  t.equal(work?.verdict, 'busy')

  await sql`update app.domains set change = null, change_since = null where name = 'slow.example'`
  const { deleteDomain } = provider
  provider.deleteDomain = async () => {
    await sql`update app.domains set change = null, change_since = null where name = 'slow.example'`
  }
  isRefused(t, await remove(liveKey, json.id), 'email_provider_unavailable')
  provider.deleteDomain = deleteDomain
  t.match((await get(`${base}/v1/domains/${json.id}`, liveKey)).json, { name: 'slow.example' })
  t.equal((await remove(liveKey, json.id)).status, 200)
})
