import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { VERSION } from './version.ts'

/** The value of a gauge of the database, as api.metrics() returns it. */
export type DatabaseFigure = { name: string; labels: unknown; value: number }

/** What this process counts. */
export type Metrics = ReturnType<typeof createMetrics>

const PREFIX = 'postgram_'

/** Finest around the latency goals, up to the longest that a caller would wait. */
const SECONDS = [0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Up to the most messages in one transaction. */
const MESSAGES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

/** The gauges of the database, by their names in api.metrics(). */
const databaseGauges: Record<string, readonly [help: string, ...labels: string[]]> = {
  queue_jobs: [
    'Jobs waiting to be taken or for a later time, among the next 10 000.',
    'task',
    'state',
  ],
  queue_age_seconds: [
    'Age of the oldest waiting job, except jobs behind a thousand of their own organisation.',
    'task',
  ],
  messages_waiting: ['Live messages accepted and not attempted yet.'],
  due_messages_late_seconds: ['How long the first due message has waited beyond its time.'],
  clock_late_seconds: ['How long a scheduled task is overdue.', 'task'],
  provider_failing_seconds: ['How long every attempt at a provider has failed.', 'provider'],
  processes: ['Running processes.', 'role'],
  connections: ['Connections of Postgram to Postgres.', 'application', 'state'],
  connections_all: ['All connections to the Postgres server.'],
  connections_limit: ['Connections that the Postgres server accepts.'],
}

/** The connection pools of this process by name. */
type Pools = Record<string, { underWay(): number; size: number }>

/** Counts for this process, from 0. Only this module knows the format of Prometheus. */
export function createMetrics({ pools }: { pools: Pools }) {
  const registry = new Registry()
  const registers = [registry]
  const named = (name: string, help: string, ...labelNames: string[]) => ({
    name: PREFIX + name,
    help,
    labelNames,
    registers,
  })
  const counter = (...args: Parameters<typeof named>) => new Counter(named(...args))
  const gauge = (...args: Parameters<typeof named>) => new Gauge(named(...args))
  const route = ['method', 'route']

  gauge('build_info', 'Always 1; its label is the version.', 'version').set({ version: VERSION }, 1)
  const requests = counter('http_requests_total', 'Requests with a response.', ...route, 'status')
  const latency = new Histogram({
    ...named('http_request_duration_seconds', 'Time until the response was ready.', ...route),
    buckets: SECONDS,
  })
  const accepts = new Histogram({
    ...named('accept_batch_size', 'Messages in one transaction.', 'function'),
    buckets: MESSAGES,
  })
  const attempts = counter(
    'attempts_total',
    'Attempts to send a message, by outcome.',
    ...['channel', 'provider', 'outcome'],
  )
  const receipts = counter(
    'receipts_total',
    'Delivery receipts from providers and networks.',
    ...['channel', 'type'],
  )
  const webhookAttempts = counter(
    'webhook_attempts_total',
    'Attempts to deliver an event, by outcome.',
    'outcome',
  )
  const jobs = counter('jobs_total', 'Jobs that ended.', 'task', 'outcome')
  new Gauge({
    ...named('database_calls', 'Database calls in progress or waiting for a connection.', 'pool'),
    collect() {
      for (const [pool, { underWay }] of Object.entries(pools)) this.set({ pool }, underWay())
    },
  })
  const sizes = gauge('database_pool_size', 'Maximum connections of a pool.', 'pool')
  for (const [pool, { size }] of Object.entries(pools)) sizes.set({ pool }, size)
  const databaseUp = gauge('database_up', '1 when the database responded to this scrape.')
  const ready = gauge('ready', '1 when /readyz responds with 200.')
  const gauges = new Map(
    Object.entries(databaseGauges).map(([name, texts]) => [name, gauge(name, ...texts)]),
  )
  // Exported as 0, so that Prometheus sees the first increase, here and in expectJobs.
  for (const type of ['delivered', 'failed']) {
    for (const channel of ['email', 'sms']) receipts.inc({ channel, type }, 0)
  }
  for (const outcome of ['delivered', 'refused', 'no_response']) {
    webhookAttempts.inc({ outcome }, 0)
  }
  let hasDefaults = false

  return {
    /** Counts a request with a response. `route` as it is declared, never the path of the request. */
    request(method: string, route: string, status: number, seconds: number) {
      requests.inc({ method, route, status })
      latency.observe({ method, route }, seconds)
    },
    /** Exports what `read` returns as the bytes of requests in progress. */
    watchRequestBytes(read: () => number) {
      new Gauge({
        ...named('http_request_bytes', 'Bytes of requests in progress, unpacked.'),
        collect() {
          this.set(read())
        },
      })
    },
    /** Counts messages that one transaction accepted or refused. */
    accepted: (by: string, messages: number) => accepts.observe({ function: by }, messages),
    attemptSend: (channel: 'email' | 'sms', provider: string, outcome: string) =>
      attempts.inc({ channel, provider, outcome }),
    /** Counts an email receipt that was stored, or an SMS receipt that arrived. `type` as in Receipt and SmsReceipt. */
    receipt: (channel: 'email' | 'sms', type: string) => receipts.inc({ channel, type }),
    webhookAttempt: (outcome: 'delivered' | 'refused' | 'no_response') =>
      webhookAttempts.inc({ outcome }),
    /** Exports the counters of these tasks as 0 before their first job. */
    expectJobs(tasks: readonly string[]) {
      for (const task of tasks) {
        for (const outcome of ['succeeded', 'failed', 'failed_permanently'])
          jobs.inc({ task, outcome }, 0)
      }
    },
    /** Counts a job that ended. `failed_permanently`: it is not retried. */
    job: (task: string, outcome: 'succeeded' | 'failed' | 'failed_permanently') =>
      jobs.inc({ task, outcome }),
    /** Returns all metrics as text. `database` is null when it did not respond; `isReady` is whether /readyz responds with 200. */
    async text(database: readonly DatabaseFigure[] | null, isReady: boolean): Promise<string> {
      // These metrics cost time as long as they are collected, so they start at the first scrape.
      if (!hasDefaults) collectDefaultMetrics({ register: registry, prefix: PREFIX })
      hasDefaults = true
      databaseUp.set(database ? 1 : 0)
      ready.set(isReady ? 1 : 0)
      for (const gauge of gauges.values()) {
        gauge.reset()
        // reset() leaves a gauge without labels at 0; remove() leaves it out.
        gauge.remove({})
      }
      // A database of a newer version may have gauges or labels that this version does not know.
      for (const { name, labels, value } of database ?? []) {
        const [, ...known] = databaseGauges[name] ?? []
        const isKnown = Object.keys(labels as object).every((label) => known.includes(label))
        if (isKnown) gauges.get(name)?.set(labels as Record<string, string>, value)
      }
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}
