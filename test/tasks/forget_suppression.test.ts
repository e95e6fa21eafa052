import type { JobHelpers } from 'graphile-worker'
import t from 'tap'
import { ProviderUnavailable } from '../../src/providers/email.ts'
import forgetSuppression from '../../tasks/forget_suppression.ts'
import { createDatabase } from '../fixtures/database.ts'
import { restFailedJobs } from '../fixtures/failed-jobs.ts'
import { request } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { createStandIn } from '../fixtures/stand-in.ts'
import { suppress } from '../fixtures/suppressions.ts'
import { until } from '../fixtures/until.ts'

const { url, sql } = await createDatabase()
const tryAgain = await restFailedJobs(sql)

/** A provider that notes what it forgets, and cannot be reached as often as is asked for. */
function aForgetter() {
  const forgotten: [domain: string, email: string][] = []
  const failing = new Map<string, number>()
  const provider = createStandIn({
    async forgetSuppression(domain, email) {
      const left = failing.get(domain) ?? 0
      failing.set(domain, left - 1)
      if (left > 0) throw new ProviderUnavailable(`${domain} cannot be reached`)
      forgotten.push([domain, email])
    },
  })
  const task = forgetSuppression(provider)
  const run = async (payload: unknown, abortSignal = new AbortController().signal) =>
    task(payload as never, { abortSignal } as JobHelpers)
  return { forgotten, failing, provider, run }
}

t.test('the address is forgotten on each of the domains', async (t) => {
  const { forgotten, run } = aForgetter()
  await run({ email: 'ann@c.example', domains: ['a.example', 'b.example'] })
  t.strictSame(forgotten, [
    ['a.example', 'ann@c.example'],
    ['b.example', 'ann@c.example'],
  ])
})

t.test('one domain that fails keeps no other from it, and fails the job', async (t) => {
  const { forgotten, failing, run } = aForgetter()
  failing.set('a.example', 1)
  failing.set('c.example', 1)
  const payload = { email: 'ann@c.example', domains: ['a.example', 'b.example', 'c.example'] }
  await t.rejects(run(payload), new ProviderUnavailable('a.example cannot be reached'))
  t.strictSame(forgotten, [['b.example', 'ann@c.example']])
  await run(payload)
  t.same(new Set(forgotten.map(([domain]) => domain)).size, 3, 'the next attempt completes it')
})

t.test('a failure does not name the address', async (t) => {
  const task = forgetSuppression(
    createStandIn({
      async forgetSuppression(_, email) {
        throw new ProviderUnavailable(`${email} is no address`)
      },
    }),
  )
  const payload = { email: 'ann@c.example', domains: ['a.example'] }
  const failed = Promise.resolve(task(payload as never, {} as JobHelpers))
  await t.rejects(failed, { message: 'the address is no address', stack: /^(?!.*ann@)/s })
})

t.test('a worker that stops begins no further domain', async (t) => {
  const { forgotten, run } = aForgetter()
  const stopped = AbortSignal.abort(new Error('the worker stopped'))
  const payload = { email: 'ann@c.example', domains: ['a.example'] }
  await t.rejects(run(payload, stopped), { message: 'the worker stopped' })
  t.strictSame(forgotten, [])
})

t.test('a job that makes no sense fails and asks nothing of the provider', async (t) => {
  const { forgotten, run } = aForgetter()
  const domains = ['a.example']
  for (const payload of [
    null,
    [],
    {},
    { email: 'ann@c.example' },
    { domains },
    { email: '', domains },
    { email: 7, domains },
    { email: 'x'.repeat(255), domains },
    { email: 'ann@c.example', domains: 'a.example' },
    { email: 'ann@c.example', domains: [''] },
    { email: 'ann@c.example', domains: [null] },
    { email: 'ann@c.example', domains: ['x'.repeat(254)] },
    { email: 'ann@c.example', domains: Array.from({ length: 101 }, () => 'a.example') },
  ]) {
    await t.rejects(run(payload), { name: 'ValiError' }, JSON.stringify(payload)?.slice(0, 60))
  }
  t.strictSame(forgotten, [])
})

t.test('what is removed here is forgotten by the provider, once it can be reached', async (t) => {
  const { forgotten, failing, provider } = aForgetter()
  const { base, stop } = await startTestService(url, {
    roles: ['api', 'worker'],
    createEmailProvider: () => provider,
  })
  const organisation = await createOrganisation(sql)
  failing.set(organisation.domain, 1)
  const id = await suppress(sql, organisation, 'ann@c.example', 'complaint')
  const { status } = await request('DELETE', `${base}/v1/suppressions/${id}`, organisation.liveKey)
  t.equal(status, 200)
  const jobs = () => sql<{ lastError: string | null }[]>`
    select j.last_error from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    where t.identifier = 'forget_suppression'`
  await until('a failed attempt', async () => (await jobs())[0]?.lastError)
  t.match(await jobs(), [{ lastError: `${organisation.domain} cannot be reached` }])
  t.strictSame(forgotten, [])
  await tryAgain()
  await until('the next attempt', async () => (await jobs()).length === 0)
  t.strictSame(forgotten, [[organisation.domain, 'ann@c.example']])
  await stop()
})

t.test('a hard bounce that is lifted is forgotten too', async (t) => {
  const { forgotten, provider } = aForgetter()
  const { stop } = await startTestService(url, {
    roles: ['worker'],
    createEmailProvider: () => provider,
  })
  const organisation = await createOrganisation(sql)
  await sql`select ops.suppress_globally('gone@c.example')`
  await suppress(sql, organisation, 'gone@c.example', 'hard_bounce')
  await sql`select ops.unsuppress_globally('gone@c.example')`
  await until('it to be forgotten', async () => forgotten.length > 0)
  t.strictSame(forgotten, [[organisation.domain, 'gone@c.example']])
  await stop()
})
