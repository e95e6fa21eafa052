import type { JobHelpers } from 'graphile-worker'
import t from 'tap'
import { ProviderUnavailable } from '../../src/providers/email.ts'
import removeSuppression from '../../tasks/remove_suppression.ts'
import { createDatabase, restFailedJobs, serviceCall } from '../fixtures/database.ts'
import { request } from '../fixtures/http.ts'
import { createOrganisation, suppress } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const tryAgain = await restFailedJobs(sql)

const call = serviceCall(url, { max: 1 })

/** A provider that records the removed suppressions and fails as often as a test sets. */
function aRemover() {
  const removed: [domain: string, email: string][] = []
  const failing = new Map<string, number>()
  const provider = createStandIn({
    async removeSuppression(domain, email) {
      const left = failing.get(email) ?? 0
      failing.set(email, left - 1)
      if (left > 0) throw new ProviderUnavailable(`${email} cannot be reached`)
      removed.push([domain, email])
    },
  })
  const task = removeSuppression(call, provider)
  const run = async (payload: unknown, abortSignal = new AbortController().signal) =>
    task(payload as never, { abortSignal, job: { id: '0' } } as JobHelpers)
  return { removed, failing, provider, run }
}

/** An organisation with addresses to remove at the provider, and the payload of its job. */
async function anOrganisation(...emails: string[]) {
  const { id, domain } = await createOrganisation(sql)
  const [row] = await sql<
    { organisation: string }[]
  >`select core.decode_id('org', ${id}) as organisation`
  const organisation = row?.organisation ?? ''
  await sql`
    insert into app.suppression_removals (organisation_id, email)
    select ${organisation}, e from unnest(${emails}::text[]) e`
  const left = async () => {
    const rows = await sql<{ email: string }[]>`
      select email from app.suppression_removals where organisation_id = ${organisation} order by email`
    return rows.map(({ email }) => email)
  }
  return { id, domain, payload: { organisation }, left }
}

const nextJob = ({ organisation }: { organisation: string }) => sql`
  select from graphile_worker._private_jobs where key = ${`remove_suppression:${organisation}`}`

t.test('an address is removed from each domain of its organisation', async (t) => {
  const { removed, run } = aRemover()
  const { id, domain, payload, left } = await anOrganisation('ann@c.example')
  await sql`select ops.verify_domain(${id}, ${`a.${domain}`})`
  await run(payload)
  t.strictSame(removed, [
    [`a.${domain}`, 'ann@c.example'],
    [domain, 'ann@c.example'],
  ])
  t.strictSame([await left(), (await nextJob(payload)).length], [[], 0])
})

t.test('a job removes ten addresses and adds a job for the others', async (t) => {
  const { removed, run } = aRemover()
  const emails = Array.from({ length: 12 }, (_, n) => `ann${10 + n}@c.example`)
  const { payload, left } = await anOrganisation(...emails)
  await run(payload)
  t.strictSame([removed.length, await left()], [10, emails.slice(10)])
  t.equal((await nextJob(payload)).length, 1)
  await run(payload)
  t.strictSame([removed.length, await left()], [12, []])
})

t.test('a failed address does not stop the others, fails the job and goes last', async (t) => {
  const { removed, failing, run } = aRemover()
  const emails = Array.from({ length: 11 }, (_, n) => `ann${10 + n}@c.example`)
  const { payload, left } = await anOrganisation(...emails)
  failing.set('ann10@c.example', 1)
  // The provider's error without the address, because addresses are not logged.
  await t.rejects(run(payload), new ProviderUnavailable('the address cannot be reached'))
  t.strictSame([removed.length, await left()], [9, ['ann10@c.example', 'ann20@c.example']])
  t.equal((await nextJob(payload)).length, 0, 'the worker tries the same job again')
  await run(payload)
  t.strictSame(
    removed.slice(9).map(([, email]) => email),
    ['ann10@c.example', 'ann20@c.example'],
  )
})

t.test('a worker that stops starts no further address', async (t) => {
  const { removed, run } = aRemover()
  const { payload, left } = await anOrganisation('ann@c.example')
  const stopped = AbortSignal.abort(new Error('the worker stopped'))
  await t.rejects(run(payload, stopped), { message: 'the worker stopped' })
  t.strictSame([removed, await left()], [[], ['ann@c.example']])
})

t.test('a payload that names no organisation fails the job', async (t) => {
  const { removed, run } = aRemover()
  for (const payload of [null, [], {}, { organisation: 'org_1' }, { organisation: 7 }]) {
    await t.rejects(run(payload), { name: 'ValiError' }, JSON.stringify(payload))
  }
  t.strictSame(removed, [])
})

t.test('a removed suppression is removed from the provider once it is reachable', async (t) => {
  const { removed, failing, provider } = aRemover()
  const { base, stop } = await startTestService(url, {
    roles: ['api', 'worker'],
    createEmailProvider: () => provider,
  })
  const organisation = await createOrganisation(sql)
  failing.set('ann@c.example', 1)
  const id = await suppress(sql, organisation, 'ann@c.example', 'complaint')
  const { status } = await request('DELETE', `${base}/v1/suppressions/${id}`, organisation.liveKey)
  t.equal(status, 200)
  const jobs = () => sql<{ lastError: string | null }[]>`
    select j.last_error from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    where t.identifier = 'remove_suppression'`
  await until('a failed attempt', async () => (await jobs())[0]?.lastError)
  t.match(await jobs(), [{ lastError: 'the address cannot be reached' }])
  t.strictSame(removed, [])
  await tryAgain()
  await until('the next attempt', async () => (await jobs()).length === 0)
  t.strictSame(removed, [[organisation.domain, 'ann@c.example']])
  await stop()
})

t.test('a lifted hard bounce is removed from the provider as well', async (t) => {
  const { removed, provider } = aRemover()
  const { stop } = await startTestService(url, {
    roles: ['worker'],
    createEmailProvider: () => provider,
  })
  const organisation = await createOrganisation(sql)
  await sql`select ops.suppress_globally('gone@c.example')`
  await suppress(sql, organisation, 'gone@c.example', 'hard_bounce')
  await sql`select ops.unsuppress_globally('gone@c.example')`
  await until('the removal', async () => removed.length > 0)
  t.strictSame(removed, [[organisation.domain, 'gone@c.example']])
  await stop()
})
