import { execFile, spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { scheduledTasks } from '../../src/clock/tasks.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { VERSION } from '../../src/telemetry/version.ts'
import { countedPoster } from '../../src/webhooks/counted-poster.ts'
import { createPoster } from '../../src/webhooks/post.ts'
import { createDatabase, rolledBack } from '../fixtures/database.ts'
import { anEmail, anSms, get, post, request } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import {
  groupsOf,
  labelsIn,
  nineSeconds,
  type RulesTest,
  readPage,
  rulesTest,
  scenarios,
  scrapedAs,
  unknownTo,
} from '../fixtures/pages.ts'
import { nodeEnv, spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { startReceiver } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const organisation = await createOrganisation(sql)
const { liveKey: key, domain } = organisation
const { base, metricsAddress } = await startTestService(url, { metricsPort: 0 })

/** The metrics of a process: their values by name and labels. */
async function scrape(address: string | null = metricsAddress) {
  const answer = await get(`${address}/metrics`, null)
  t.equal(answer.status, 200)
  const samples = answer.text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))] as const
    })
  return { answer, text: answer.text, of: new Map(samples) }
}

/** The metrics with those of the database, whose query may take longer than one scrape waits. */
const scrapeAll = (address?: string | null) =>
  until('the metrics of the database', async () => {
    const scraped = await scrape(address)
    return scraped.of.get('postgram_database_up') === 1 && scraped
  })

const waitFor = (sample: string, atLeast: number) =>
  until(`${sample} of ${atLeast}`, async () => ((await scrape()).of.get(sample) ?? 0) >= atLeast)

t.test('requests are counted and timed by their declared route', async (t) => {
  const sent = await post(`${base}/v1/emails`, key, anEmail(domain))
  await post(`${base}/v1/emails`, key, anEmail(domain))
  await post(`${base}/v1/emails`, key, anEmail('elsewhere.example'))
  await get(`${base}/v1/emails/${sent.json.id}`, key)
  await get(`${base}/v1/nobody@example.com`, key)
  await request('DELETE', `${base}/%2e%2e/bob@example.com`, null)
  const { of, text, answer } = await scrape()
  t.match(answer.headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  const requests = (method: string, route: string, status: number) =>
    of.get(`postgram_http_requests_total{method="${method}",route="${route}",status="${status}"}`)
  t.equal(requests('POST', '/v1/emails', 200), 2)
  t.equal(requests('POST', '/v1/emails', 403), 1)
  t.equal(requests('GET', '/v1/emails/:id', 200), 1)
  t.equal(requests('GET', 'none', 404), 1)
  t.equal(requests('DELETE', 'none', 404), 1)
  t.notMatch(text, /@|(em|org)_[0-7]/, 'metrics contain no data of callers')
  const timed = 'method="POST",route="/v1/emails"}'
  t.equal(of.get(`postgram_http_request_duration_seconds_count{${timed}`), 3)
  t.ok((of.get(`postgram_http_request_duration_seconds_sum{${timed}`) ?? 0) > 0)
})

t.test('a batch counts as one transaction with its messages', async (t) => {
  const count = 'postgram_accept_batch_size_count{function="accept_emails"}'
  const sum = 'postgram_accept_batch_size_sum{function="accept_emails"}'
  const before = (await scrape()).of
  const emails = Array.from({ length: 7 }, () => anEmail(domain))
  await post(`${base}/v1/emails/batch`, key, { emails })
  const after = (await scrape()).of
  t.equal((after.get(count) ?? 0) - (before.get(count) ?? 0), 1)
  t.equal((after.get(sum) ?? 0) - (before.get(sum) ?? 0), 7)
})

t.test('attempts and jobs are counted by outcome', async () => {
  await post(`${base}/v1/sms`, key, anSms())
  await post(`${base}/v1/emails`, key, anEmail(domain, { to: 'reject@sandbox.postgram.test' }))
  const of = (channel: string, outcome: string) =>
    `postgram_attempts_total{channel="${channel}",provider="sandbox",outcome="${outcome}"}`
  await waitFor(of('email', 'sent'), 9)
  await waitFor(of('email', 'failed'), 1)
  await waitFor(of('sms', 'sent'), 1)
  await waitFor('postgram_jobs_total{task="send_email",outcome="succeeded"}', 3)
  await waitFor('postgram_jobs_total{task="send_emails",outcome="succeeded"}', 1)
})

t.test('/metrics has queues, processes and connections of the database', async (t) => {
  await sql`
    select graphile_worker.add_job('nobody_does_this', run_at := now() - interval '90 seconds'),
      graphile_worker.add_job('nobody_does_this', run_at := now() + interval '1 hour'),
      graphile_worker.add_job('nobody_does_this', run_at := now() - interval '900 seconds', priority := 10)`
  const { of } = await scrapeAll()
  const jobs = (state: string) =>
    of.get(`postgram_queue_jobs{task="nobody_does_this",state="${state}"}`)
  t.same([jobs('waiting'), jobs('later')], [2, 1])
  const age = of.get('postgram_queue_age_seconds{task="nobody_does_this"}') ?? 0
  t.ok(age >= 90 && age < 600, 'a job behind the backlog of its organisation does not count')
  for (const role of ['api', 'worker', 'clock']) {
    t.equal(of.get(`postgram_processes{role="${role}"}`), 1)
  }
  t.ok([...of.keys()].some((name) => /^postgram_connections\{.*"postgram worker"/.test(name)))
  const all = of.get('postgram_connections_all') ?? 0
  t.ok(all >= 5 && all <= (of.get('postgram_connections_limit') ?? 0))
  t.equal(of.get('postgram_database_up'), 1)
  for (const pool of ['intake', 'requests', 'work', 'clock']) {
    t.ok((of.get(`postgram_database_pool_size{pool="${pool}"}`) ?? 0) > 0)
    t.ok((of.get(`postgram_database_calls{pool="${pool}"}`) ?? 99) < 99)
  }
  t.equal(of.get(`postgram_build_info{version="${VERSION}"}`), 1)
  const running = await sql<{ version: string; isNear: boolean }[]>`
    select distinct version, clock_offset between '-1 minute' and '1 second' as is_near from ops.processes`
  t.same(
    [...running],
    [{ version: VERSION, isNear: true }],
    'each process reports its version and clock',
  )
  t.ok((of.get('postgram_process_resident_memory_bytes') ?? 0) > 1e7)
  t.ok(of.has('postgram_nodejs_eventloop_lag_p99_seconds'))
})

t.test('/metrics has the age of late and failing things', async (t) => {
  const { of } = await scrapeAll()
  t.equal(of.get('postgram_due_messages_late_seconds'), 0)
  t.notOk(of.has('postgram_provider_failing_seconds{provider="another"}'))
  // In a transaction, so that the clock does not change the rows.
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.due_messages (message_id, organisation_id, due_at, priority)
      select gen_random_uuid(), o.id, now() - interval '200 seconds', 0 from app.organisations o`
    await tx`
      insert into app.provider_health (provider, failing_since, last_error) values ('another', now() - interval '400 seconds', 'is down')`
    const rows = await tx<{ name: string; value: number }[]>`select name, value from api.metrics()`
    const figure = (name: string) => Math.floor(rows.find((row) => row.name === name)?.value ?? 0)
    t.equal(figure('due_messages_late_seconds'), 200)
    t.equal(figure('provider_failing_seconds'), 400)
  })
})

t.test('a message that is held while its organisation is paused is not late', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      insert into app.due_messages (message_id, organisation_id, due_at, priority)
      select gen_random_uuid(), o.id, null, 0 from app.organisations o limit 1`
    const rows = await tx`select value from api.metrics() where name = 'due_messages_late_seconds'`
    t.same([...rows], [{ value: 0 }])
  })
})

t.test('clock_late_seconds: a task is late from the time of its missed run', async (t) => {
  const lateness = async (
    task: string,
    schedule: string,
    runs: [agoSeconds: number, ok: boolean][],
  ) => {
    let late: number | undefined
    await rolledBack(sql, async (tx) => {
      await tx`insert into app.scheduled_tasks (name, schedule) values (${task}, ${schedule})`
      for (const [ago, ok] of runs) {
        await tx`
          insert into app.task_runs (task, started_at, duration_ms, rows, error)
          values (${task}, now() - make_interval(secs => ${ago}), 1, ${ok ? 0 : null}, ${ok ? null : 'no'})`
      }
      const [row] = await tx<{ value: number }[]>`
        select value from api.metrics() where name = 'clock_late_seconds' and labels ->> 'task' = ${task}`
      late = row && Math.floor(row.value)
    })
    return late
  }
  t.equal(await lateness('a', '* * * * *', [[50, true]]), 0)
  t.equal(await lateness('a', '* * * * *', [[100, true]]), 40)
  t.equal(
    await lateness('a', '* * * * *', [
      [500, true],
      [100, false],
      [40, false],
    ]),
    440,
    'a failed run does not count',
  )
  t.equal(
    await lateness('a', '* * * * *', [
      [500, false],
      [100, false],
    ]),
    440,
    'without a successful run, the first failure counts',
  )
  t.equal(await lateness('a', '*/10 * * * *', [[700, true]]), 100)
  t.equal(await lateness('a', '17 * * * *', [[3700, true]]), 100)
  t.equal(await lateness('a', '17 3 * * *', [[86_500, true]]), 100)
  t.equal(
    await lateness('a', '* * * * *', []),
    undefined,
    'a task that has not run yet has no lateness',
  )
  const unknown = await sql`
    select t.schedule from unnest(${scheduledTasks.map(({ schedule }) => schedule)}::text[]) as t (schedule)
    where core.schedule_interval(t.schedule) is null`
  t.same([...unknown], [], 'core.schedule_interval() knows each schedule in use')
})

t.test('webhook attempts are counted by outcome', async (t) => {
  const { of } = await scrape()
  const outcomes = ['delivered', 'refused', 'no_response'] as const
  for (const outcome of outcomes) {
    t.ok(
      of.has(`postgram_webhook_attempts_total{outcome="${outcome}"}`),
      'also before the first attempt',
    )
  }
  const counts = { delivered: 0, refused: 0, no_response: 0 }
  const metrics = createMetrics({ pools: {} })
  const counting = {
    ...metrics,
    webhookAttempt: (outcome: keyof typeof counts) => {
      counts[outcome] += 1
    },
  }
  const poster = countedPoster(createPoster({ allowsPrivate: true, dnsServers: [] }), {
    metrics: counting,
    log: pino({ level: 'silent' }),
  })
  t.teardown(() => poster.close())
  let status = 200
  const receiver = await startReceiver((response) => response.writeHead(status).end())
  const postTo = (url: string, signal?: AbortSignal) =>
    poster.post({ url, headers: {}, body: '{}' }, signal)
  await postTo(receiver.url)
  t.same(counts, { delivered: 1, refused: 0, no_response: 0 })
  status = 500
  await postTo(receiver.url)
  status = 301
  await postTo(receiver.url)
  t.same(counts, { delivered: 1, refused: 2, no_response: 0 })
  receiver.answer = (response) => response.destroy()
  await postTo(receiver.url)
  t.same(counts, { delivered: 1, refused: 2, no_response: 1 })
  await postTo(receiver.url, AbortSignal.abort())
  t.same(
    counts,
    { delivered: 1, refused: 2, no_response: 1 },
    'a post that a stop aborts does not count',
  )
})

t.test('unknown metrics of a newer database are ignored', async (t) => {
  const metrics = createMetrics({ pools: {} })
  const figures = [
    { name: 'moons', labels: {}, value: 7 },
    { name: 'processes', labels: { role: 'api', moon: 'new' }, value: 8 },
    { name: 'connections_all', labels: {}, value: 9 },
  ]
  const text = await metrics.text(figures, true)
  t.notMatch(text, /moon/)
  t.match(text, /^postgram_connections_all 9$/m)
})

t.test(
  'the metrics port serves metrics and health only, and the API serves no metrics',
  async (t) => {
    t.equal((await get(`${metricsAddress}/healthz`, null)).status, 200)
    t.equal((await get(`${metricsAddress}/readyz`, null)).status, 200)
    t.equal((await get(`${metricsAddress}/v1/emails/x`, key)).status, 404)
    t.equal((await get(`${base}/metrics`, null)).status, 404)
  },
)

t.test('worker and clock serve metrics at the address that they log', async (t) => {
  for (const role of ['worker', 'clock'] as const) {
    const { output, end } = await spawnService(url, role, { METRICS_PORT: '0' })
    const [, printed] = /^ {2}metrics {3}(http:\S+)\/metrics$/m.exec(output()) ?? []
    const { of } = await scrapeAll(printed)
    t.equal(
      of.has('postgram_jobs_total{task="send_sms",outcome="failed_permanently"}'),
      role === 'worker',
    )
    t.equal((await get(`${printed}/readyz`, null)).status, 200)
    t.equal(await end('SIGTERM'), 0)
  }
})

t.test('a metrics port in use ends the start with one line', async (t) => {
  const { port } = new URL(metricsAddress ?? '')
  const env = {
    ...nodeEnv,
    DATABASE_URL: url,
    SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    METRICS_PORT: port,
  }
  const args = ['src/main.ts', 'start', '--only', 'clock']
  // Not synchronously, because this process holds the port.
  const ended = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    const cwd = new URL('../../', import.meta.url)
    execFile(process.execPath, args, { cwd, env, timeout: 300_000 }, (error, _, stderr) =>
      resolve({ code: error?.code, stderr }),
    )
  })
  t.equal(ended.code, 1)
  t.match(ended.stderr, /^METRICS_PORT: \S+ is in use \(EADDRINUSE\)\n$/)
})

t.test(
  'while the database does not respond, /metrics has database_up 0 and the metrics of the process',
  async (t) => {
    await sql`alter function api.metrics rename to metrics_away`
    const { of } = await scrape()
    t.equal(of.get('postgram_database_up'), 0)
    const ofTheDatabase = /^postgram_(queue|messages|due|clock|provider|processes|connections)/
    t.same(
      [...of.keys()].filter((name) => ofTheDatabase.test(name)),
      [],
      'unknown metrics are absent, not 0',
    )
    t.ok(of.has('postgram_jobs_total{task="send_email",outcome="succeeded"}'))
    await sql`alter function api.metrics_away rename to metrics`
    await scrapeAll()
  },
)

t.test('postgram_ready is 0 while /readyz is 503', async (t) => {
  t.equal((await scrapeAll()).of.get('postgram_ready'), 1)
  await sql`alter function api.list_domains rename to domains_of`
  await sql`update app.code set sha256 = reverse(sha256)`
  t.equal((await get(`${metricsAddress}/readyz`, null)).status, 503)
  t.equal((await scrape()).of.get('postgram_ready'), 0)
  await sql`alter function api.domains_of rename to list_domains`
  await sql`update app.code set sha256 = reverse(sha256)`
  t.equal((await scrape()).of.get('postgram_ready'), 1)
})

t.test('/metrics does not wait for a slow database, and queries it once', async (t) => {
  await sql.begin(async (tx) => {
    await tx`lock table app.due_messages in access exclusive mode`
    const both = await Promise.all([scrape(), scrape()])
    t.same(
      both.map(({ of }) => of.get('postgram_database_up')),
      [0, 0],
    )
    const asked = await until('the metrics query', async () => {
      const rows = await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%api.metrics(%'`
      return rows.length > 0 && rows
    })
    t.equal(asked.length, 1)
  })
  await scrapeAll()
})

const rules = new URL('../../src/docs/alerts.yml', import.meta.url)
const written = await readFile(rules, 'utf8')
/** The expression of each alert by its name. */
const alerts = new Map(
  [...written.matchAll(/- alert: (\w+)\n +expr: ([\s\S]*?)\n +(?:for|labels):/g)].map(
    ([, name = '', expr = '']) => [name, expr],
  ),
)

/** The output of promtool, also when it fails. */
async function promtool(...args: string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('promtool', args).catch((error) => error)
  return stdout + stderr
}

/** Runs "promtool test rules" on these tests. */
async function testRules(t: Test, tests: RulesTest[]) {
  const file = join(t.testdir(), 'test.yml')
  await writeFile(file, rulesTest(rules.pathname, tests))
  return promtool('test', 'rules', file)
}

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const needsPromtool = { skip: !hasPromtool && 'there is no promtool on this machine' }

/** All metrics of a process, also those of failing providers and finished tasks. */
async function scrapeEverything() {
  await sql`
    insert into app.provider_health (provider, failing_since, last_error) values ('another', now(), 'is down')`
  await sql`
    insert into app.task_runs (task, started_at, duration_ms, rows)
    select t.name, now(), 987654, 0 from app.scheduled_tasks t`
  const { text } = await scrapeAll()
  await sql`delete from app.provider_health`
  await sql`delete from app.task_runs where duration_ms = 987654`
  return text
}

t.test('every alert has a reason, and names only metrics and labels that are served', async (t) => {
  const labels = labelsIn(await scrapeEverything())
  t.equal(alerts.size, [...written.matchAll(/- alert:/g)].length)
  t.ok(alerts.size >= 19)
  for (const [name, expr] of alerts) t.same(unknownTo(labels, expr), [], name)
  const attempts = [...written.matchAll(/postgram_attempts_total\{([^}]*)\}/g)]
  t.ok(attempts.length >= 3)
  for (const [, matchers] of attempts) {
    t.match(
      matchers,
      'provider!="sandbox"',
      'the sandbox is excluded, because callers choose its outcomes',
    )
  }
  const reasons = written.matchAll(/\n( *)# [^\n]+(?:\n *# [^\n]+)*\n *- alert: \w+\n/g)
  t.equal([...reasons].length, alerts.size, 'each has its reason')
  t.equal((await get(`${base}/docs/alerts.yml`, null)).text, written)
})

t.test('no alert depends on the name of a job', async (t) => {
  for (const [name, expr] of alerts) t.notMatch(expr, /\bjob\s*(=|!)/, name)
})

t.test('an alert on a rate is held for longer than the range of the rate', async (t) => {
  const seconds = (duration = '') =>
    Number.parseInt(duration, 10) * ({ s: 1, m: 60, h: 3600 }[duration.at(-1) ?? ''] ?? Number.NaN)
  const rates = [
    ...written.matchAll(/- alert: (\w+)\n +expr: ((?:(?!\n +labels:)[\s\S])*?)\n +for: (\w+)/g),
  ].flatMap(([, name, expr = '', held]) =>
    [...expr.matchAll(/\b(?:rate|increase)\([^[]*\[(\w+)\]/g)].map(([, range]) => ({
      name,
      isHeld: seconds(held) > seconds(range),
    })),
  )
  t.ok(rates.length >= 8)
  t.same(
    rates.filter(({ isHeld }) => !isHeld),
    [],
  )
})

t.test('promtool accepts the rules', needsPromtool, async (t) => {
  t.match(await promtool('check', 'rules', rules.pathname), /SUCCESS/)
})

t.test('each alert fires in one scenario and not in another', needsPromtool, async (t) => {
  t.same(Object.keys(scenarios).sort(), [...alerts.keys()].sort())
  const times = { interval: '1m', until: '59m' }
  const fired = (name: string, job = '') =>
    `count(count_over_time(ALERTS{alertname="${name}", job="${job}", alertstate="firing"}[2h]))`
  // The loss of all metrics has no job label. All other scenarios share a Prometheus, each with its own job.
  const { PostgramMetricsAbsent: absent, ...others } = scenarios
  const names = Object.keys(others)
  const series = Object.fromEntries(
    Object.entries(others).flatMap(([name, { fires, rests }]) => [
      ...Object.entries(scrapedAs(`${name} fires`, fires)),
      ...Object.entries(scrapedAs(`${name} rests`, rests)),
    ]),
  )
  const tests = [
    {
      ...times,
      name: 'all metrics are lost',
      series: scrapedAs('any', absent?.fires ?? {}),
      expressions: [{ expr: fired('PostgramMetricsAbsent'), value: 1 }],
    },
    {
      ...times,
      name: 'the database is away, the processes are not',
      series: scrapedAs('any', absent?.rests ?? {}),
      expressions: [{ expr: fired('PostgramMetricsAbsent') }],
    },
    {
      ...times,
      name: 'scenarios',
      series,
      expressions: names.flatMap((name) => [
        { expr: fired(name, `${name} fires`), value: 1 },
        { expr: fired(name, `${name} rests`) },
      ]),
    },
  ]
  t.match(await testRules(t, tests), /SUCCESS/)
})

t.test('an outage of nine seconds fires no alert, then or later', needsPromtool, async (t) => {
  const expr = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[4h]))'
  const tests = ['15s', '1m'].map((interval) => ({
    name: `scraped every ${interval}`,
    series: scrapedAs('any', nineSeconds),
    interval,
    until: interval === '1m' ? '2h' : '1h',
    expressions: [{ expr }],
  }))
  t.match(await testRules(t, tests), /SUCCESS/)
})

type Panel = {
  id: number
  type: string
  title: string
  description?: string
  datasource?: { uid: string }
  gridPos: { x: number; y: number; w: number; h: number }
  targets?: { refId: string; expr: string; legendFormat: string }[]
}
const dashboardText = await readFile(
  new URL('../../src/docs/grafana.json', import.meta.url),
  'utf8',
)
const dashboard = JSON.parse(dashboardText) as {
  uid: string
  title: string
  schemaVersion: number
  templating: { list: { name: string; type: string; query: unknown }[] }
  panels: Panel[]
}
const targets = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map((target) => ({ title, ...target })),
)

t.test('the dashboard has the format that Grafana imports', async (t) => {
  const { panels, templating } = dashboard
  t.match(dashboard, { uid: 'postgram', title: 'Postgram' })
  // Grafana 10.3 and newer; an older one warns, a newer one migrates it.
  t.equal(dashboard.schemaVersion, 39)
  t.notOk('id' in dashboard, 'Grafana assigns the id')
  t.match(templating.list, [
    { name: 'datasource', type: 'datasource', query: 'prometheus' },
    { name: 'job', type: 'query', query: { query: 'label_values(postgram_database_up, job)' } },
  ])
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const taken = new Set<string>()
  for (const { type, title, description, datasource, targets, gridPos } of panels) {
    const { x, y, w, h } = gridPos
    t.ok(x >= 0 && w > 0 && h > 0 && x + w <= 24, title)
    for (let column = x; column < x + w; column += 1) {
      for (let line = y; line < y + h; line += 1) {
        t.notOk(taken.has(`${column},${line}`), `${title} overlaps nothing`)
        taken.add(`${column},${line}`)
      }
    }
    if (type === 'row') continue
    t.match(type, /^(stat|timeseries)$/)
    t.match(description, /\.$/, title)
    t.equal(datasource?.uid, `$\{datasource}`, title)
    t.ok(targets && targets.length > 0, title)
    t.equal(new Set(targets?.map(({ refId }) => refId)).size, targets?.length, title)
  }
  for (const { expr, title } of targets) t.match(expr, 'job=~"$job"', title)
  const { text, headers } = await get(`${base}/docs/grafana.json`, null)
  t.equal(text, dashboardText)
  t.match(headers.get('content-type'), /^application\/json/)
})

/** An expression of the dashboard as Grafana sends it. */
const asSent = (expr: string) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', '.*')

t.test('the dashboard names only metrics and labels that are served', async (t) => {
  const labels = labelsIn(await scrapeEverything())
  t.ok(targets.length >= 20)
  for (const { title, expr, legendFormat } of targets) {
    t.same(unknownTo(labels, expr), [], title)
    const known = [...groupsOf(expr), 'instance']
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
      t.ok(known.includes(label), `${title}: ${label}`)
    }
  }
})

t.test('every panel shows data of a running service', needsPromtool, async (t) => {
  const samples = (await scrapeEverything()).matchAll(/^(postgram_\w+(?:\{.*\})?) (\S+)$/gm)
  const rising = [...samples].map(([, sample, value]) => [sample, `${value}+1x20`])
  const test = {
    name: 'all panels',
    series: scrapedAs('any', Object.fromEntries(rising)),
    interval: '1m',
    until: '15m',
    expressions: targets.map(({ expr }) => ({
      expr: `clamp_max(count(${asSent(expr)}), 1)`,
      value: 1,
    })),
  }
  t.match(await testRules(t, [test]), /SUCCESS/)
})

t.test('the scrape configuration of the page loads the rules', needsPromtool, async (t) => {
  const { blocks } = await readPage('operations')
  const { text: config = '' } =
    blocks.find(({ attributes }) => attributes.file === 'prometheus.yml') ?? {}
  const folder = t.testdir({ 'alerts.yml': written })
  t.match(config, '/etc/prometheus/postgram-alerts.yml')
  const file = join(folder, 'prometheus.yml')
  await writeFile(
    file,
    config.replace('/etc/prometheus/postgram-alerts.yml', join(folder, 'alerts.yml')),
  )
  const checked = await promtool('check', 'config', file)
  t.match(checked, new RegExp(`SUCCESS: ${alerts.size} rules found`))
  const { markdown } = await readPage('deployment')
  const ports = [...markdown.matchAll(/METRICS_PORT=(\d+)/g)].map(([, port]) => port)
  t.ok(ports.length >= 3)
  t.same(
    [...config.matchAll(/:(\d+)["\],]/g)].map(([, port]) => port),
    ports,
    'it scrapes the ports that the page on deployment sets',
  )
  t.notMatch(config, /\blabels:/, 'a label of a target would hide one of a metric')
})
