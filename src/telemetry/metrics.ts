import {
  Counter,
  type CounterConfiguration,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  Registry,
} from 'prom-client'
import { VERSION } from './version.ts'

/** What a gauge of the database stands at, as api.metrics() tells it. */
export type DatabaseFigure = { name: string; labels: unknown; value: number }

/** What this process counts, and the one place that knows how Prometheus wants it. */
export type Metrics = {
  /** A request that was answered; `route` as it is declared, never the path that was asked for. */
  request(method: string, route: string, status: number, seconds: number): void
  /** Shows what `read` returns as the bytes of requests in progress. */
  watchRequestBytes(read: () => number): void
  /** Messages that were accepted, or refused, in one transaction. */
  accepted(by: string, messages: number): void
  attemptSend(channel: 'email' | 'sms', provider: string, outcome: string): void
  /**
   * A receipt: of an email one that was stored, of an SMS one that arrived. `type` as Receipt and
   * SmsReceipt have it.
   */
  receipt(channel: 'email' | 'sms', type: string): void
  webhookAttempt(outcome: 'delivered' | 'refused' | 'unanswered'): void
  /** Tasks whose jobs this process takes, counted from nothing on. */
  expectJobs(tasks: readonly string[]): void
  /** A job that ended; `gave_up`: it failed and will not be tried again. */
  job(task: string, outcome: 'done' | 'failed' | 'gave_up'): void
  /** All of it as Prometheus text, with what the database says, null when it did not answer, and whether /readyz is 200. */
  text(database: readonly DatabaseFigure[] | null, isReady: boolean): Promise<string>
  contentType: string
}

const PREFIX = 'postgram_'

/** Around the goals of design section 12, and up to what a caller would wait for. */
const SECONDS = [0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Up to what one transaction carries. */
const MESSAGES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

/** The gauges of the database by their names in api.metrics(), with their labels. */
const databaseGauges: Record<string, readonly [help: string, ...labels: string[]]> = {
  queue_jobs: [
    'Jobs that wait to be taken, or until later, among the 10 000 that come next.',
    'task',
    'state',
  ],
  queue_age_seconds: [
    'How long the oldest has waited, but for those behind a thousand of their own organisation.',
    'task',
  ],
  messages_waiting: ['Live messages that were accepted and not handed over yet.'],
  due_messages_late_seconds: ['How long ago the first message that is still held fell due.'],
  clock_late_seconds: ['How long ago a task of the clock should have succeeded again.', 'task'],
  provider_failing_seconds: ['How long a provider has taken nothing.', 'provider'],
  processes: ['Processes that run.', 'role'],
  connections: ['Our connections to Postgres.', 'application', 'state'],
  connections_all: ['Connections to the Postgres server, of whoever.'],
  connections_limit: ['How many the server takes.'],
}

export type MetricsOptions = {
  /** The connection pools of this process by name. */
  pools: Record<string, { underWay(): number; size: number }>
}

/** Counts for this process, from nothing. */
export function createMetrics({ pools }: MetricsOptions): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const named = (name: string, help: string, labelNames: readonly string[] = []) =>
    ({ name: PREFIX + name, help, labelNames, registers }) satisfies CounterConfiguration<string>

  new Gauge(named('build_info', 'Always 1; its label is the version.', ['version'])).set(
    { version: VERSION },
    1,
  )
  const requests = new Counter(
    named('http_requests_total', 'Requests that were answered.', ['method', 'route', 'status']),
  )
  const latency = new Histogram({
    ...named('http_request_duration_seconds', 'Until the answer was ready.', ['method', 'route']),
    buckets: SECONDS,
  })
  const accepts = new Histogram({
    ...named('accept_batch_size', 'Messages in one transaction.', ['function']),
    buckets: MESSAGES,
  })
  const handOvers = new Counter(
    named('hand_overs_total', 'Messages handed to a provider, by what came of it.', [
      'channel',
      'provider',
      'outcome',
    ]),
  )
  const receipts = new Counter(
    named('receipts_total', 'Reports of providers and networks about messages.', [
      'channel',
      'type',
    ]),
  )
  const attempts = new Counter(
    named('webhook_attempts_total', 'Events posted to endpoints, by what came of it.', ['outcome']),
  )
  const jobs = new Counter(named('jobs_total', 'Jobs that ended.', ['task', 'outcome']))
  new Gauge({
    ...named('database_calls', 'Calls to the database under way, also those that wait.', ['pool']),
    collect() {
      for (const [pool, { underWay }] of Object.entries(pools)) this.set({ pool }, underWay())
    },
  })
  const sizes = new Gauge(named('database_pool_size', 'Connections of a pool at most.', ['pool']))
  for (const [pool, { size }] of Object.entries(pools)) sizes.set({ pool }, size)
  const answers = new Gauge(named('database_up', 'Whether the database answered this scrape.'))
  const ready = new Gauge(named('ready', 'Whether this process can serve, as /readyz says.'))
  const gauges = new Map(
    Object.entries(databaseGauges).map(([name, [help, ...labels]]) => [
      name,
      new Gauge(named(name, help, labels)),
    ]),
  )
  // So that a rise from nothing is seen as one, here and in expectJobs.
  for (const type of ['delivered', 'failed']) {
    for (const channel of ['email', 'sms']) receipts.inc({ channel, type }, 0)
  }
  for (const outcome of ['delivered', 'refused', 'unanswered']) attempts.inc({ outcome }, 0)
  let hasDefaults = false

  return {
    request(method, route, status, seconds) {
      requests.inc({ method, route, status })
      latency.observe({ method, route }, seconds)
    },
    watchRequestBytes(read) {
      new Gauge({
        ...named('http_request_bytes', 'Bytes of requests in progress, unpacked.'),
        collect() {
          this.set(read())
        },
      })
    },
    accepted: (by, messages) => accepts.observe({ function: by }, messages),
    attemptSend: (channel, provider, outcome) => handOvers.inc({ channel, provider, outcome }),
    receipt: (channel, type) => receipts.inc({ channel, type }),
    webhookAttempt: (outcome) => attempts.inc({ outcome }),
    expectJobs(tasks) {
      for (const task of tasks) {
        for (const outcome of ['done', 'failed', 'gave_up']) jobs.inc({ task, outcome }, 0)
      }
    },
    job: (task, outcome) => jobs.inc({ task, outcome }),
    async text(database, isReady) {
      // They watch the event loop all the time: from the first time on that somebody asks.
      if (!hasDefaults) collectDefaultMetrics({ register: registry, prefix: PREFIX })
      hasDefaults = true
      answers.set(database ? 1 : 0)
      ready.set(isReady ? 1 : 0)
      for (const gauge of gauges.values()) {
        gauge.reset()
        // To the library no labels are a sample as well, which it would put at 0 and not leave out.
        gauge.remove({})
      }
      // A newer version of the database may have gauges, or labels, that are not known here.
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
