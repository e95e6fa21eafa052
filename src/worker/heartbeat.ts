import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Availability } from '../db/availability.ts'
import type { Call } from '../db/call.ts'
import { isSilence } from '../db/connection-errors.ts'
import { VERSION } from '../telemetry/version.ts'

/** api.record_heartbeat() has the same interval. Jobs of a killed process are freed within 15 s. */
const INTERVAL_MS = 2000

/** One minute. A database that is only busy or locked responds earlier. */
const MAX_UNANSWERED = 30

/**
 * How long a stop waits for the heartbeat in progress, and then for the deregistration. Without a
 * database both would wait in vain: the row of a process is removed once its lock is gone.
 */
const STOP_WAITS_MS = 1000

/** Removes the process from the list. Without `waitMs` it waits for as long as the calls do. */
type Deregister = (waitMs?: number) => Promise<void>

type HeartbeatOptions = {
  /** Over one connection that stays open, because the connection holds a lock for each worker pool. */
  call: Call
  log: Logger
  /** Receives what each heartbeat shows about the database. */
  availability?: Pick<Availability, 'observe' | 'onDue'>
  /** Called when the database has not responded for a minute. */
  onSilence(): void
}

/**
 * Keeps this process on the list of running processes, in some of its roles. `register` lists it under
 * a worker pool with its tasks, and under a new one after the pool was restarted. `stop` removes it from the list.
 */
export function createHeartbeat(
  roles: readonly string[],
  options: HeartbeatOptions,
): { register(poolId: string, tasks?: string[]): Promise<void>; stop(): Promise<void> } {
  let deregister: Deregister = async () => undefined
  let registering: Promise<void> = Promise.resolve()
  const remove = async (waitMs?: number) => {
    const current = deregister
    deregister = async () => undefined
    await current(waitMs).catch((error) =>
      options.log.warn({ err: error }, 'deregistration failed'),
    )
  }
  return {
    // One after the other: of two at the same time, one registration would never be removed.
    register(poolId, tasks = []) {
      registering = registering
        .catch(() => undefined)
        .then(async () => {
          await remove()
          deregister = await start(poolId, roles, tasks, options)
        })
      return registering
    },
    async stop() {
      await registering.catch(() => undefined)
      await remove(STOP_WAITS_MS)
    },
  }
}

/**
 * Registers this process, with an advisory lock named after its worker pool, and repeats that as a
 * heartbeat. Each heartbeat frees the jobs of processes whose lock is gone.
 */
async function start(
  poolId: string,
  roles: readonly string[],
  tasks: string[],
  { call, log, availability, onSilence }: HeartbeatOptions,
): Promise<Deregister> {
  async function register() {
    const gone = await call('record_heartbeat', {
      pool_id: poolId,
      roles: [...roles],
      tasks,
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      sent_at: new Date(),
    })
    if (gone > 0) log.warn({ gone }, 'jobs of dead processes freed')
  }
  const sendHeartbeat = () => availability?.observe(register) ?? register()

  await sendHeartbeat()
  let sending: Promise<void> | undefined
  // Intervals are counted, not measured: after the machine slept, a response that is there already looks late.
  let unanswered = 0
  function sendUnlessSending() {
    sending ??= sendHeartbeat()
      .then(() => {
        unanswered = 0
      })
      .catch((error) => {
        if (!isSilence(error)) unanswered = 0
        log.warn({ err: error }, 'heartbeat failed')
      })
      .finally(() => {
        sending = undefined
      })
  }
  const timer = setInterval(() => {
    unanswered += 1
    if (unanswered === MAX_UNANSWERED) onSilence()
    sendUnlessSending()
  }, INTERVAL_MS)
  availability?.onDue(sendUnlessSending)

  return async (waitMs) => {
    clearInterval(timer)
    availability?.onDue(() => undefined)
    // A heartbeat that arrived after the removal would register the process again.
    await (waitMs ? Promise.race([sending, pause(waitMs, undefined, { ref: false })]) : sending)
    await call('deregister', { pool_id: poolId }, { ...(waitMs && { waitMs }) })
  }
}
