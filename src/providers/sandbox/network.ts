import type { Logger } from 'pino'
import { type Batcher, createBatcher } from '../../db/batcher/index.ts'
import type { Call } from '../../db/call.ts'
import type { About, SendResult } from '../email.ts'

/** A moment, so that a person sees `sent` before what follows. */
export const REPORTS_AFTER_MS = 500
const SLOW_RETRY_MS = 2000
const REPORT_EVERY_MS = 200

/** What the network takes, as api.sandbox_take takes it, hence its names. */
export type Taken = {
  id: string
  /** Of an email, which copy, or 0 for one that came whole; of an SMS, which part, or 0 for the reply to it. */
  copy: number
  kind: 'email' | 'sms' | 'reply'
  /** What it will report, in this order. */
  reports: Record<string, unknown>[]
  due_in_ms: number
}

/** Hands over to the sandbox network, whose memory is the database: it survives the process. */
export function sandboxNetwork(call: Call): Batcher<Taken, null> {
  return createBatcher<Taken, null>(
    async (messages) => {
      await call('sandbox_take', { messages })
      return messages.map(() => null)
    },
    { maxWeight: 1000 },
  )
}

/**
 * The outcome of the first attempt at a slow recipient; the second is taken. The message waits in the
 * database meanwhile and takes no worker's place.
 */
export function slow(about: About, code: string): SendResult {
  const answer = refusal('deferred', about, code, 'The sandbox is slow.')
  return { ...answer, retry_in_ms: SLOW_RETRY_MS }
}

/** The result of an attempt that the sandbox refuses, for good (`failed`) or for now (`deferred`). */
export function refusal(
  outcome: 'failed' | 'deferred',
  about: About,
  code: string,
  text: string,
): SendResult {
  return { outcome, about, code, text }
}

/** The sandbox network's reports of what became of messages, each when it is due. */
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
      log.warn({ err: error }, 'the sandbox could not report; it tries again')
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
