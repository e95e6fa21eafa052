import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { summarise } from '../../telemetry/summary.ts'
import { connect } from './connect.ts'
import { LinkFailed } from './failure.ts'
import { Session, type SessionOptions } from './session.ts'
import type { Smsc } from './smsc.ts'

export type LinkOptions = SessionOptions & { smsc: Smsc; log: Logger }

/** A session must last this long to reset the reconnect delay. */
const STABLE_AFTER_MS = 10_000

const IDLE_POLL_MS = 20

/** An SMSC that is down writes one line a minute to the log. */
const FAILURES_EVERY_MS = 60_000

/** Keeps a session with the SMSC, and opens a new one whenever it is lost. */
export class SmscLink {
  readonly #options: LinkOptions
  readonly #stopping = new AbortController()
  readonly #waiting = new Set<(session: Session | null) => void>()
  readonly #failures = summarise<LinkFailed>(({ code, label, message }, failures) => {
    const { log, smsc } = this.#options
    const reason = `${message} (${label})`
    log.warn({ host: smsc.host, port: smsc.port, code, reason, failures }, 'SMSC link failed')
  }, FAILURES_EVERY_MS)
  #session: Session | null = null
  #failure: LinkFailed | null = null
  #running: Promise<void> | null = null

  constructor(options: LinkOptions) {
    this.#options = options
  }

  /** The open session, if there is one. */
  get session(): Session | null {
    return this.#session?.isOpen ? this.#session : null
  }

  /** The last failure. */
  get failure(): LinkFailed | null {
    return this.#failure
  }

  /** Starts to keep a session. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Returns the session once there is one; null if there is none in time. */
  async sessionWithin(timeoutMs: number): Promise<Session | null> {
    if (this.#stopping.signal.aborted) return null
    if (this.session) return this.session
    this.start()
    return new Promise((resolve) => {
      const settle = (session: Session | null) => {
        clearTimeout(timer)
        this.#waiting.delete(settle)
        resolve(session)
      }
      const timer = setTimeout(settle, timeoutMs, null)
      this.#waiting.add(settle)
    })
  }

  /** Waits for requests in progress, for at most closeTimeoutMs, and unbinds. */
  async close(): Promise<void> {
    this.#stopping.abort()
    for (const settle of this.#waiting) settle(null)
    const session = this.#session
    // One limit for both: an SMSC that does not respond to requests does not respond to unbind either.
    const limit = setTimeout(
      () => session?.destroy(LinkFailed.lost('ESTOPPED')),
      this.#options.closeTimeoutMs,
    )
    while (session?.isOpen && !session.isIdle) await pause(IDLE_POLL_MS)
    await session?.unbind()
    clearTimeout(limit)
    await this.#running
    this.#failures.flush()
  }

  async #run(): Promise<void> {
    const { reconnectDelayMs, maxReconnectDelayMs, wrongLoginDelayMs, log, smsc } = this.#options
    const { signal } = this.#stopping
    let failures = 0
    while (!signal.aborted) {
      const startedAt = performance.now()
      try {
        this.#session = await openSession(this.#options, signal)
        // close() began before this session was open.
        if (signal.aborted) return await this.#session.unbind()
        log.info({ host: smsc.host, port: smsc.port }, 'bound to the SMSC')
        for (const settle of this.#waiting) settle(this.#session)
        this.#failure = await this.#session.ended
        if (performance.now() - startedAt > STABLE_AFTER_MS) failures = 0
      } catch (error) {
        this.#failure = LinkFailed.from(error)
      }
      if (signal.aborted) return
      this.#failures.note('link', this.#failure)
      const delayMs = this.#failure.isWrongLogin
        ? wrongLoginDelayMs
        : Math.min(reconnectDelayMs * 2 ** failures, maxReconnectDelayMs)
      failures++
      // Jitter: all processes see the same failure and must not reconnect at once.
      await pause(delayMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
    }
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
