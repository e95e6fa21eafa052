import type { Logger } from 'pino'
import type { Pools } from '../db/pools.ts'

/** Something that runs until it is stopped. */
export type Part = { stop(): Promise<void> }

/** The parts of a process, and the order in which they stop. */
export type Shutdown = {
  /** A role, or what stops beside the roles. */
  addRole(part: Part): void
  /** A heartbeat, which stops after the roles. */
  addHeartbeat(part: Part): void
  /** What roles use; stops after the heartbeats, the last one added first. */
  addResource(part: Part): void
  /** Stops all parts, then closes the connections; takes at most 14 s. */
  stop(): Promise<void>
}

/**
 * The roles get this time, and the connections get what then remains of the whole: without a database, work in
 * progress can neither finish nor be released, and repeats its calls.
 */
const ROLES_STOP_WITHIN_MS = 10_500
const STOPS_WITHIN_MS = 14_000

export function createShutdown({ pools, log }: { pools: Pools; log: Logger }): Shutdown {
  const roles: Part[] = []
  const heartbeats: Part[] = []
  const resources: Part[] = []

  const stopPart = (part: Part) =>
    part.stop().catch((error) => log.error({ err: error }, 'part not stopped cleanly'))

  async function stopRoles() {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      log.warn('role not stopped in time')
      resolve()
    }, ROLES_STOP_WITHIN_MS)
    // Together: each may need most of the time.
    await Promise.race([Promise.all(roles.map(stopPart)), late])
    clearTimeout(timer)
  }

  return {
    addRole: (part) => void roles.push(part),
    addHeartbeat: (part) => void heartbeats.push(part),
    addResource: (part) => void resources.push(part),
    async stop() {
      const startedAt = performance.now()
      await stopRoles()
      // Together: without a database each of them waits.
      await Promise.all(heartbeats.map(stopPart))
      for (const resource of resources.toReversed()) await stopPart(resource)
      await pools.end(Math.max(0, STOPS_WITHIN_MS - (performance.now() - startedAt)))
    },
  }
}
