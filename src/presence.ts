import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { caller } from './db/call.ts'
import { type ClientOptions, connect } from './db/client.ts'

/** api.beat() knows this figure. Two missed beats and a sweep are well within promise 5's 15 seconds. */
const BEAT_EVERY_MS = 2000

export type Presence = { leave(): Promise<void> }

/**
 * Puts this process on the list of running ones and sweeps those that are gone (promise 5). It holds
 * an advisory lock named after its worker pool, on a connection of its own that is never recycled.
 * Settles once the process is listed.
 */
export async function announce(
  url: string,
  client: ClientOptions,
  process: { poolId: string; roles: string[]; pid: number },
  log: Logger,
): Promise<Presence> {
  const sql = connect(url, {
    ...client,
    max: 1,
    isKept: true,
    applicationName: 'postgram presence',
  })
  const call = caller(sql)
  const { poolId, roles, pid } = process

  async function beat() {
    const gone = await call('beat', { pool_id: poolId, roles, host: hostname(), pid })
    if (gone > 0) log.warn({ gone }, 'freed the jobs of processes that are gone')
  }

  await beat().catch(async (error) => {
    await sql.end({ timeout: 1 })
    throw error
  })
  let beating = Promise.resolve()
  const timer = setInterval(() => {
    beating = beat().catch((error) => log.warn({ err: error }, 'a heartbeat failed'))
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
