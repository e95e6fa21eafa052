import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { scheduledTasks } from '../../src/clock/tasks.ts'
import { createDatabase, serviceUrl } from '../fixtures/database.ts'
import { idsOf, startCallers } from '../fixtures/load.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startDatabaseProxy } from '../fixtures/postgres.ts'
import { nodeEnv, spawnService } from '../fixtures/processes.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

/** The promised limit of a stop. */
const STOP_SECONDS = 15

const processes = () => sql<{ roles: string[] }[]>`select roles from ops.processes order by roles`
const lockedJobs = () => sql`
  select from graphile_worker._private_jobs where locked_at is not null`

async function secondsOf(work: Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work
  return (performance.now() - startedAt) / 1000
}

t.test('start, stop: each role alone', async (t) => {
  for (const role of ['api', 'worker', 'clock'] as const) {
    const service = await spawnService(url, role)
    const pools = role === 'worker' ? ['sms', 'upkeep', 'webhooks', role] : [role]
    t.same(
      await processes(),
      pools.map((name) => ({ roles: [name] })),
    )
    t.equal(service.base !== '', role === 'api', `${role} ${role === 'api' ? '' : 'not '}listens`)
    t.equal(await service.end('SIGTERM'), 0)
    t.same(await processes(), [])
  }
  const schedules = await sql<{ name: string; cron: string }[]>`
    select name, cron from pgboss.schedule order by name`
  t.same(
    schedules.map(({ name, cron }) => [name, cron]),
    scheduledTasks.map(({ name, schedule }) => [name, schedule]).sort(),
    'the clock wrote its schedules',
  )
})

t.test('stop under load: no accepted message is lost', async (t) => {
  const organisations = await Promise.all(Array.from({ length: 4 }, () => createOrganisation(sql)))
  for (const organisation of organisations) await liftRate(sql, organisation)
  const service = await spawnService(url)
  const options = { callers: 32, to: 'delivered@sandbox.postgram.test' }
  const callers = startCallers(service.base, organisations, options)
  const slow = startCallers(service.base, organisations, {
    callers: 4,
    to: 'slow@sandbox.postgram.test',
  })
  await until('load', async () => callers.answered() > 800 && slow.answered() > 50)
  const ending = service.end('SIGTERM')
  const seconds = await secondsOf(ending)
  t.comment(`stopped under load in ${seconds.toFixed(1)} s`)
  t.equal(await ending, 0)
  t.ok(seconds < STOP_SECONDS)
  await Promise.all([callers.stop(), slow.stop()])
  t.same(await processes(), [])
  t.equal((await lockedJobs()).length, 0, 'what it held is handed back')

  const attempts = [...callers.attempts, ...slow.attempts]
  const answered = attempts.filter(({ answer }) => answer)
  t.ok(
    answered.every(({ answer }) => answer?.status === 200),
    'a call is served or cut, not refused',
  )
  const marks = attempts.filter(({ answer }) => !answer).map(({ mark }) => mark)
  const unanswered = await sql`
    select from app.messages where split_part(subject, ' ', 1) = any (${marks})`
  t.equal(unanswered.length, 0, 'nothing was accepted whose caller got no answer')
  const ids = answered.flatMap(idsOf)
  const [left] = await sql`
    select count(*)::integer as messages from app.messages where status = 'queued'`
  t.comment(`${ids.length} messages answered, ${left?.messages} left for the next start`)

  const restarted = await spawnService(url)
  await until('all that was answered to be delivered', async () => {
    const [row] = await sql`
      select count(*)::integer as missing from unnest(${ids}::text[]) i
      left join app.messages m on m.id = core.decode_id('em', i) and m.status = 'delivered'
      where m.id is null`
    return row?.missing === 0
  })
  const twice = await sql`select from ${takenBySandbox(sql)} s where attempts > 1`
  t.equal(twice.length, 0, 'nothing was handed over twice')
  t.equal(await restarted.end('SIGTERM'), 0)
  t.same(await processes(), [])
})

t.test(
  'stop: a service whose database refuses connections exits 0 within 15 s of SIGTERM',
  async (t) => {
    const proxy = await startDatabaseProxy(url)
    const organisation = await createOrganisation(sql)
    await liftRate(sql, organisation)
    for (const callers of [0, 32]) {
      const service = await spawnService(proxy.url)
      const to = 'delivered@sandbox.postgram.test'
      const load = startCallers(service.base, [organisation], { callers, to })
      await until('load', async () => load.answered() >= 10 * callers)
      proxy.set('refuse')
      proxy.cut()
      await until('the loss to be logged', async () =>
        service.output().includes('"msg":"database unavailable"'),
      )
      const ending = service.end('SIGTERM')
      const seconds = await secondsOf(ending)
      t.comment(`with ${callers} callers: stopped without a database in ${seconds.toFixed(1)} s`)
      t.equal(await ending, 0)
      t.ok(seconds < 15)
      await load.stop()
      proxy.set('pass')
    }
  },
)

t.test('a service that an npm script started runs on after the script has ended', async (t) => {
  const script = spawn(
    'sh',
    ['-c', '"$0" src/main.ts start --only clock & read line', process.execPath],
    {
      cwd: new URL('../../', import.meta.url),
      env: {
        ...nodeEnv,
        DATABASE_URL: await serviceUrl(url),
        SECRET_KEY: Buffer.alloc(32).toString('base64'),
        npm_lifecycle_event: 'deploy',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  let output = ''
  script.stdout.setEncoding('utf8').on('data', (chunk) => {
    output += chunk
  })
  // After the service has ended as well, because it shares the output.
  let isClosed = false
  const closed = once(script, 'close').then(() => {
    isClosed = true
  })
  const { pid } = await until('the start', async () => {
    const line = output.split('\n').find((line) => line.includes('"msg":"started"'))
    return line ? (JSON.parse(line) as { pid: number }) : undefined
  })
  t.teardown(() => isClosed || process.kill(pid, 'SIGKILL'))

  script.stdin.end()
  await once(script, 'exit')
  // A service that ends with its parent notices within a second; heartbeats are 2 s apart.
  const heartbeatAt = async () => {
    const [row] = await sql<{ at: Date }[]>`
      select heartbeat_at as at from app.processes where pid = ${pid}`
    return row?.at.getTime()
  }
  for (let heartbeats = 0; heartbeats < 2; heartbeats++) {
    const last = await heartbeatAt()
    await until('a heartbeat', async () => isClosed || (await heartbeatAt()) !== last)
  }
  t.notMatch(output, /"msg":"stopping"/)
  process.kill(pid, 'SIGTERM')
  await closed
  t.match(output, /"msg":"stopping"/)
})
