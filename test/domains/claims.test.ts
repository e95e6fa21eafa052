import t, { type Test } from 'tap'
import type { Api } from '../../src/db/api.gen.ts'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createRegistry } from '../../src/domains/registry.ts'
import { createResolver } from '../../src/domains/resolver.ts'
import { ProviderUnavailable } from '../../src/providers/email.ts'
import { createDatabase } from '../fixtures/database.ts'
import { get, isRefused, post, request } from '../fixtures/http.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const service = connect(url, { role: 'postgram_service', max: 4 })
t.teardown(() => service.end())
const call = caller(service)

/** A provider that keeps identities by name and notes what it is asked for. */
const identities = new Set<string>()
const asked: string[] = []
let beforeRemoval: (name: string) => Promise<void> | void = () => undefined
const basic = createStandIn()
const provider = createStandIn({
  createDomain: async (domain) => {
    asked.push(`create ${domain.name}`)
    identities.add(domain.name)
    return basic.createDomain(domain)
  },
  checkDomain: async (name) => (identities.has(name) ? 'active' : 'unknown'),
  deleteDomain: async (name) => {
    await beforeRemoval(name)
    asked.push(`delete ${name}`)
    identities.delete(name)
  },
})
const { base } = await startTestService(url, {
  roles: ['api'],
  createEmailProvider: () => provider,
})
t.beforeEach(() => {
  asked.length = 0
  beforeRemoval = () => undefined
})

const add = ({ liveKey }: TestOrganisation, name: string, key = liveKey) =>
  post(`${base}/v1/domains`, key, { name })
const show = ({ liveKey }: TestOrganisation, id: string) => get(`${base}/v1/domains/${id}`, liveKey)
const verify = ({ liveKey }: TestOrganisation, id: string) =>
  post(`${base}/v1/domains/${id}/verify`, liveKey, {})
const remove = ({ liveKey }: TestOrganisation, id: string) =>
  request('DELETE', `${base}/v1/domains/${id}`, liveKey)
const fail = (name: string) => sql`
  update app.domains set status = 'failed', next_check_at = null, created_at = now() - interval '73 hours'
  where name = ${name}`
const barred = (name: string, at: Date) => ({
  retryAfter: String(7 * 24 * 3600),
  words: `Your last claim to ${name} was not verified in time, and another organisation asked for the name. You can add it again at ${at.toISOString()}.`,
})

/** Asserts that an organisation cannot claim the name for a week from its claim's end. */
async function isBarred(t: Test, organisation: TestOrganisation, name: string) {
  const [row] = await sql<{ until: Date }[]>`
    update app.domain_claims set barred_until = date_trunc('milliseconds', now() + interval '7 days')
    where name = ${name} and organisation_id = core.decode_id('org', ${organisation.id})
      and barred_until > now() + interval '6 days 23 hours'
    returning barred_until as until`
  t.ok(row, `${name} is barred for 7 days`)
  const { status, json, headers } = await add(organisation, name)
  t.strictSame(
    [status, json.error.code, json.error.message],
    [409, 'already_exists', barred(name, row?.until ?? new Date()).words],
  )
  t.ok(Number(headers.get('retry-after')) > 6 * 24 * 3600)
}

for (const keyMode of ['liveKey', 'testKey'] as const) {
  t.test(`a name added with a ${keyMode} and never verified is free after 72 hours`, async (t) => {
    const name = `squatted-${keyMode.toLowerCase()}.example`
    const squatter = await createOrganisation(sql)
    const owner = await createOrganisation(sql)
    const { json: claim } = await add(squatter, name, squatter[keyMode])
    isRefused(t, await add(owner, name), 'already_exists')
    await fail(name)
    t.match(await show(squatter, claim.id), { status: 200, json: { status: 'failed' } })

    const { status, json } = await add(owner, name)
    t.match([status, json], [201, { name, status: 'pending' }])
    t.strictSame(
      asked,
      [`create ${name}`, `delete ${name}`, `create ${name}`],
      'the entry of the claim goes before a new one is made',
    )
    isRefused(t, await show(squatter, claim.id), 'not_found')
    isRefused(t, await add(squatter, name), 'already_exists')
    t.equal((await verify(owner, json.id)).json.status, 'verified')
    const [audit] =
      await sql`select action, organisation from ops.audit where target = ${name} and action = 'lose_domain'`
    t.match(audit, { organisation: squatter.id })

    t.equal((await remove(owner, json.id)).status, 200)
    await isBarred(t, squatter, name)
    t.equal((await add(await createOrganisation(sql), name)).status, 201, 'but not for others')
  })
}

t.test('a claim lapses after 72 hours also if its records cannot be looked up', async (t) => {
  const squatter = await createOrganisation(sql)
  const owner = await createOrganisation(sql)
  await add(squatter, 'lame.example')
  await sql`update app.domains set created_at = now() - interval '71 hours 59 minutes' where name = 'lame.example'`
  isRefused(t, await add(owner, 'lame.example'), 'already_exists')
  await sql`update app.domains set created_at = now() - interval '72 hours' where name = 'lame.example'`
  t.equal((await add(owner, 'lame.example')).status, 201)
})

t.test('a verified domain holds its name at any age, a failed one does not', async (t) => {
  const first = await createOrganisation(sql)
  const next = await createOrganisation(sql)
  const { json } = await add(first, 'sold.example')
  await verify(first, json.id)
  await sql`
    update app.domains set created_at = now() - interval '3 years', wrong_since = now() - interval '71 hours'
    where name = 'sold.example'`
  isRefused(t, await add(next, 'sold.example'), 'already_exists')
  await sql`update app.domains set wrong_since = now() - interval '72 hours' where name = 'sold.example'`
  await sql`
    select core.evaluate_domain(d.id, true, jsonb_set(d.records, '{0,status}', '"missing"'))
    from app.domains d where name = 'sold.example'`
  t.match((await show(first, json.id)).json, { status: 'failed' })
  t.equal((await add(next, 'sold.example')).status, 201)
})

t.test('a claim that is removed and added again lapses after 72 hours in all', async (t) => {
  const squatter = await createOrganisation(sql)
  const owner = await createOrganisation(sql)
  const { json } = await add(squatter, 'again.example')
  t.equal((await remove(squatter, json.id)).status, 200)
  const { status, json: second } = await add(squatter, 'again.example')
  t.equal(status, 201, 'while nobody else asks')
  isRefused(t, await add(owner, 'again.example'), 'already_exists')
  t.equal((await remove(squatter, second.id)).status, 200)
  await isBarred(t, squatter, 'again.example')
  await sql`update app.domain_claims set barred_until = now() - interval '1 second' where barred_until is not null`
  t.equal((await add(squatter, 'again.example')).status, 201, 'after a week it may')
})

t.test('a failed claim can be verified or removed while nobody else adds the name', async (t) => {
  const owner = await createOrganisation(sql)
  const { json } = await add(owner, 'late.example')
  await fail('late.example')
  t.match((await add(owner, 'late.example')).json, { id: json.id, status: 'failed' })
  t.equal((await verify(owner, json.id)).json.status, 'verified')
  await fail('late.example')
  t.equal((await remove(owner, json.id)).status, 200)
  t.equal((await add(owner, 'late.example')).status, 201)
})

t.test('a lapsed claim stays unchanged while the provider cannot be reached', async (t) => {
  const squatter = await createOrganisation(sql)
  const owner = await createOrganisation(sql)
  const { json } = await add(squatter, 'away.example')
  await fail('away.example')
  beforeRemoval = () => {
    throw new ProviderUnavailable('it cannot be reached')
  }
  isRefused(t, await add(owner, 'away.example'), 'email_provider_unavailable')
  t.match((await show(squatter, json.id)).json, { id: json.id, status: 'failed' })
  beforeRemoval = () => undefined
  t.equal((await add(owner, 'away.example')).status, 201)
})

t.test('several organisations that add a lapsed name at once: one gets it', async (t) => {
  const squatter = await createOrganisation(sql)
  await add(squatter, 'race.example')
  await fail('race.example')
  const others = await Promise.all(Array.from({ length: 5 }, () => createOrganisation(sql)))
  const answers = await Promise.all(others.map((one) => add(one, 'race.example')))
  t.strictSame(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409])
  t.strictSame(asked.slice(1), ['delete race.example', 'create race.example'])
})

t.test('a verification while another organisation adds the name keeps it', async (t) => {
  const owner = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  const { json } = await add(owner, 'proved.example')
  await fail('proved.example')
  // A check that began earlier and ends now.
  beforeRemoval = async () => {
    const records = json.records.map((record: object) => ({ ...record, status: 'verified' }))
    await sql`
      select core.evaluate_domain(d.id, true, ${sql.json(records)}) from app.domains d where name = 'proved.example'`
  }
  isRefused(t, await add(other, 'proved.example'), 'already_exists')
  t.match((await show(owner, json.id)).json, { id: json.id, status: 'verified' })
  const [row] = await sql`
    select change, next_check_at <= now() as is_due from app.domains where name = 'proved.example'`
  t.same(row, { change: null, isDue: true }, 'a check makes its entry at the provider again')
})

t.test('ops.release_domain: frees a name at once and deletes it at the provider', async (t) => {
  const squatter = await createOrganisation(sql)
  const owner = await createOrganisation(sql)
  for (const name of ['released.example', 'cleared.example']) {
    const { json } = await add(squatter, name)
    isRefused(t, await add(owner, name), 'already_exists')
    const [row] = await sql`select ops.release_domain(${name.toUpperCase()}) as holder`
    t.equal(row?.holder, squatter.id)
    isRefused(t, await show(squatter, json.id), 'not_found')
    await isBarred(t, squatter, name)
    await t.rejects(sql`select ops.release_domain(${name})`, {
      message: `no organisation has the domain '${name}'`,
    })
  }
  t.equal((await add(owner, 'released.example')).status, 201, 'claimed before the job ran')
  const registry = createRegistry({
    call,
    provider,
    resolver: createResolver({ servers: [], hasSandbox: true }),
    dkimZone: 'dkim.postgram.test',
    mailFromLabel: 'mail',
  })
  const jobs = await sql<{ id: string }[]>`
    select j.payload ->> 'id' as id from graphile_worker._private_jobs j where j.key like 'release_domain:%'`
  t.equal(jobs.length, 2)
  for (const { id } of jobs) await registry.release(id)
  t.strictSame(
    [...identities].filter((name) => /^(released|cleared)/.test(name)),
    ['released.example'],
  )
  t.same(await sql`select from app.domains where name = 'cleared.example'`, [])

  await t.rejects(sql`select ops.release_domain(${owner.domain})`, {
    message: `${owner.domain} is verified for ${owner.id}`,
  })
  await t.rejects(sql`select ops.release_domain(null)`, {
    message: 'no organisation has the domain null',
  })
})

t.test('ops.verify_domain: takes over a name whose claim lapsed', async (t) => {
  const squatter = await createOrganisation(sql)
  const owner = await createOrganisation(sql)
  const { json } = await add(squatter, 'moved.example')
  const take = () => sql`select ops.verify_domain(${owner.id}, 'moved.example')`
  await t.rejects(take(), { message: 'another organisation has the domain moved.example' })
  await fail('moved.example')
  await take()
  isRefused(t, await show(squatter, json.id), 'not_found')
})

t.test('calls that make the service ask outside are limited for each organisation', async (t) => {
  const organisation = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  const { json } = await add(organisation, 'limited.example')
  const allow = (count: number) => sql`
    insert into app.provider_calls (organisation_id, allowed, counted_at)
    values (core.decode_id('org', ${organisation.id}), ${count}, now() + interval '1 hour')
    on conflict (organisation_id) do update set allowed = excluded.allowed, counted_at = excluded.counted_at`
  const limited = {
    words:
      'More than 60 calls per minute that add, check or remove domains for this organisation, beyond the first 20.',
  }
  const keys = await sql`select count(*)::integer as keys from app.idempotency_keys`
  for (const ask of [
    () => verify(organisation, json.id),
    () => add(organisation, 'more.example'),
    () => add(organisation, 'more.example', organisation.testKey),
    () => remove(organisation, json.id),
  ]) {
    await allow(0)
    asked.length = 0
    isRefused(t, await ask(), 'rate_limited', undefined, limited)
    t.strictSame(asked, [])
  }
  t.same(await sql`select count(*)::integer as keys from app.idempotency_keys`, keys)
  t.equal((await add(organisation, 'limited.example')).status, 200, 'what asks nobody is free')
  t.equal((await verify(other, (await add(other, 'other.example')).json.id)).status, 200)

  await allow(1)
  t.equal((await verify(organisation, json.id)).status, 200, 'a refused call does not count')

  const atOnce = (calls: number) => sql`
    select count(core.limit_provider_calls(core.decode_id('org', ${organisation.id}))::text)
    from generate_series(1, ${calls}::integer)`
  await sql`delete from app.provider_calls`
  await atOnce(20)
  await sql`delete from app.provider_calls`
  await t.rejects(atOnce(21), { code: 'MSREF', message: 'rate_limited' })
})

t.test('concurrent checks of one domain ask the provider once', async (t) => {
  const { id: organisation } = await createOrganisation(sql)
  let checks = 0
  let waiting = 0
  const gate = Promise.withResolvers<void>()
  const counting = createStandIn({
    async checkDomain() {
      checks += 1
      await gate.promise
      return 'active'
    },
  })
  const registry = createRegistry({
    async call(name, args) {
      const result = await call(name, args)
      const [work] = (name === 'begin_check' ? result : []) as Api['begin_check']['result']
      if (work?.verdict === 'busy' && !('since' in args)) waiting += 1
      return result
    },
    provider: counting,
    resolver: createResolver({ servers: [], hasSandbox: true }),
    dkimZone: 'dkim.postgram.test',
    mailFromLabel: 'mail',
  })
  const [row] = await sql<{ owner: string; id: string }[]>`
    select core.decode_id('org', ${organisation}) as owner, ops.verify_domain(${organisation}, 'shared.example') as id`
  const asker = (key: string) => ({
    organisation_id: row?.owner ?? '',
    mode: 'live',
    fingerprint: 'x',
    key: `caller:${key}`,
  })
  const answers = Promise.all(
    Array.from({ length: 10 }, (_, n) => registry.verify(asker(`${n}`), row?.id ?? '')),
  )
  await until('nine of ten to wait', async () => waiting === 9)
  gate.resolve()
  const bodies = (await answers).map(({ status, body }) => [status, body])
  t.equal(checks, 1)
  t.equal(new Set(bodies.map(String)).size, 1)
  const kept = await sql`select from app.idempotency_keys where status = 200 and fingerprint = 'x'`
  t.equal(kept.length, 10, 'each call keeps its answer')
})
