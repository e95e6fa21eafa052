import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Availability } from '../db/availability.ts'
import type { Call } from '../db/call.ts'
import { isSilence } from '../db/connection-errors.ts'
import { VERSION } from '../telemetry/version.ts'

/** api.beat() knows this figure. Two missed beats and a sweep are well within promise 5's 15 seconds. */
const BEAT_EVERY_MS = 2000

/** A minute of them: a database that is only busy, or locked, answers before. */
const SILENT_FOR_BEATS = 30

/**
 * How long a stop waits for a heartbeat under way, and then for the connection. Without a database it would
 * wait for nothing: the row of a process whose lock is gone is swept.
 */
const STOP_WAITS_MS = 1000

type Presence = {
  /** Takes the process off the list; waits as long as the calls do when `waitMs` is absent. */
  leave(waitMs?: number): Promise<void>
}

export type HeartbeatOptions = {
  /** Over one connection that stays, as it holds a lock for each pool. */
  call: Call
  log: Logger
  /** What the heartbeat tells of the database is kept there. */
  availability?: Pick<Availability, 'observe' | 'onDue'>
  /** Called once the database has not said anything for a minute, neither yes nor no. */
  onSilence(): void
}

/**
 * Keeps this process on the list of running ones in some of its roles: `announce` says by which worker
 * pool it is known there, again when it has a new one, and settles once it is listed; `stop` takes it
 * off the list.
 */
export function createHeartbeat(
  roles: readonly string[],
  options: HeartbeatOptions,
): { announce(poolId: string): Promise<void>; stop(): Promise<void> } {
  let presence: Presence | undefined
  let announcing: Promise<void> = Promise.resolve()
  const deregister = async (left: Presence | undefined, waitMs?: number) =>
    left?.leave(waitMs).catch((error) => options.log.warn({ err: error }, 'deregistration failed'))
  return {
    // One after the other: of two at once, as when a pool is begun anew again, one would stay for good.
    announce(poolId) {
      announcing = announcing
        .catch(() => undefined)
        .then(async () => {
          const left = presence
          presence = undefined
          await deregister(left)
          presence = await enter({ poolId, roles, pid: process.pid }, options)
        })
      return announcing
    },
    async stop() {
      await announcing.catch(() => undefined)
      await deregister(presence, STOP_WAITS_MS)
    },
  }
}

/**
 * Puts this process on the list and sweeps those that are gone (promise 5). It holds an advisory lock
 * named after its worker pool.
 */
async function enter(
  { poolId, roles, pid }: { poolId: string; roles: readonly string[]; pid: number },
  { call, log, availability, onSilence }: HeartbeatOptions,
): Promise<Presence> {
  async function register() {
    const gone = await call('beat', {
      pool_id: poolId,
      roles: [...roles],
      host: hostname(),
      pid,
      version: VERSION,
      sent_at: new Date(),
    })
    if (gone > 0) log.warn({ gone }, 'freed the jobs of processes that are gone')
  }
  const beat = () => availability?.observe(register) ?? register()

  await beat()
  let beating: Promise<void> | undefined
  // Beats are counted, not timed: after the machine slept, a response that has already arrived would look late.
  let unanswered = 0
  function beatUnlessBusy() {
    beating ??= beat()
      .then(() => {
        unanswered = 0
      })
      .catch((error) => {
        if (!isSilence(error)) unanswered = 0
        log.warn({ err: error }, 'heartbeat failed')
      })
      .finally(() => {
        beating = undefined
      })
  }
  const timer = setInterval(() => {
    unanswered += 1
    if (unanswered === SILENT_FOR_BEATS) onSilence()
    beatUnlessBusy()
  }, BEAT_EVERY_MS)
  availability?.onDue(beatUnlessBusy)

  return {
    async leave(waitMs) {
      clearInterval(timer)
      availability?.onDue(() => undefined)
      // A heartbeat that comes after it would register the process again.
      await (waitMs ? Promise.race([beating, pause(waitMs, undefined, { ref: false })]) : beating)
      await call('leave', { pool_id: poolId }, { ...(waitMs && { waitMs }) })
    },
  }
}
