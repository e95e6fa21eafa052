import t from 'tap'
import type { ServiceOptions } from '../../src/service/index.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { anSms, post } from '../fixtures/http.ts'
import { backlogOf, jobsOf, messageOf, send, sendBatch } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { createSmsStandIn, createStandIn, untakenPartsOf } from '../fixtures/providers.ts'
import { sendHeartbeat, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const batchOf = (count: number) => Array.from({ length: count }, () => ({}))

const priorityOf = async (id: string) => (await jobsOf(sql, id))[0]?.priority

t.test('a message waits behind the backlog of its organisation only', async (t) => {
  const organisation = await createOrganisation(sql)
  const ids = await sendBatch(base, organisation, batchOf(250))
  for (const [place, id] of ids.entries()) {
    const before = place + 1
    t.equal(await priorityOf(id), Math.floor(before / 100), `number ${before}`)
  }
  const last = await send(base, organisation)
  t.equal(await priorityOf(last), 2)
  t.equal(await backlogOf(sql, organisation), 251)

  const others = await send(base, await createOrganisation(sql))
  t.equal(await priorityOf(others), 0, 'others have their own count')
  const call = serviceCall(url)
  await sendHeartbeat(call)
  for (const [id, before] of [
    [last, 251],
    [others, 99],
  ] as const) {
    const [row] = await sql<{ why: string }[]>`select ops.why(${id})`
    t.equal(row?.why, `The message waits behind ${before} messages.`, 'of no later priority')
  }
  await call('deregister', { pool_id: 'the-test-itself' })
  await sql`delete from graphile_worker._private_jobs`
})

t.test('marketing has one priority step less', async (t) => {
  const organisation = await createOrganisation(sql)
  const html = '<p>News. <a href="{{unsubscribe_url}}">Unsubscribe</a></p>'
  const marketing = await send(base, organisation, { class: 'marketing', html })
  const transactional = await send(base, organisation)
  t.equal(await priorityOf(marketing), 1)
  t.equal(await priorityOf(transactional), 0)
  await sql`delete from graphile_worker._private_jobs`
})

t.test('a message does not wait behind 50 000 of another organisation', async (t) => {
  const [loud, quiet] = [await createOrganisation(sql), await createOrganisation(sql)]
  const batch = batchOf(1000)
  // All of them wait before a worker starts, so that it cannot be as fast as they are accepted.
  for (let queued = 0; queued < 50; queued += 1) await sendBatch(base, loud, batch)
  const service = await spawnService(url)
  while ((await backlogOf(sql, loud)) > 10_000) {
    const id = await send(service.base, quiet)
    await until('it to be sent', async () => (await messageOf(sql, id)).sentAt)
  }
  await service.end('SIGKILL')

  const sends = await sql<{ waitedMs: number; overtook: number }[]>`
    select
      extract(epoch from q.sent_at - q.created_at)::float8 * 1000 as waited_ms,
      count(*) filter (where l.sent_at is null or l.sent_at > q.sent_at)::integer as overtook
    from app.messages q, app.messages l
    where q.organisation_id = core.decode_id('org', ${quiet.id}) and l.organisation_id = core.decode_id('org', ${loud.id})
    group by q.id
    order by waited_ms`
  t.ok(sends.length > 0, 'messages are sent while thousands wait')
  const least = Math.min(...sends.map(({ overtook }) => overtook))
  const median = Math.round(sends[Math.floor(sends.length / 2)]?.waitedMs ?? Number.NaN)
  t.comment(`${sends.length} sends: median ${median} ms, each overtook ${least} or more`)
  t.ok(least > 1000, 'thousands that were accepted before are sent after it')
})

/** An API and a worker with a database of their own. */
async function startWorker(options: Partial<ServiceOptions> = {}) {
  const { url, sql } = await createDatabase()
  return { sql, ...(await startTestService(url, { roles: ['api', 'worker'], ...options })) }
}

t.test('a job with an invalid payload fails with its error and delays no other', async (t) => {
  const { sql, base, stop } = await startWorker()
  const payloads = ['null', '[]', '{}', '{"id": 7}', '{"id": "em_01"}']
  await sql`
    select graphile_worker.add_job('send_email', p.payload::json, priority := -1)
    from unnest(${payloads}::text[]) as p (payload)`
  const ids = await sendBatch(base, await createOrganisation(sql), batchOf(20))
  for (const id of ids) {
    await until('it to be sent', async () => (await messageOf(sql, id)).sentAt)
    t.match(await messageOf(sql, id), { attempts: 1 })
  }
  const failed = await until('the failures', async () => {
    const jobs = await sql<{ lastError: string }[]>`
      select last_error from graphile_worker._private_jobs
      where last_error is not null and locked_by is null`
    return jobs.length === payloads.length && jobs
  })
  t.ok(failed.every(({ lastError }) => lastError.startsWith('Invalid')))
  await stop()
})

/** 3 MB, the maximum that the API accepts. */
const large = { html: 'a'.repeat(2_000_000), text: 'a'.repeat(1_000_000) }

/** The number of these emails that fit in 24 MB. */
const AT_A_TIME = 8

t.test(
  'a worker has 24 MB of large emails in hand, and small ones pass those that wait',
  async (t) => {
    const { promise: answer, resolve: take } = Promise.withResolvers<void>()
    const provider = createStandIn()
    let inHand = 0
    let most = 0
    provider.onSend = async ({ html }) => {
      if (html === null) return { outcome: 'sent' }
      inHand += 1
      most = Math.max(most, inHand)
      await answer
      inHand -= 1
      return { outcome: 'sent' }
    }
    const { sql, base, stop } = await startWorker({ createEmailProvider: () => provider })
    const organisation = await createOrganisation(sql)
    const ids: string[] = []
    for (let n = 0; n < AT_A_TIME + 4; n += 1) ids.push(await send(base, organisation, large))
    await until('as many as fit to be in progress', async () => inHand === AT_A_TIME)
    const small = await send(base, organisation)
    await until('the small one', async () => (await messageOf(sql, small)).status === 'sent')
    const waiting = await sql`select from app.messages where status = 'queued' and attempts = 0`
    t.equal(waiting.length, 4, 'the waiting ones were not attempted')

    take()
    for (const id of ids) {
      await until('each large one', async () => (await messageOf(sql, id)).status === 'sent')
    }
    t.equal(most, AT_A_TIME)
    t.equal(provider.handed.length, ids.length + 1, 'each is attempted once')
    await stop()
  },
)

t.test(
  'core.large_bytes(): counts at most 16 MB for an email, and 0 for a small one',
  async (t) => {
    const [row] = await sql`
    select core.large_bytes(65536) as small, core.large_bytes(65537) as large, core.large_bytes(10000000000) as largest`
    t.same(row, { small: 0, large: 65537, largest: 16 * 1024 * 1024 })
  },
)

t.test('a slow SMS network does not delay emails', async (t) => {
  const { promise: answer, resolve: take } = Promise.withResolvers<void>()
  const network = createSmsStandIn()
  network.onSend = async (sms) => {
    await answer
    return { outcome: 'sent', parts: untakenPartsOf(sms) }
  }
  const { sql, base, stop } = await startWorker({
    createSmsProvider: () => network,
    workerConcurrency: 2,
    smsConcurrency: 2,
  })
  const organisation = await createOrganisation(sql)
  const messages = Array.from({ length: 10 }, () => anSms())
  const { json } = await post(`${base}/v1/sms/batch`, organisation.liveKey, { messages })
  await until('all attempts of SMS to be in progress', async () => network.handed.length === 2)

  const email = await send(base, organisation, { to: 'delivered@sandbox.postgram.test' })
  await until('the email', async () => (await messageOf(sql, email)).status !== 'queued')
  t.equal(network.handed.length, 2, 'no more SMS are in progress than the limit')

  take()
  for (const { data } of json.results) {
    await until('each SMS', async () => (await messageOf(sql, data.id)).status === 'sent')
  }
  await stop()
})

t.test(
  'a worker with a slow provider has few messages of others before a login code',
  async (t) => {
    const CONCURRENCY = 4
    const provider = createStandIn()
    const waiting: (() => void)[] = []
    provider.onSend = async () => {
      await new Promise<void>((resolve) => void waiting.push(resolve))
      return { outcome: 'sent' }
    }
    const { sql, base, stop } = await startWorker({
      createEmailProvider: () => provider,
      workerConcurrency: CONCURRENCY,
    })
    await sendBatch(base, await createOrganisation(sql), batchOf(500))
    const respond = () => {
      for (const resolve of waiting.splice(0)) resolve()
    }
    // The first hundred have the priority of the login code.
    await until('messages of a later priority', async () => {
      respond()
      return provider.handed.length > 150
    })
    const code = await send(base, await createOrganisation(sql))
    const { id } = await messageOf(sql, code)
    const before = provider.handed.length
    await until('the login code', async () => {
      respond()
      return provider.handed.includes(id)
    })
    const ahead = provider.handed.indexOf(id) - before
    t.comment(`${ahead} messages were ahead`)
    t.ok(ahead < 5 * CONCURRENCY + 16)

    provider.onSend = () => ({ outcome: 'sent' })
    await respond()
    await stop()
  },
)

t.test('checks of domains that take their time hold up no email', async (t) => {
  const { promise: answer, resolve: go } = Promise.withResolvers<void>()
  let checks = 0
  const checked = new Set<string>()
  const provider = createStandIn({
    async checkDomain(name) {
      checks += 1
      checked.add(name)
      await answer
      return 'active'
    },
  })
  const { sql, base } = await startWorker({
    createEmailProvider: () => provider,
    workerConcurrency: 1,
  })
  const organisation = await createOrganisation(sql)
  for (let n = 0; n < 30; n++) {
    await sql`select ops.verify_domain(${organisation.id}, ${`n${n}.${organisation.domain}`})`
  }
  await sql`select api.enqueue_due_domain_checks('stand-in')`
  await until('checks to be in progress', async () => checks === 10)

  const email = await send(base, organisation)
  await until('the email', async () => (await messageOf(sql, email)).status === 'sent')
  t.equal(checks, 10, 'no more checks are in progress than the limit')
  go()
  const domains = await sql`select from app.domains`
  await until('a check of each domain', async () => checked.size === domains.length)
})
