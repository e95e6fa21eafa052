import type { Dispatcher } from 'undici'
import { storable } from '../text/storable.ts'
import type { Time } from '../time/index.ts'
import {
  errorMessage,
  type LocalFailure,
  localFailureOf,
  type Phase,
  STOPPED,
  TIMED_OUT,
} from './failures.ts'

/** The outcome of a post. */
export type PostOutcome = {
  /** The HTTP status; null when no response arrived. */
  status: number | null
  /** Why it failed, in plain words for the endpoint's owner; null when it succeeded. */
  error: string | null
  /** The first 1 000 characters of the response body, without what Postgres cannot store; null when no response arrived. */
  response: string | null
}

type Exchanged = {
  outcome: PostOutcome | LocalFailure
  /** Whether the connection can be used again. */
  isReusable: boolean
}

/** A response up to this size is read to its end, so that its connection can be used again. */
const MAX_RESPONSE_BYTES = 1024 * 1024

const STORED_CHARACTERS = 1000

/** A character takes at most four bytes in UTF-8. */
const STORED_BYTES = 4 * STORED_CHARACTERS

/** Servers send one or two; an endless series would keep the event loop busy until the time limit. */
const MAX_INTERIM_RESPONSES = 10

/**
 * Sends one request over a connection that nobody else uses, and reads its response. `timeoutMs` and
 * `signal` end the exchange in any phase, also while the connection is being made. The caller destroys
 * a connection that is not reusable. Never throws.
 */
export function exchange(
  connection: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, time, signal }: { timeoutMs: number; time: Time; signal?: AbortSignal | undefined },
): Promise<Exchanged> {
  return new Promise((resolve) => {
    let phase: Phase = 'connecting'
    let status: number | null = null
    let interimResponses = 0
    let bodyBytes = 0
    const stored: Buffer[] = []

    const cancelTimeout = time.after(timeoutMs, () => finish(TIMED_OUT[phase]))
    const onAbort = () => finish(STOPPED)
    signal?.addEventListener('abort', onAbort)

    /** Later calls have no effect. */
    function finish(problem: string | null, local?: LocalFailure) {
      cancelTimeout()
      signal?.removeEventListener('abort', onAbort)
      if (local && status === null) return resolve({ outcome: local, isReusable: false })
      // A status other than 2xx explains the failure best, however the rest of the response went.
      const isSuccess = status === null || (status >= 200 && status < 300)
      const error = isSuccess ? problem : `responded ${status}`
      const response = status === null ? null : textOf(stored)
      resolve({ outcome: { status, error, response }, isReusable: problem === null })
    }

    if (signal?.aborted) return finish(STOPPED)
    connection.dispatch(request, {
      onRequestStart() {
        phase = 'waiting'
      },
      onResponseStart(_, statusCode) {
        // undici passes interim responses such as 103 on, and breaks the connection off at a 100 or 101.
        if (statusCode < 200) {
          interimResponses += 1
          if (interimResponses > MAX_INTERIM_RESPONSES) {
            finish(`it sent more than ${MAX_INTERIM_RESPONSES} interim responses`)
          }
          return
        }
        status = statusCode
        phase = 'reading'
      },
      onResponseData(_, chunk) {
        const missing = STORED_BYTES - bodyBytes
        if (missing > 0) stored.push(Buffer.from(chunk.subarray(0, missing)))
        bodyBytes += chunk.length
        if (bodyBytes > MAX_RESPONSE_BYTES) finish('the response is longer than 1 MiB')
      },
      onResponseEnd: () => finish(null),
      onResponseError: (_, error) => {
        // Once connected, the endpoint may have received the event: the attempt counts.
        finish(
          errorMessage(error, phase),
          phase === 'connecting' ? localFailureOf(error) : undefined,
        )
      },
    })
  })
}

function textOf(chunks: readonly Buffer[]): string {
  const text = Buffer.concat(chunks).toString('utf8')
  return storable(Array.from(text).slice(0, STORED_CHARACTERS).join(''))
}
