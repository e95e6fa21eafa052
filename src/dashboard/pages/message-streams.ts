import { PassThrough } from 'node:stream'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import type { Resource, Visit } from '../page.ts'

type StreamOptions = {
  /** Aborted when the process stops. */
  stopping: AbortSignal
  /** The time between two polls of the database. */
  pollMs?: number
  /** A stream without an event for this time gets a comment, or the server and proxies would close it. */
  quietMs?: number
  /** Open streams of this process. */
  maxStreams?: number
  /** Open streams of a session. A browser opens six connections to a host in all. */
  maxOfSession?: number
}

/** Null: the session has ended, or may not see the message. */
type State = { version: string; mayChange: boolean } | null

type Watcher = {
  session: string
  organisation: string
  message: string
  /** The version that the browser has. */
  seen: string
  stream: PassThrough
  wroteAt: number
}

/**
 * The streams that report to the page of a message that the message has changed: server-sent events `change`, and
 * `end` where no change is expected any more. They carry no data, as the page loads itself again. One call in each
 * poll reads the versions for all streams of the process.
 */
export function streamResource(
  call: Call,
  { stopping, pollMs = 1000, quietMs = 15_000, maxStreams = 200, maxOfSession = 4 }: StreamOptions,
): Resource {
  const watchers = new Set<Watcher>()
  let timer: NodeJS.Timeout | undefined

  const look = async (watched: readonly Pick<Watcher, 'session' | 'organisation' | 'message'>[]) =>
    (await call('dashboard_message_versions', {
      sessions: watched.map(({ session }) => session),
      organisations: watched.map(({ organisation }) => organisation),
      messages: watched.map(({ message }) => message),
    })) as State[]

  function write(watcher: Watcher, text: string): void {
    watcher.stream.write(text)
    watcher.wroteAt = performance.now()
  }

  function note(watcher: Watcher, state: State): void {
    if (!watchers.has(watcher)) return
    if (state && state.version !== watcher.seen) {
      watcher.seen = state.version
      // After a break of the connection the browser sends the ID back.
      write(watcher, `id: ${state.version}\nevent: change\ndata:\n\n`)
    }
    if (!state?.mayChange) end(watcher, 'event: end\ndata:\n\n')
    else if (performance.now() - watcher.wroteAt >= quietMs) write(watcher, ':\n\n')
  }

  function end(watcher: Watcher, last = ''): void {
    watchers.delete(watcher)
    watcher.stream.end(last)
  }

  async function poll(): Promise<void> {
    const watched = [...watchers]
    // A poll that fails is repeated: a page need not change while the database is away for a moment.
    const states = await look(watched).catch(() => null)
    for (const [index, watcher] of watched.entries()) {
      note(watcher, states ? (states[index] ?? null) : { version: watcher.seen, mayChange: true })
    }
  }

  function pollLater(): void {
    timer ??= setTimeout(async () => {
      if (watchers.size > 0) await poll()
      timer = undefined
      if (watchers.size > 0) pollLater()
    }, pollMs)
  }

  stopping.addEventListener('abort', () => {
    clearTimeout(timer)
    for (const watcher of watchers) end(watcher)
  })

  async function open({ ctx, session, organisation, id, query }: Visit): Promise<void> {
    const message = id
    const [state = null] = await look([{ session, organisation, message }])
    if (!state) throw new Refusal('not_found')
    const ofSession = [...watchers].filter((watcher) => watcher.session === session)
    if (watchers.size >= maxStreams || ofSession.length >= maxOfSession) {
      const words =
        'Too many pages are open that update themselves. Reload this page to see changes.'
      throw new Refusal('rate_limited', null, { message: words })
    }
    ctx.set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      // nginx would keep events back.
      'X-Accel-Buffering': 'no',
      // A kept-alive connection would delay the stop of the process.
      Connection: 'close',
    })
    const stream = new PassThrough()
    ctx.body = stream
    if (ctx.method === 'HEAD') return
    const seen = ctx.get('Last-Event-ID') || (query.seen ?? '')
    const watcher = { session, organisation, message, seen, stream, wroteAt: 0 }
    watchers.add(watcher)
    stream.once('close', () => watchers.delete(watcher))
    write(watcher, 'retry: 3000\n\n')
    note(watcher, state)
    if (stopping.aborted) end(watcher)
    if (watchers.size > 0) pollLater()
  }

  return { path: '/dashboard/:organisation/messages/:id/events', respond: open }
}
