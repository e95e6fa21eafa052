import { randomUUID } from 'node:crypto'
import type { Availability } from '../db/availability.ts'
import type { Call } from '../db/call.ts'
import { createRegistry } from '../domains/registry.ts'
import { addressOf } from '../http/listen.ts'
import { startMetricsServer } from '../http/metrics-server.ts'
import type { EmailProvider } from '../providers/email.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createSealer } from '../webhooks/secrets.ts'
import { createHeartbeat } from '../worker/heartbeat.ts'
import { checkDatabase, openServiceDatabase } from './database.ts'
import type { ServiceOptions } from './options.ts'
import { createShutdown } from './shutdown.ts'

export { ROLES, type Role, type ServiceOptions } from './options.ts'

export type Service = Awaited<ReturnType<typeof startService>>

/**
 * Starts the roles of this process on a migrated database, which may be newer. Throws SetupError. Each role
 * is imported here, because a process with one role starts faster without the libraries of the others.
 */
export async function startService(options: ServiceOptions) {
  const { url, roles, secrets, clock, onSilence = () => undefined } = options
  const database = await openServiceDatabase({ url, clock, log: options.log })
  const { pools, availability, readiness, log } = database
  const call = pools.work
  const shutdown = createShutdown({ pools, log: options.log })
  const metrics = createMetrics({ pools: pools.all })

  /** Returns a function that registers a worker pool of this process. `observer` gets the results of its heartbeats. */
  const registerAs = (names: readonly string[], observer?: Availability) => {
    const heartbeat = createHeartbeat(names, {
      call: pools.heartbeat,
      log,
      ...(observer && { availability: observer }),
      onSilence,
    })
    shutdown.addHeartbeat(heartbeat)
    return heartbeat.register
  }

  const registryOver = (call: Call) => createRegistry({ ...options, call, provider: emailProvider })

  async function startMetrics(port: number) {
    const server = await startMetricsServer({ ...options, port, metrics, call, readiness, log })
    shutdown.addResource(server)
    return server.address
  }

  async function startApiRole() {
    const { startApi } = await import('../http/server.ts')
    const { createDashboard } = await import('../dashboard/index.ts')
    const own = { call: pools.requests, registry: registryOver(pools.requests) }
    const api = await startApi({
      ...options,
      ...own,
      callPair: pools.intakePair,
      emailProvider,
      readiness,
      metrics,
      createDashboard: (given) => createDashboard({ ...options, ...given, ...own }),
    })
    shutdown.addRole(api)
    return api.address
  }

  let emailProvider: EmailProvider
  try {
    await checkDatabase(database, { roles, clock })
    const metricsAddress =
      options.metricsPort === null ? null : await startMetrics(options.metricsPort)
    emailProvider = options.createEmailProvider(call)
    shutdown.addResource({ stop: () => emailProvider.close() })
    const worker = roles.includes('worker') ? await import('./worker-role.ts') : null
    await worker?.checkSecretKey(call, secrets)
    await call('set_up_webhooks', { allows_private: options.webhookAllowPrivate })
    // First: links in the emails that a worker sends may have to name the port of the API.
    const address = roles.includes('api') ? await startApiRole() : null
    const register = registerAs(roles, availability)
    if (worker) {
      await worker.startWorkerRole({
        settings: options,
        shutdown,
        call,
        metrics,
        log,
        emailProvider,
        registry: registryOver(call),
        publicUrl: options.publicUrl ?? address ?? addressOf(options.host, options.port),
        register,
        registerAs,
        onSilenceEnd: availability.onSilenceEnd,
      })
    } else {
      await register(`${roles.join('-')}-${randomUUID()}`)
    }
    if (roles.includes('clock')) {
      const { startClock } = await import('../clock/index.ts')
      const clock = await startClock({
        url,
        call: pools.clock,
        emailProvider,
        sealSecrets: createSealer(pools.clock, secrets),
        log,
      })
      shutdown.addRole(clock)
    }
    return {
      /** The address of the API; null without that role. */
      address,
      /** The address of /metrics; null without a port for it. */
      metricsAddress,
      /** Stops accepting requests and jobs, and finishes or releases the work in progress; takes at most 14 s. */
      stop: shutdown.stop,
    }
  } catch (error) {
    await shutdown.stop()
    throw error
  }
}
