import type { Dispatcher } from 'undici'
import { storable } from '../storable.ts'
import { type Phase, STOPPED, TIMED_OUT, WebhookFailure, wordsFor } from './failures.ts'

/** What came of a post, as api.finish_deliveries keeps it. */
export type PostOutcome = {
  /** HTTP status; null when no answer came. */
  status: number | null
  /** Why it failed, in words for the endpoint's owner; null when it succeeded. */
  error: string | null
  /** The first characters of the answer's body, without what Postgres cannot store; null when no answer came. */
  answer: string | null
}

/** An answer is read to its end, so that its connection can be used again, unless it is longer. */
const MAX_ANSWER_BYTES = 1024 * 1024

const KEPT_CHARACTERS = 1000

/** UTF-8 takes up to four for a character. */
const KEPT_BYTES = 4 * KEPT_CHARACTERS

/**
 * One request and its answer, which `timeoutMs` and `signal` end wherever it stands: while it still
 * waits for a connection as well. Never throws.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<PostOutcome> {
  return new Promise((resolve) => {
    let phase: Phase = 'connecting'
    let controller: Dispatcher.DispatchController | undefined
    let isOver = false
    let status: number | null = null
    let answered = 0
    const kept: Buffer[] = []

    const timer = setTimeout(() => stop(TIMED_OUT[phase]), timeoutMs)
    const onAbort = () => stop(STOPPED)
    signal?.addEventListener('abort', onAbort)

    function finish(problem: string | null) {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      // A status that is no success says most, however the rest of the answer went.
      const isSuccess = status === null || (status >= 200 && status < 300)
      const error = isSuccess ? problem : `answered ${status}`
      resolve({ status, error, answer: status === null ? null : beginningOf(kept) })
    }

    /** Its connection goes with it, as the rest of an answer may still come on it. */
    function stop(problem: string) {
      finish(problem)
      controller?.abort(new WebhookFailure(problem))
    }

    if (signal?.aborted) return stop(STOPPED)
    dispatcher.dispatch(request, {
      onRequestStart(given) {
        controller = given
        phase = 'waiting'
        if (isOver) controller.abort(new WebhookFailure(STOPPED))
      },
      onResponseStart(_, statusCode) {
        // An interim answer, such as 103, is followed by another.
        if (statusCode < 200) return
        status = statusCode
        phase = 'reading'
      },
      onResponseData(_, chunk) {
        const missing = KEPT_BYTES - answered
        if (missing > 0) kept.push(Buffer.from(chunk.subarray(0, missing)))
        answered += chunk.length
        if (answered > MAX_ANSWER_BYTES) stop('its answer is longer than 1 MiB')
      },
      onResponseEnd: () => finish(null),
      onResponseError: (_, error) => finish(wordsFor(error, phase)),
    })
  })
}

function beginningOf(chunks: readonly Buffer[]): string {
  const text = Buffer.concat(chunks).toString('utf8')
  return storable(Array.from(text).slice(0, KEPT_CHARACTERS).join(''))
}
