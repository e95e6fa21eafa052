import type { Logger } from 'pino'
import type { SmsListener, SmsProvider } from '../sms.ts'
import { createSender } from './attempt.ts'
import { readDelivery } from './delivery.ts'
import { hintOf, LinkFailed } from './failure.ts'
import { Pace } from './limiter.ts'
import { Link, open } from './link.ts'
import type { Fields } from './pdu.ts'
import { readSmsc } from './smsc.ts'
import { OK, TRY_AGAIN } from './status.ts'

export type SmppOptions = {
  /** As SMPP_URL has it. */
  url: string
  /** Unanswered PDUs allowed. */
  window: number
  /** PDUs per second. */
  rate: number
  /** The country calling code of numbers in national form; null: those are not understood. */
  countryCode?: string | null
  /** null: nothing is listened for, as where settings are examined only. */
  listener: SmsListener | null
  log: Logger
  times?: Partial<SmppTimes>
}

/** How long things may take, in milliseconds. */
export type SmppTimes = {
  /** TCP and TLS. */
  connectsWithinMs: number
  /** Each PDU. */
  answersWithinMs: number
  enquireEveryMs: number
  /** A message waits so long for a link that is down. */
  linkWithinMs: number
  /** So long after a message came a part of it may still be written. */
  writesWithinMs: number
  /** The pause before a part is offered again that the network did not take; it doubles. */
  retryAfterMs: number
  /** The pause before a new link; it doubles. */
  reconnectAfterMs: number
  reconnectAtMostEveryMs: number
  /** The pause after a wrong user or password: networks lock accounts that try one too often. */
  wrongLoginPauseMs: number
  /** What is under way may take so long to end. */
  closesWithinMs: number
}

/**
 * A message has its answer after writesWithinMs and answersWithinMs at the latest, which is less than
 * the worker's patience: what it has given up must not leave later.
 */
const TIMES: SmppTimes = {
  connectsWithinMs: 10_000,
  answersWithinMs: 30_000,
  enquireEveryMs: 30_000,
  linkWithinMs: 5000,
  writesWithinMs: 20_000,
  retryAfterMs: 500,
  reconnectAfterMs: 500,
  reconnectAtMostEveryMs: 30_000,
  wrongLoginPauseMs: 60_000,
  closesWithinMs: 8000,
}

/** An SMS provider that hands over to an SMSC by SMPP 3.4. */
export function createSmpp({
  url,
  window,
  rate,
  countryCode = null,
  listener,
  log,
  ...given
}: SmppOptions): SmsProvider {
  const smsc = readSmsc(url)
  if ('problem' in smsc) throw new Error(`SMPP_URL ${smsc.problem}`)
  const times = { ...TIMES, ...given.times }
  const options = { ...times, smsc, log, deliver }
  const link = new Link(options)
  const pace = new Pace({ window, rate })
  const closing = new AbortController()
  const send = createSender({ ...times, link, pace, signal: closing.signal })
  if (listener) link.start()

  /** Tell the listener; answers with what the SMSC is to be told. */
  async function deliver(fields: Fields): Promise<number> {
    // It is for whoever listens.
    if (!listener) return TRY_AGAIN
    try {
      const delivery = readDelivery(fields, new Date(), countryCode)
      if (!delivery) log.debug('receipt without an id or a known state ignored')
      else if ('receipt' in delivery) await listener.onReceipt(delivery.receipt)
      else if ('inbound' in delivery) await listener.onInbound(delivery.inbound)
      else listener.onIgnored(delivery.ignored)
      return OK
    } catch (err) {
      log.warn({ err }, 'what the SMSC delivered could not be taken; it sends that again')
      return TRY_AGAIN
    }
  }

  return {
    name: 'smpp',
    send,
    async examine() {
      try {
        const session = await open(options, new AbortController().signal)
        await session.unbind()
        return null
      } catch (error) {
        return hintOf(LinkFailed.from(error))
      }
    },
    async close() {
      closing.abort()
      pace.close()
      await link.close()
    },
  }
}
