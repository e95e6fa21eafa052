import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { summarise } from '../../telemetry/summary.ts'
import { connect } from './connect.ts'
import { LinkFailed } from './failure.ts'
import { Session, type SessionOptions } from './session.ts'
import type { Smsc } from './smsc.ts'

type LinkOptions = SessionOptions & { smsc: Smsc; log: Logger }

/** A session must last this long to reset the reconnect delay. */
const STABLE_AFTER_MS = 10_000

const IDLE_POLL_MS = 20

/** An SMSC that is down writes one line a minute to the log. */
const FAILURES_EVERY_MS = 60_000

export type SmscLink = ReturnType<typeof createLink>

/** Keeps a session with the SMSC, and opens a new one whenever it is lost. */
export function createLink(options: LinkOptions) {
  const { smsc, log } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const waiting = new Set<(session: Session | null) => void>()
  const failures = summarise<LinkFailed>(({ code, label, message }, failures) => {
    const reason = `${message} (${label})`
    log.warn({ host: smsc.host, port: smsc.port, code, reason, failures }, 'SMSC link failed')
  }, FAILURES_EVERY_MS)
  let session: Session | null = null
  let failure: LinkFailed | null = null
  let running: Promise<void> | null = null

  const openOne = () => (session?.isOpen ? session : null)

  async function run(): Promise<void> {
    let failed = 0
    while (!signal.aborted) {
      const startedAt = performance.now()
      try {
        session = await openSession(options, signal)
        // close() began before this session was open.
        if (signal.aborted) return await session.unbind()
        log.info({ host: smsc.host, port: smsc.port }, 'bound to the SMSC')
        for (const settle of waiting) settle(session)
        failure = await session.ended
        if (performance.now() - startedAt > STABLE_AFTER_MS) failed = 0
      } catch (error) {
        failure = LinkFailed.from(error)
      }
      if (signal.aborted) return
      failures.note('link', failure)
      const delayMs = failure.isWrongLogin
        ? options.wrongLoginDelayMs
        : Math.min(options.reconnectDelayMs * 2 ** failed, options.maxReconnectDelayMs)
      failed++
      // Jitter: all processes see the same failure and must not reconnect at once.
      await pause(delayMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
    }
  }

  /** Starts to keep a session. */
  function start() {
    running ??= run()
  }

  return {
    start,
    /** Returns the open session, if there is one. */
    session: openOne,
    /** Returns the last failure. */
    failure: () => failure,
    /** Returns the session once there is one; null if there is none in time. */
    async sessionWithin(timeoutMs: number): Promise<Session | null> {
      if (signal.aborted) return null
      const open = openOne()
      if (open) return open
      start()
      return new Promise((resolve) => {
        const settle = (session: Session | null) => {
          clearTimeout(timer)
          waiting.delete(settle)
          resolve(session)
        }
        const timer = setTimeout(settle, timeoutMs, null)
        waiting.add(settle)
      })
    },
    /** Waits for requests in progress, for at most closeTimeoutMs, and unbinds. */
    async close() {
      stopping.abort()
      for (const settle of waiting) settle(null)
      const last = session
      // One limit for both: an SMSC that does not respond to requests does not respond to unbind either.
      const limit = setTimeout(
        () => last?.destroy(LinkFailed.lost('ESTOPPED')),
        options.closeTimeoutMs,
      )
      while (last?.isOpen && !last.isIdle) await pause(IDLE_POLL_MS)
      await last?.unbind()
      clearTimeout(limit)
      await running
      failures.flush()
    },
  }
}

/** Connects and binds. Throws LinkFailed. */
export async function openSession(options: LinkOptions, signal: AbortSignal): Promise<Session> {
  const socket = await connect(options.smsc, options.connectTimeoutMs, signal)
  const session = new Session(socket, options)
  const stop = () => session.destroy(LinkFailed.lost('ESTOPPED'))
  signal.addEventListener('abort', stop)
  try {
    await session.bind(options.smsc)
    return session
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
