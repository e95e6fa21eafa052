import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { About, SendResult } from '../email.ts'
import type { OutgoingSms, SmsSendResult, TakenPart } from '../sms.ts'
import type { Pace } from './limiter.ts'
import type { Link } from './link.ts'
import { networkIdOf } from './network-id.ts'
import { type Session, Unanswered } from './session.ts'
import { isOfTheSmsc, isTemporary, labelOf, nameOf, OK, WRONG_BIND_STATE } from './status.ts'
import { type Part, partsOf } from './submit.ts'

export type SenderOptions = {
  link: Link
  pace: Pace
  /** How long a message waits for a link that is down. */
  linkWithinMs: number
  /** How long after a message came a part of it may still be written. */
  writesWithinMs: number
  /** The pause before a part is tried again that the network did not take for now; it doubles. */
  retryAfterMs: number
  /** Aborted when nothing more is to be written. */
  signal: AbortSignal
}

type Outcome = SendResult & { taken?: TakenPart }

/** The outcomes of parts, the one first that says what became of the whole message. */
const RANKS = ['ambiguous', 'failed', 'deferred', 'sent'] as const

const TEXT_OF_LINK = 'There is no link to the network'

/** Hands messages over through a link, at its pace. */
export function createSender({ link, pace, signal, ...times }: SenderOptions) {
  // One for each part that waits before it is offered again.
  setMaxListeners(0, signal)

  /**
   * The first part goes ahead: what is wrong with it is wrong with all of them, and parts that nobody
   * can put together cost as much as others.
   */
  return async (sms: OutgoingSms): Promise<SmsSendResult> => {
    const until = performance.now() + times.writesWithinMs
    const [first, ...rest] = partsOf(sms)
    if (!first) return { outcome: 'sent', parts: [] }
    const outcomes = [await send(first, false)]
    if (outcomes[0]?.outcome === 'sent') {
      outcomes.push(...(await Promise.all(rest.map((part) => send(part, true)))))
    }
    return together(outcomes)

    /** Offer a part until the network takes it or says that it never will, or time is up. */
    async function send(part: Part, hasBegun: boolean): Promise<Outcome> {
      for (let waitMs = times.retryAfterMs; ; waitMs *= 2) {
        const isFirst = hasBegun || waitMs > times.retryAfterMs
        const answer = await offer(sms, part, { until, isFirst })
        if ('outcome' in answer) return answer
        if (performance.now() + waitMs > until) {
          const { refused } = answer
          return {
            outcome: 'deferred',
            about: isOfTheSmsc(refused) ? 'provider' : 'message',
            code: nameOf(refused),
            text: `The network does not take it now (${labelOf(refused)}).`,
          }
        }
        await pause(waitMs * (0.5 + Math.random() / 2), null, { signal }).catch(() => undefined)
      }
    }
  }

  async function offer(
    sms: OutgoingSms,
    part: Part,
    { until, isFirst }: { until: number; isFirst: boolean },
  ): Promise<Outcome | { refused: number }> {
    for (;;) {
      const leftMs = () => Math.max(0, until - performance.now())
      if (!(await link.sessionWithin(Math.min(times.linkWithinMs, leftMs())))) {
        return signal.aborted
          ? { outcome: 'deferred', text: `${TEXT_OF_LINK}.` }
          : withoutLink(link)
      }
      const turn = await pace.turn(leftMs(), { isFirst })
      if (!turn) {
        return { outcome: 'deferred', text: 'Its turn at the network did not come in time.' }
      }
      const { session } = link
      // It may have been lost while this waited for its turn. Nothing is written yet.
      if (!session) {
        turn.end()
        continue
      }
      try {
        const answer = await submit(session, sms, part)
        const isTaken = 'outcome' in answer && answer.outcome === 'sent'
        turn.end(isTaken ? 'taken' : 'refused' in answer ? 'throttled' : undefined)
        return answer
      } finally {
        turn.end()
      }
    }
  }
}

async function submit(
  session: Session,
  { id }: OutgoingSms,
  { part, fields }: Part,
): Promise<Outcome | { refused: number }> {
  try {
    const answer = await session.request('submit_sm', fields)
    const { status } = answer
    if (status === OK) {
      const network_id = networkIdOf(answer.fields.message_id) ?? `none:${id}:${part}`
      return { outcome: 'sent', taken: { part, network_id } }
    }
    // It has forgotten that we are bound, and will not remember.
    if (status === WRONG_BIND_STATE) void session.unbind()
    if (isTemporary(status)) return { refused: status }
    return {
      outcome: 'failed',
      about: 'message',
      code: nameOf(status),
      text: `The network refuses it (${labelOf(status)}).`,
    }
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error
    const text = `Nobody knows whether it was taken: ${error.message}.`
    return { outcome: 'ambiguous', about: 'provider', text }
  }
}

function together(outcomes: Outcome[]): SmsSendResult {
  const parts = outcomes.flatMap(({ taken }) => taken ?? [])
  for (const rank of RANKS) {
    const one = outcomes.find(({ outcome }) => outcome === rank)
    if (!one) continue
    const { taken, ...answer } = one
    return { ...answer, parts }
  }
  throw new Error('a message has no parts')
}

/** An SMSC that refuses the bind can be reached. */
function withoutLink({ failure }: Link): Outcome {
  if (!failure) return { outcome: 'deferred', about: 'connection', text: `${TEXT_OF_LINK}.` }
  const { code, message, label, status } = failure
  const about: About = status === null ? 'connection' : 'provider'
  return { outcome: 'deferred', about, code, text: `${TEXT_OF_LINK}: ${message} (${label}).` }
}
