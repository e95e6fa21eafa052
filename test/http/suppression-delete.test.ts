import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, isRefused, post, request } from '../fixtures/http.ts'
import {
  createOrganisation,
  liftRate,
  listOf,
  type Reason,
  suppress,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const remove = (key: string, id: string) => request('DELETE', `${base}/v1/suppressions/${id}`, key)

const jobs = async () => {
  const rows = await sql<{ payload: { organisation: string } }[]>`
    select j.payload from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    where t.identifier = 'remove_suppression' order by j.id`
  return rows.map(({ payload }) => payload.organisation)
}

/** Returns the addresses of an organisation that wait for their removal at the provider. */
const removalsOf = async ({ id }: TestOrganisation) => {
  const rows = await sql<{ email: string }[]>`
    select email from app.suppression_removals
    where organisation_id = core.decode_id('org', ${id}) order by email`
  return rows.map(({ email }) => email)
}

const uuidOf = async ({ id }: TestOrganisation) =>
  (await sql<{ uuid: string }[]>`select core.decode_id('org', ${id}) as uuid`)[0]?.uuid

t.beforeEach(async () => {
  await sql`delete from graphile_worker._private_jobs`
  await sql`delete from app.suppression_removals`
})

t.test(
  'DELETE /v1/suppressions: an own entry is deleted, and its address can be sent to',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    for (const reason of ['manual', 'unsubscribe', 'complaint'] as const) {
      const id = await suppress(sql, organisation, 'ann@c.example', reason)
      const response = await remove(liveKey, id)
      t.strictSame([response.status, response.text], [200, `{"id":"${id}","deleted":true}`])
      t.strictSame(await listOf(sql, organisation), [])
      const email = anEmail(domain, { to: 'ann@c.example', class: 'marketing' })
      t.equal((await post(`${base}/v1/emails`, liveKey, email)).status, 200, reason)
    }
  },
)

t.test('DELETE /v1/suppressions: a second deletion is not found', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await suppress(sql, organisation, 'ann@c.example')
  const responses = await Promise.all([1, 2, 3].map(() => remove(organisation.liveKey, id)))
  t.strictSame(responses.map(({ status }) => status).sort(), [200, 404, 404])
  isRefused(t, await remove(organisation.liveKey, id), 'not_found')
  t.equal((await jobs()).length, 1)
})

t.test('DELETE /v1/suppressions: an address that is added again gets a new entry', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const add = () => post(`${base}/v1/suppressions`, liveKey, { email: 'ann@c.example' })
  const first = await add()
  await remove(liveKey, first.json.id)
  const second = await add()
  t.equal(second.status, 201)
  t.not(second.json.id, first.json.id)
})

t.test(
  'DELETE /v1/suppressions: an entry of a hard bounce is not found and stays, like its global entry',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    await sql`select ops.suppress_globally('gone@c.example')`
    const id = await suppress(sql, organisation, 'gone@c.example', 'hard_bounce')
    isRefused(t, await remove(liveKey, id), 'not_found')
    t.equal((await listOf(sql, organisation)).length, 1)
    const response = await post(
      `${base}/v1/emails`,
      liveKey,
      anEmail(domain, { to: 'gone@c.example' }),
    )
    isRefused(t, response, 'recipient_suppressed', { to: ['gone@c.example: hard_bounce'] })
    t.strictSame(await jobs(), [])
  },
)

t.test(
  'DELETE /v1/suppressions: deletes an own entry, not the global entry of the same address',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    await sql`select ops.suppress_globally('also@c.example')`
    const id = await suppress(sql, organisation, 'also@c.example', 'manual')
    t.equal((await remove(liveKey, id)).status, 200)
    const response = await post(
      `${base}/v1/emails`,
      liveKey,
      anEmail(domain, { to: 'also@c.example' }),
    )
    isRefused(t, response, 'recipient_suppressed', { to: ['also@c.example: hard_bounce'] })
  },
)

t.test(
  'DELETE /v1/suppressions: unknown and malformed IDs, and those of others, are not found',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const other = await createOrganisation(sql)
    await liftRate(sql, organisation)
    const own = await suppress(sql, organisation, 'ann@c.example')
    const theirs = await suppress(sql, other, 'ann@c.example')
    const ids = [
      theirs,
      'sup_01h455vb4pex5vsknk084sn02q',
      'sup_7zzzzzzzzzzzzzzzzzzzzzzzzz',
      'sup_8zzzzzzzzzzzzzzzzzzzzzzzzz',
      own.toUpperCase(),
      own.slice(4),
      own.replace('sup_', 'em_'),
      own.slice(0, -1),
      `${own}0`,
      `${own}%20`,
      `${own}%00`,
      `%20${own}`,
      'sup_',
      '%',
      '*',
      'null',
      '%27%3B--',
      `sup_${'0'.repeat(5000)}`,
    ]
    for (const id of ids) {
      const name = `${id.slice(0, 40)}`
      isRefused(t, await remove(organisation.liveKey, id), 'not_found', undefined, { name })
    }
    t.equal((await listOf(sql, organisation)).length, 1)
    t.equal((await listOf(sql, other)).length, 1)
    t.strictSame(await jobs(), [])
  },
)

t.test('DELETE /v1/suppressions: the body is ignored', async (t) => {
  const organisation = await createOrganisation(sql)
  for (const body of ['', '{', '{"id":"sup_1"}', 'x'.repeat(100_000)]) {
    const id = await suppress(sql, organisation, 'ann@c.example')
    const path = `${base}/v1/suppressions/${id}`
    t.equal((await request('DELETE', path, organisation.liveKey, body)).status, 200)
  }
})

t.test('removals of one organisation make one job, however many they are', async (t) => {
  const organisation = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  await liftRate(sql, organisation)
  const emails = Array.from({ length: 25 }, (_, n) => `ann${100 + n}@c.example`)
  const ids = await Promise.all(emails.map((email) => suppress(sql, organisation, email)))
  const responses = await Promise.all(ids.map((id) => remove(organisation.liveKey, id)))
  t.ok(responses.every(({ status }) => status === 200))
  t.strictSame(await jobs(), [await uuidOf(organisation)])
  t.strictSame(await removalsOf(organisation), emails)
  await remove(other.liveKey, await suppress(sql, other, 'ann@c.example'))
  t.strictSame(await jobs(), [await uuidOf(organisation), await uuidOf(other)])
})

t.test('a deletion while the removal job runs adds no second job', async (t) => {
  const organisation = await createOrganisation(sql)
  const uuid = (await uuidOf(organisation)) ?? ''
  await remove(organisation.liveKey, await suppress(sql, organisation, 'a@c.example'))
  await sql`update graphile_worker._private_jobs set locked_at = now(), locked_by = 'a-pool'`
  const [job] = await sql<{ id: string }[]>`select id from graphile_worker._private_jobs`
  const start = () => sql<{ email: string; domains: string[] }[]>`
    select * from api.start_suppression_removals(${uuid})`
  t.strictSame([...(await start())], [{ email: 'a@c.example', domains: [organisation.domain] }])
  await remove(organisation.liveKey, await suppress(sql, organisation, 'b@c.example'))
  t.strictSame(await jobs(), [uuid])

  await sql`select api.finish_suppression_removals(${uuid}, '{a@c.example}', ${job?.id ?? ''})`
  t.strictSame(await removalsOf(organisation), ['b@c.example'])
  const [next] = await sql<{ id: string }[]>`select id from graphile_worker._private_jobs`
  t.not(next?.id, job?.id)
  t.strictSame(await jobs(), [uuid], 'the job that ends enqueues the next one')
  await sql`select api.finish_suppression_removals(${uuid}, '{b@c.example}', ${next?.id ?? ''})`
  t.strictSame([await jobs(), await removalsOf(organisation)], [[], []])
})

t.test('a deletion of an organisation without a domain makes no removal job', async (t) => {
  const organisation = await createOrganisation(sql)
  await sql`delete from app.domains where name = ${organisation.domain}`
  const id = await suppress(sql, organisation, 'ann@c.example')
  t.equal((await remove(organisation.liveKey, id)).status, 200)
  t.strictSame(await jobs(), [])
})

t.test('a deletion whose removal job cannot be added is undone', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await suppress(sql, organisation, 'ann@c.example')
  await sql`alter function graphile_worker.add_jobs rename to add_jobs_away`
  isRefused(t, await remove(organisation.liveKey, id), 'internal_error')
  await sql`alter function graphile_worker.add_jobs_away rename to add_jobs`
  t.equal((await listOf(sql, organisation)).length, 1)
  t.equal((await remove(organisation.liveKey, id)).status, 200)
})

t.test(
  'ops.unsuppress_globally: removes the copies of all organisations at the provider',
  async (t) => {
    const [one, two, three] = [
      await createOrganisation(sql),
      await createOrganisation(sql),
      await createOrganisation(sql),
    ]
    await sql`select ops.suppress_globally('lifted@c.example')`
    for (const [organisation, reason] of [
      [one, 'hard_bounce'],
      [two, 'hard_bounce'],
      [three, 'complaint'],
    ] as [TestOrganisation, Reason][]) {
      await suppress(sql, organisation, 'lifted@c.example', reason)
    }
    await sql`select ops.unsuppress_globally('Lifted@C.example')`
    t.strictSame(
      (await jobs()).sort(),
      [(await uuidOf(one)) ?? '', (await uuidOf(two)) ?? ''].sort(),
    )
    t.strictSame(await removalsOf(one), ['lifted@c.example'])
    t.strictSame(await removalsOf(three), [])
    t.strictSame(await listOf(sql, three), [
      { email: 'lifted@c.example', reason: 'complaint', note: '' },
    ])
  },
)
