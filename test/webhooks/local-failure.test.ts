import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { pino } from 'pino'
import t from 'tap'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { countedPoster } from '../../src/webhooks/counted-poster.ts'
import { LocalFailure, localFailureOf } from '../../src/webhooks/failures.ts'
import { createDatabase } from '../fixtures/database.ts'
import { freeAddress } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { addEvents, attemptsAt, createEndpoint, stateOf } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const organisation = await createOrganisation(sql)

t.test(
  'localFailureOf(): distinguishes failures of this machine from those of the endpoint',
  async (t) => {
    const failed = (code: string, address = '127.0.0.1') =>
      Object.assign(new Error(code), { code, address })
    for (const code of ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']) {
      t.match(localFailureOf(failed(code)), { message: `no connection can be made (${code})` })
    }
    for (const error of [
      ...[failed('ECONNREFUSED'), failed('ENETUNREACH'), failed(''), new Error()],
      failed('EADDRNOTAVAIL', '2620:fe::fe'),
      new AggregateError([failed('EMFILE'), failed('ECONNREFUSED')]),
      new AggregateError([failed('ECONNREFUSED'), failed('ENETUNREACH', '2620:fe::fe')]),
      new AggregateError([failed('EADDRNOTAVAIL', '2620:fe::fe')]),
      new AggregateError([]),
    ]) {
      t.equal(localFailureOf(error), undefined, String(error))
    }
    t.ok(localFailureOf(new AggregateError([failed('EMFILE'), failed('EMFILE', '::1')])))
    // The errors of a machine without IPv6 and without free ports.
    for (const code of ['ENETUNREACH', 'EADDRNOTAVAIL']) {
      const errors = [failed('EADDRNOTAVAIL'), failed(code, '2620:fe::fe')]
      t.ok(localFailureOf(new AggregateError(errors)), code)
    }
  },
)

t.test('post(): throws LocalFailure when no file descriptor is left', async (t) => {
  const from = (file: string) => JSON.stringify(import.meta.resolve(`../../src/webhooks/${file}`))
  const code = `
    import { createSocket } from 'node:dgram'
    import { once } from 'node:events'
    import { openSync } from 'node:fs'
    import { createPoster } from ${from('post.ts')}
    import { LocalFailure } from ${from('failures.ts')}
    // With a free descriptor this name server would get the query and not respond.
    const silent = createSocket('udp4').bind(0, '127.0.0.1')
    await once(silent, 'listening')
    const posters = [true, false].map((allowsPrivate) =>
      createPoster({ allowsPrivate, dnsServers: ['127.0.0.1:' + silent.address().port] }))
    try {
      for (;;) openSync('/dev/null')
    } catch {}
    const urls = ['http://127.0.0.1:9/', 'https://acme.zone/']
    const outcomes = await Promise.allSettled(
      posters.map((poster, n) => poster.post({ url: urls[n], headers: {}, body: '' })))
    console.log(JSON.stringify(outcomes.map(({ reason, value }) => [reason instanceof LocalFailure, reason?.message ?? value])))
    for (const poster of posters) await poster.close()
    silent.close()`
  const limited = 'ulimit -n 64 && exec "$0" --input-type=module -e "$1"'
  const { stdout } = await promisify(execFile)('sh', ['-c', limited, process.execPath, code])
  t.same(JSON.parse(stdout), [
    [true, 'no connection can be made (EMFILE)'],
    [true, 'no name server can be reached (ECONNREFUSED)'],
  ])
})

t.test('a local failure defers deliveries without counting an attempt', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const dnsServers = [await freeAddress()]
  await startTestService(url, {
    ...{ roles: ['worker'], webhookAllowPrivate: false },
    ...{ dnsServers, log },
  })
  const endpoint = await createEndpoint(sql, organisation, { url: 'https://hooks.acme.zone/' })
  await addEvents(sql, [endpoint], 40)
  const [job] = await until('the lease to be released', async () => {
    const jobs = await sql<{ pause: number }[]>`
      select extract(epoch from j.run_at - j.created_at)::integer as pause
      from graphile_worker._private_jobs j
      where j.payload ->> 'endpoint' = core.decode_id('we', ${endpoint.id})::text
        and j.run_at > j.created_at`
    return jobs.length > 0 && jobs
  })
  t.equal(job?.pause, 10)
  t.match(await stateOf(sql, endpoint), { waiting: 40, failingSince: null, lastError: null })
  t.same(await attemptsAt(sql, endpoint), [])
  const untouched = await sql`
    select from app.webhook_deliveries where attempts = 0 and due_at <= now()`
  t.equal(untouched.length, 40)

  const logged = lines
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'webhook deliveries deferred')
  t.match(logged, [
    { level: 40, reason: 'no name server can be reached (ECONNREFUSED)', deliveries: 1 },
  ])
  t.equal(logged.length, 1, 'one line for all deliveries')
})

t.test(
  'countedPoster: logs each reason at once, and the count of later ones at close',
  async (t) => {
    const lines: Record<string, unknown>[] = []
    const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line)) })
    let lack = 'no descriptor'
    const lacking = {
      post: () => Promise.reject(new LocalFailure(lack)),
      close: async () => undefined,
    }
    const poster = countedPoster(lacking, { metrics: createMetrics({ pools: {} }), log })
    const post = () => poster.post({ url: 'https://hooks.acme.zone/', headers: {}, body: '' })
    for (let n = 0; n < 3; n++) await t.rejects(post(), { message: lack })
    lack = 'no name server'
    await t.rejects(post(), { message: lack })
    const counts = () => lines.map(({ reason, deliveries }) => [reason, deliveries])
    const first = [
      ['no descriptor', 1],
      ['no name server', 1],
    ]
    t.same(counts(), first)
    await poster.close()
    t.same(counts(), [...first, ['no descriptor', 2]])
  },
)
