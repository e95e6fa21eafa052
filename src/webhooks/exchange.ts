import type { Dispatcher } from 'undici'
import { storable } from '../text/storable.ts'
import {
  type OwnFailure,
  ownFailureOf,
  type Phase,
  STOPPED,
  TIMED_OUT,
  wordsFor,
} from './failures.ts'

/** What came of a post, as api.finish_deliveries keeps it. */
export type PostOutcome = {
  /** HTTP status; null when no answer came. */
  status: number | null
  /** Why it failed, in words for the endpoint's owner; null when it succeeded. */
  error: string | null
  /** The first characters of the answer's body, without what Postgres cannot store; null when no answer came. */
  answer: string | null
}

export type Exchanged = {
  outcome: PostOutcome | OwnFailure
  /** Whether the connection can be used again. */
  isWhole: boolean
}

/** An answer is read to its end, so that its connection can be used again, unless it is longer. */
const MAX_ANSWER_BYTES = 1024 * 1024

const KEPT_CHARACTERS = 1000

/** UTF-8 takes up to four for a character. */
const KEPT_BYTES = 4 * KEPT_CHARACTERS

/**
 * One request and its answer on a connection that has nothing else to do. `timeoutMs` and `signal` end
 * it wherever it stands, also while the connection is still being made; unless it is whole then, the
 * connection is the caller's to destroy. Never throws.
 */
export function exchange(
  connection: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<Exchanged> {
  return new Promise((resolve) => {
    let phase: Phase = 'connecting'
    let status: number | null = null
    let answered = 0
    const kept: Buffer[] = []

    const timer = setTimeout(() => finish(TIMED_OUT[phase]), timeoutMs)
    const onAbort = () => finish(STOPPED)
    signal?.addEventListener('abort', onAbort)

    /** The first call counts. */
    function finish(problem: string | null, own?: OwnFailure) {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      if (own && status === null) return resolve({ outcome: own, isWhole: false })
      // A status that is no success says most, however the rest of the answer went.
      const isSuccess = status === null || (status >= 200 && status < 300)
      const error = isSuccess ? problem : `answered ${status}`
      const answer = status === null ? null : beginningOf(kept)
      resolve({ outcome: { status, error, answer }, isWhole: problem === null })
    }

    if (signal?.aborted) return finish(STOPPED)
    connection.dispatch(request, {
      onRequestStart() {
        phase = 'waiting'
      },
      onResponseStart(_, statusCode) {
        status = statusCode
        phase = 'reading'
      },
      onResponseData(_, chunk) {
        const missing = KEPT_BYTES - answered
        if (missing > 0) kept.push(Buffer.from(chunk.subarray(0, missing)))
        answered += chunk.length
        if (answered > MAX_ANSWER_BYTES) finish('its answer is longer than 1 MiB')
      },
      onResponseEnd: () => finish(null),
      onResponseError: (_, error) => {
        // What the endpoint may have had by then counts, whoever it was that lacked something.
        finish(wordsFor(error, phase), phase === 'connecting' ? ownFailureOf(error) : undefined)
      },
    })
  })
}

function beginningOf(chunks: readonly Buffer[]): string {
  const text = Buffer.concat(chunks).toString('utf8')
  return storable(Array.from(text).slice(0, KEPT_CHARACTERS).join(''))
}
