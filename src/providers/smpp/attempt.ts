import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { TakenPart } from '../../db/api.gen.ts'
import type { About, SendResult } from '../email.ts'
import type { OutgoingSms, SmsSendResult } from '../sms.ts'
import type { Limiter } from './limiter.ts'
import type { SmscLink } from './link.ts'
import { networkIdOf } from './network-id.ts'
import { NoResponse, type Session } from './session.ts'
import { concernsSmsc, isTemporary, labelOf, nameOf, OK, WRONG_BIND_STATE } from './status.ts'
import { type Part, partsOf } from './submit.ts'
import type { SmppTimes } from './times.ts'

export type SenderOptions = SmppTimes & {
  link: SmscLink
  limiter: Limiter
  /** Aborted when the provider closes. */
  signal: AbortSignal
}

type PartResult = SendResult & { taken?: TakenPart }

/** A temporary refusal, with its command status. */
type TemporaryRefusal = { refused: number }

/** The first of these outcomes that any part has is the outcome of the message. */
const PRECEDENCE = ['ambiguous', 'failed', 'deferred', 'sent'] as const

const NO_LINK = 'There is no link to the network'

/** Returns a function that sends an SMS over a link, within the limiter. */
export function createSender({ link, limiter, signal, ...times }: SenderOptions) {
  // Each part that waits for a retry adds a listener.
  setMaxListeners(0, signal)

  /**
   * Sends the first part alone and the others only if it is taken: a refusal of one part means a refusal of
   * all, and an incomplete message costs as much as a complete one.
   */
  return async (sms: OutgoingSms): Promise<SmsSendResult> => {
    const deadline = performance.now() + times.submitTimeoutMs
    const [first, ...rest] = partsOf(sms)
    if (!first) return { outcome: 'sent', parts: [] }
    const results = [await sendPart(first, false)]
    if (results[0]?.outcome === 'sent') {
      results.push(...(await Promise.all(rest.map((part) => sendPart(part, true)))))
    }
    return combine(results)

    /** Submits a part until the network takes it, refuses it permanently, or the deadline is reached. */
    async function sendPart(part: Part, hasBegun: boolean): Promise<PartResult> {
      for (let delayMs = times.retryDelayMs; ; delayMs *= 2) {
        const isRetry = delayMs > times.retryDelayMs
        const result = await submitPart(sms, part, { deadline, isFirst: hasBegun || isRetry })
        if ('outcome' in result) return result
        if (performance.now() + delayMs > deadline) {
          const { refused } = result
          return {
            outcome: 'deferred',
            about: concernsSmsc(refused) ? 'provider' : 'message',
            code: nameOf(refused),
            text: `The network refuses it temporarily (${labelOf(refused)}).`,
          }
        }
        await pause(delayMs * (0.5 + Math.random() / 2), null, { signal }).catch(() => undefined)
      }
    }
  }

  /** Waits for the link and a permit, then submits the part once. */
  async function submitPart(
    sms: OutgoingSms,
    part: Part,
    { deadline, isFirst }: { deadline: number; isFirst: boolean },
  ): Promise<PartResult | TemporaryRefusal> {
    for (;;) {
      const leftMs = () => Math.max(0, deadline - performance.now())
      if (!(await link.sessionWithin(Math.min(times.linkTimeoutMs, leftMs())))) {
        return signal.aborted ? { outcome: 'deferred', text: `${NO_LINK}.` } : withoutLink(link)
      }
      const permit = await limiter.acquire(leftMs(), { isFirst })
      if (!permit) {
        return { outcome: 'deferred', text: 'The rate limit of the network left no time for it.' }
      }
      const session = link.session()
      // The link was lost during the wait. Nothing was written, so the loop starts again.
      if (!session) {
        permit.release()
        continue
      }
      try {
        const result = await submit(session, sms, part)
        const isTaken = 'outcome' in result && result.outcome === 'sent'
        permit.release(isTaken ? 'accepted' : 'refused' in result ? 'throttled' : undefined)
        return result
      } finally {
        permit.release()
      }
    }
  }
}

async function submit(
  session: Session,
  { id }: OutgoingSms,
  { part, fields }: Part,
): Promise<PartResult | TemporaryRefusal> {
  try {
    const response = await session.request('submit_sm', fields)
    const { status } = response
    if (status === OK) {
      const network_id = networkIdOf(response.fields.message_id) ?? `none:${id}:${part}`
      return { outcome: 'sent', taken: { part, network_id } }
    }
    // The SMSC has lost our bind, so every further request on this session would fail.
    if (status === WRONG_BIND_STATE) void session.unbind()
    if (isTemporary(status)) return { refused: status }
    return {
      outcome: 'failed',
      about: 'message',
      code: nameOf(status),
      text: `The network refuses it (${labelOf(status)}).`,
    }
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    const text = `The network may have taken it: ${error.message}.`
    return { outcome: 'ambiguous', about: 'provider', text }
  }
}

function combine(results: PartResult[]): SmsSendResult {
  const parts = results.flatMap(({ taken }) => taken ?? [])
  for (const outcome of PRECEDENCE) {
    const decisive = results.find((result) => result.outcome === outcome)
    if (!decisive) continue
    const { taken, ...result } = decisive
    return { ...result, parts }
  }
  throw new Error('a message has no parts')
}

/** Returns the result without a link. An SMSC that refuses the bind can be reached. */
function withoutLink(link: SmscLink): PartResult {
  const failure = link.failure()
  if (!failure) return { outcome: 'deferred', about: 'connection', text: `${NO_LINK}.` }
  const { code, message, label, status } = failure
  const about: About = status === null ? 'connection' : 'provider'
  return { outcome: 'deferred', about, code, text: `${NO_LINK}: ${message} (${label}).` }
}
