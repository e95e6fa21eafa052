import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { startClock } from './clock/index.ts'
import type { Secrets } from './crypto/secrets.ts'
import { signatures } from './db/api.gen.ts'
import { type Availability, createAvailability } from './db/availability.ts'
import type { Call } from './db/call.ts'
import { type ClockSettings, SERVICE_ROLE } from './db/client.ts'
import { readContract } from './db/contract.ts'
import { codeAge } from './db/migrate/code-age.ts'
import { foreignQueues } from './db/migrate/queues.ts'
import { codeSha256 } from './db/migrate/sql-files.ts'
import { createPools } from './db/pools.ts'
import { quietLog } from './db/quiet-log.ts'
import { createContractCheck, createReadiness, Outdated } from './db/readiness.ts'
import { createRegistry } from './domains/registry.ts'
import type { Resolver } from './domains/resolver.ts'
import type { HttpLimits } from './http/limits.ts'
import { addressOf } from './http/listen.ts'
import { startMetricsServer } from './http/metrics-server.ts'
import { startApi } from './http/server.ts'
import { createUnsubscribeLinks } from './marketing/unsubscribe-link.ts'
import type { EmailProvider } from './providers/email.ts'
import { reportSandbox } from './providers/sandbox/network.ts'
import type { SmsListener, SmsProvider } from './providers/sms.ts'
import { createSmsListener } from './providers/sms-listener.ts'
import { checkSecretKey } from './secret-key.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { countedPoster } from './webhooks/counted-poster.ts'
import { createPoster } from './webhooks/post.ts'
import { createSealer, openSecret } from './webhooks/secrets.ts'
import { createHeartbeat } from './worker/heartbeat.ts'
import { startWorker } from './worker/index.ts'

export const ROLES = ['api', 'worker', 'clock'] as const
export type Role = (typeof ROLES)[number]

export type ServiceOptions = {
  url: string
  roles: readonly Role[]
  host: string
  port: number
  /** null: made from host and the port that the API got, or would get. */
  publicUrl: string | null
  /** Made once in each process. */
  createEmailProvider(call: Call): EmailProvider
  /** Made where the worker runs, which also listens to the network. */
  createSmsProvider(call: Call, listener: SmsListener, log: Logger): SmsProvider
  /** Whether what is for sandbox addresses alone goes there beside this provider (design section 10). */
  hasSandboxMessages: boolean
  /** The same for SMS to sandbox numbers. */
  hasSandboxSms: boolean
  secrets: Secrets
  /** Public DNS. */
  resolver: Resolver
  /** Resolvers of webhook endpoints' names, `host[:port]`; empty: the system's. */
  dnsServers: readonly string[]
  /** Whether http and private addresses are fine for webhook endpoints. */
  webhookAllowPrivate: boolean
  /** What an endpoint has to answer in; the 10 seconds of the interface when absent. */
  webhookTimeoutMs?: number
  /** Limits of the API's requests and connections that differ from the usual ones. */
  httpLimits?: Partial<HttpLimits>
  dkimZone: string
  mailFromLabel: string
  systemFrom: string
  workerConcurrency: number
  smsConcurrency: number
  /** Where metrics are served; 0: any port that is free, null: nowhere. */
  metricsPort: number | null
  clock: ClockSettings
  log: Logger
  /** Called when the database has not said anything for a minute: this process can do nothing any more. */
  onSilence?(): void
}

export type Service = {
  /** Where the API listens; null without that role. */
  address: string | null
  /** Where /metrics is served; null without a port for it. */
  metricsAddress: string | null
  /** Stops accepting, and finishes or hands back the work in progress; takes at most some 14 s. */
  stop(): Promise<void>
}

/**
 * A stop gives the roles so long, and then the connections what is left of the whole: without a database
 * work in progress can neither finish nor be handed back, and repeats its calls.
 */
const ROLES_STOP_WITHIN_MS = 10_500
const STOPS_WITHIN_MS = 14_000

type Part = { stop(): Promise<void> }

/** Starts the roles of this process on a migrated database, which may be newer; throws Outdated. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { url, roles, log, onSilence = () => undefined } = options
  const pools = createPools(url, {
    role: SERVICE_ROLE,
    clock: options.clock,
    onError: (error) => availability.report(error),
    onHeartbeatError: (error) => availability.lost(error),
  })
  const { use, work: call } = pools
  const availability = createAvailability({
    log,
    pool: pools.heartbeatPool,
    checkSpace: () => pools.presence('check_space', {}),
  })
  const quiet = quietLog(log, availability)
  const metrics = createMetrics({ pools: pools.all })
  const judge = createContractCheck(
    { read: () => use(readContract), age: () => use(codeAge), call: pools.probe },
    { sha256: await codeSha256(), needs: signatures },
  )
  const readiness = createReadiness(availability, judge)
  const parts: Part[] = []
  const announcers: Part[] = []
  const announceAs = (as: readonly string[], heart?: Availability) => {
    const announcer = createHeartbeat(as, {
      call: pools.presence,
      log: quiet,
      ...(heart && { availability: heart }),
      onSilence,
    })
    announcers.push(announcer)
    return announcer.register
  }
  const runningRoles: Part[] = []

  const stopPart = (part: Part) =>
    part.stop().catch((error) => log.error({ err: error }, 'a part did not stop cleanly'))
  async function stopRoles() {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      log.warn('a role did not stop in time')
      resolve()
    }, ROLES_STOP_WITHIN_MS)
    await Promise.race([Promise.all(runningRoles.map(stopPart)), late])
    clearTimeout(timer)
  }
  // The roles side by side, as each may need most of the time there is, and the announcers, which all wait
  // where there is no database; then what they used, in the opposite order: the connections go last.
  const stop = async () => {
    const startedAt = performance.now()
    await stopRoles()
    await Promise.all(announcers.map(stopPart))
    for (const part of parts.reverse()) await stopPart(part)
    await pools.end(Math.max(0, STOPS_WITHIN_MS - (performance.now() - startedAt)))
  }

  try {
    const problem = (await judge()) ?? (await use((sql) => foreignQueues(sql, roles)))
    if (problem !== null) throw new Outdated(`${problem}; upgrade this process`)
    if (Object.keys(options.clock).length > 0 && !(await call('has_test_clock', {}))) {
      throw new Outdated(
        'POSTGRAM_NOW is set, but this database keeps real time: migrate with POSTGRAM_NOW set',
      )
    }
    const metricsServer =
      options.metricsPort === null
        ? null
        : await startMetricsServer({
            ...options,
            log: quiet,
            port: options.metricsPort,
            metrics,
            call,
            readiness,
          })
    if (metricsServer) parts.push(metricsServer)
    const emailProvider = options.createEmailProvider(call)
    parts.push({ stop: () => emailProvider.close() })
    if (roles.includes('worker')) await checkSecretKey(call, options.secrets)
    await call('set_up_webhooks', { allows_private: options.webhookAllowPrivate })
    const registry = createRegistry({ ...options, call, provider: emailProvider })
    // The API first: the links in the emails that a worker hands over may have to name its port.
    const api = roles.includes('api')
      ? await startApi({
          ...options,
          ...(options.httpLimits && { limits: options.httpLimits }),
          call: pools.requests,
          registry: createRegistry({
            ...options,
            call: pools.requests,
            provider: emailProvider,
          }),
          emailProvider,
          readiness,
          metrics,
        })
      : null
    if (api) runningRoles.push(api)
    const publicUrl = options.publicUrl ?? api?.address ?? addressOf(options.host, options.port)
    if (roles.includes('worker')) {
      runningRoles.push(reportSandbox(call, quiet))
      const poster = countedPoster(
        createPoster({
          ...options,
          allowsPrivate: options.webhookAllowPrivate,
          ...(options.webhookTimeoutMs && { timeoutMs: options.webhookTimeoutMs }),
        }),
        { metrics, log },
      )
      parts.push({ stop: () => poster.close() })
      const listener = createSmsListener(call, { metrics, log })
      const smsProvider = options.createSmsProvider(call, listener, log)
      // Beside the worker, not after it: what waits there for its turn is given back as not sent, before
      // the worker's patience makes it something of which nobody knows.
      runningRoles.push({ stop: () => smsProvider.close().finally(listener.flush) })
      runningRoles.push(
        await startWorker({
          ...options,
          log: quiet,
          role: SERVICE_ROLE,
          concurrency: options.workerConcurrency,
          call,
          metrics,
          emailProvider,
          smsProvider,
          poster,
          openSecret: (sealed) => openSecret(options.secrets, sealed),
          sealSecrets: createSealer(call, options.secrets),
          registry,
          publicUrl,
          links: createUnsubscribeLinks({ secrets: options.secrets, publicUrl }),
          register: announceAs(roles, availability),
          registerSms: announceAs(['sms']),
          registerWebhooks: announceAs(['webhooks']),
          registerUpkeep: announceAs(['upkeep']),
        }),
      )
    } else {
      await announceAs(roles, availability)(`${roles.join('-')}-${randomUUID()}`)
    }
    if (roles.includes('clock'))
      runningRoles.push(
        await startClock({
          url,
          role: SERVICE_ROLE,
          call: pools.clock,
          emailProvider,
          sealSecrets: createSealer(pools.clock, options.secrets),
          log: quiet,
        }),
      )
    return {
      address: api?.address ?? null,
      metricsAddress: metricsServer?.address ?? null,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
