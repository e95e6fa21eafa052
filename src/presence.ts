import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { caller } from './db/call.ts'
import { type ClientOptions, connect } from './db/client.ts'

/** api.beat() knows this figure. Two missed beats and a sweep are well within promise 5's 15 seconds. */
const BEAT_EVERY_MS = 2000

/** A minute of them: a database that is only busy, or locked, answers before. */
const SILENT_FOR_BEATS = 30

type Presence = { leave(): Promise<void> }

export type AnnouncerOptions = {
  log: Logger
  /** Called once the database has not said anything for a minute, neither yes nor no. */
  onSilence(): void
}

/**
 * Keeps this process on the list of running ones in some of its roles: `announce` says by which worker
 * pool it is known there, again when it has a new one, and settles once it is listed; `stop` takes it
 * off the list.
 */
export function createAnnouncer(
  url: string,
  client: ClientOptions,
  roles: readonly string[],
  options: AnnouncerOptions,
): { announce(poolId: string): Promise<void>; stop(): Promise<void> } {
  let presence: Presence | undefined
  let announcing: Promise<void> = Promise.resolve()
  return {
    // One after the other: of two at once, as when a pool is begun anew again, one would stay for good.
    announce(poolId) {
      announcing = announcing
        .catch(() => undefined)
        .then(async () => {
          const left = presence
          presence = undefined
          await left
            ?.leave()
            .catch((error) => options.log.warn({ err: error }, 'could not leave the list'))
          presence = await enter(url, client, { poolId, roles, pid: process.pid }, options)
        })
      return announcing
    },
    async stop() {
      await announcing.catch(() => undefined)
      await presence?.leave()
    },
  }
}

/**
 * Puts this process on the list and sweeps those that are gone (promise 5). It holds an advisory lock
 * named after its worker pool, on a connection of its own that is never recycled.
 */
async function enter(
  url: string,
  client: ClientOptions,
  { poolId, roles, pid }: { poolId: string; roles: readonly string[]; pid: number },
  { log, onSilence }: AnnouncerOptions,
): Promise<Presence> {
  const sql = connect(url, {
    ...client,
    max: 1,
    isKept: true,
    applicationName: 'postgram presence',
    settings: { statement_timeout: '30s' },
  })
  const call = caller(sql)

  async function beat() {
    const gone = await call('beat', { pool_id: poolId, roles: [...roles], host: hostname(), pid })
    if (gone > 0) log.warn({ gone }, 'freed the jobs of processes that are gone')
  }

  await beat().catch(async (error) => {
    await sql.end({ timeout: 1 })
    throw error
  })
  let beating = Promise.resolve()
  // Counted, not timed: to a machine that slept an answer that is there already may look late.
  let unanswered = 0
  const timer = setInterval(() => {
    unanswered += 1
    if (unanswered === SILENT_FOR_BEATS) onSilence()
    if (unanswered > 1) return
    beating = beat()
      .catch((error) => log.warn({ err: error }, 'a heartbeat failed'))
      .then(() => {
        unanswered = 0
      })
  }, BEAT_EVERY_MS)

  return {
    async leave() {
      clearInterval(timer)
      await beating
      try {
        await call('leave', { pool_id: poolId })
      } finally {
        // Also when the database is gone: its connections would keep the process from ending.
        await sql.end({ timeout: 1 })
      }
    },
  }
}
