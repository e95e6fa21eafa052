import type { Logger } from 'pino'
import type { Call } from '../../db/call.ts'
import type { UseOptions } from '../../db/pool.ts'
import type { About, SendResult } from '../email.ts'

/** Long enough for a person to see the status `sent` first. */
export const REPORTS_AFTER_MS = 500

/** A real provider responds although our database is busy, so the sandbox waits longer for a connection than jobs do. */
export const PATIENTLY: UseOptions = { waitMs: 60_000 }

const SLOW_RETRY_MS = 2000
const REPORT_EVERY_MS = 200

/**
 * Returns the result of the first attempt at a slow recipient; the second attempt succeeds. The message
 * waits in the database meanwhile, so it takes no slot of a worker.
 */
export function slow(about: About, code: string): SendResult {
  const result = refusal('deferred', about, code, 'The sandbox is slow.')
  return { ...result, retry_in_ms: SLOW_RETRY_MS }
}

/** Returns the result of a permanent (`failed`) or temporary (`deferred`) refusal. */
export function refusal(
  outcome: 'failed' | 'deferred',
  about: About,
  code: string,
  text: string,
): SendResult {
  return { outcome, about, code, text }
}

/** Delivers the sandbox's receipts and replies when they are due. */
export function reportSandbox(call: Call, log: Logger): { stop(): Promise<void> } {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  let reporting = Promise.resolve()
  function reportSoon(delayMs: number) {
    timer = setTimeout(() => {
      reporting = report()
    }, delayMs)
  }
  async function report() {
    const reported = await call('sandbox_report', {}).catch((error) => {
      log.warn({ err: error }, 'sandbox reports failed, will retry')
      return 0
    })
    if (!isStopped) reportSoon(reported > 0 ? 0 : REPORT_EVERY_MS)
  }
  reportSoon(REPORT_EVERY_MS)
  return {
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await reporting
    },
  }
}
