import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { summarise } from '../../telemetry/summary.ts'
import { connect } from './connect.ts'
import { LinkFailed } from './failure.ts'
import { Session, type SessionOptions } from './session.ts'
import type { Smsc } from './smsc.ts'

export type LinkOptions = SessionOptions & {
  smsc: Smsc
  connectsWithinMs: number
  /** The pause after a first failure, which doubles with each that follows. */
  reconnectAfterMs: number
  reconnectAtMostEveryMs: number
  /** The pause after a wrong login: it is right only once somebody mends it. */
  wrongLoginPauseMs: number
  log: Logger
}

/** A session that lasted shorter has come to nothing: who binds and is cut off again must wait longer. */
const LASTED_MS = 10_000

const IDLE_LOOKS_EVERY_MS = 20

/** An SMSC that is down is one line a minute in the log. */
const FAILURES_EVERY_MS = 60_000

/** Keeps a session with the SMSC, with a new one whenever it is lost. */
export class Link {
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

  /** The session, when there is one. */
  get session(): Session | null {
    return this.#session?.isOpen ? this.#session : null
  }

  /** Why there was none last. */
  get failure(): LinkFailed | null {
    return this.#failure
  }

  /** Begin to keep a session. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** The session, once there is one; null when there is none in time. */
  async sessionWithin(ms: number): Promise<Session | null> {
    if (this.#stopping.signal.aborted) return null
    if (this.session) return this.session
    this.start()
    return new Promise((resolve) => {
      const settle = (session: Session | null) => {
        clearTimeout(timer)
        this.#waiting.delete(settle)
        resolve(session)
      }
      const timer = setTimeout(settle, ms, null)
      this.#waiting.add(settle)
    })
  }

  /** Let what is under way end, for a moment, and say goodbye. */
  async close(): Promise<void> {
    this.#stopping.abort()
    for (const settle of this.#waiting) settle(null)
    const session = this.#session
    // One limit for all of it: who does not answer what is under way would not answer a goodbye either.
    const limit = setTimeout(
      () => session?.destroy(LinkFailed.lost('ESTOPPED')),
      this.#options.closesWithinMs,
    )
    while (session?.isOpen && !session.isIdle) await pause(IDLE_LOOKS_EVERY_MS)
    await session?.unbind()
    clearTimeout(limit)
    await this.#running
    this.#failures.flush()
  }

  async #run(): Promise<void> {
    const { reconnectAfterMs, reconnectAtMostEveryMs, wrongLoginPauseMs, log, smsc } = this.#options
    const { signal } = this.#stopping
    let failures = 0
    while (!signal.aborted) {
      const startedAt = performance.now()
      try {
        this.#session = await open(this.#options, signal)
        // Closing has not seen this one.
        if (signal.aborted) return await this.#session.unbind()
        log.info({ host: smsc.host, port: smsc.port }, 'bound to the SMSC')
        for (const settle of this.#waiting) settle(this.#session)
        this.#failure = await this.#session.over
        if (performance.now() - startedAt > LASTED_MS) failures = 0
      } catch (error) {
        this.#failure = LinkFailed.from(error)
      }
      if (signal.aborted) return
      this.#failures.note('link', this.#failure)
      const waitMs = this.#failure.isWrongLogin
        ? wrongLoginPauseMs
        : Math.min(reconnectAfterMs * 2 ** failures, reconnectAtMostEveryMs)
      failures++
      // Not all processes at once, after a failure that all of them saw.
      await pause(waitMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
    }
  }
}

/** Connect and bind. Throws LinkFailed. */
export async function open(options: LinkOptions, signal: AbortSignal): Promise<Session> {
  const socket = await connect(options.smsc, options.connectsWithinMs, signal)
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
