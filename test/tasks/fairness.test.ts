import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { backlogOf, jobsOf, messageOf, send, sendBatch } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
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
  t.equal(await priorityOf(await send(base, organisation)), 2)
  t.equal(await backlogOf(sql, organisation), 251)

  const other = await createOrganisation(sql)
  t.equal(await priorityOf(await send(base, other)), 0, 'others have their own count')
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
  const BATCHES = 50
  const [loud, quiet] = [await createOrganisation(sql), await createOrganisation(sql)]
  const service = await spawnService(url)
  const batch = batchOf(1000)
  let queued = 0
  const queueing = (async () => {
    // By another process: within one, batches rest while single sends are slow, and the queue would empty.
    for (; queued < BATCHES; queued += 1) await sendBatch(base, loud, batch)
  })()

  // While the batches are accepted and after that, as long as thousands wait.
  const ids: string[] = []
  const backlogs: number[] = []
  /** The same once each of the other's messages was sent. */
  const left: number[] = []
  let isQueued = false
  queueing.then(() => {
    isQueued = true
  })
  await until('a backlog', async () => (await backlogOf(sql, loud)) > 5000)
  const sendOne = async () => {
    const id = await send(service.base, quiet)
    ids.push(id)
    backlogs.push(await backlogOf(sql, loud))
    await until('it to be sent', async () => (await messageOf(sql, id)).sentAt)
    left.push(await backlogOf(sql, loud))
  }
  while (!isQueued) await sendOne()
  for (let more = 0; more < 10; more += 1) await sendOne()
  await queueing
  t.equal(queued, BATCHES)

  const messages = await Promise.all(ids.map((id) => messageOf(sql, id)))
  const waits = messages
    .map(({ createdAt, sentAt }) => Number(sentAt) - Number(createdAt))
    .toSorted((one, other) => one - other)
  const median = waits[Math.floor(waits.length / 2)] ?? Number.POSITIVE_INFINITY
  t.comment(
    `${waits.length} single sends beside a backlog of ${Math.min(...backlogs)} to ` +
      `${Math.max(...backlogs)}: median ${median} ms, longest ${waits.at(-1)} ms`,
  )
  t.ok(Math.min(...backlogs) > 1000, 'thousands wait when it is accepted')
  const behind = left.filter((waiting) => waiting > 1000).length
  t.ok(behind > left.length / 2, 'and still wait when it is sent')
  await service.end('SIGKILL')
})
