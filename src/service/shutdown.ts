import type { Logger } from 'pino'
import type { Pools } from '../db/pools.ts'
import { settledWithin } from '../time/index.ts'

/** Something that runs until it is stopped. */
export type Part = { stop(): Promise<void> }

/**
 * The roles get this time, and the connections get what then remains of the whole: without a database, work in
 * progress can neither finish nor be released, and repeats its calls.
 */
const ROLES_STOP_WITHIN_MS = 10_500
const STOPS_WITHIN_MS = 14_000

export type Shutdown = ReturnType<typeof createShutdown>

/** Collects the parts of a process, and stops them in the right order. */
export function createShutdown({ pools, log }: { pools: Pools; log: Logger }) {
  const roles: Part[] = []
  const heartbeats: Part[] = []
  const resources: Part[] = []

  const stopPart = (part: Part) =>
    part.stop().catch((error) => log.error({ err: error }, 'part not stopped cleanly'))

  return {
    /** Adds a role, or what stops beside the roles. */
    addRole: (part: Part) => void roles.push(part),
    /** Adds a heartbeat, which stops after the roles. */
    addHeartbeat: (part: Part) => void heartbeats.push(part),
    /** Adds what roles use; stops after the heartbeats, the last one added first. */
    addResource: (part: Part) => void resources.push(part),
    /** Stops all parts, then closes the connections; takes at most 14 s. */
    async stop() {
      const startedAt = performance.now()
      // Together: each may need most of the time.
      await settledWithin(ROLES_STOP_WITHIN_MS, Promise.all(roles.map(stopPart)), () =>
        log.warn('role not stopped in time'),
      )
      // Together: without a database each of them waits.
      await Promise.all(heartbeats.map(stopPart))
      for (const resource of resources.toReversed()) await stopPart(resource)
      await pools.end(Math.max(0, STOPS_WITHIN_MS - (performance.now() - startedAt)))
    },
  }
}
