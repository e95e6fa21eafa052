import type { Logger } from 'pino'
import type { SmsListener, SmsProvider } from '../sms.ts'
import { createSender } from './attempt.ts'
import { readDelivery } from './delivery.ts'
import { hintOf, LinkFailed } from './failure.ts'
import { Limiter } from './limiter.ts'
import { openSession, SmscLink } from './link.ts'
import type { Fields } from './pdu.ts'
import { readSmsc } from './smsc.ts'
import { OK, TRY_AGAIN } from './status.ts'

export type SmppOptions = {
  /** SMPP_URL. */
  url: string
  /** The most PDUs without a response. */
  window: number
  /** The most PDUs per second. */
  rate: number
  /** The country calling code of numbers in national form; null: such numbers are not accepted. */
  countryCode?: string | null
  /** null: the provider binds only to send, and the SMSC must repeat what it delivers. */
  listener: SmsListener | null
  log: Logger
  times?: Partial<SmppTimes>
}

/** Time limits and delays. */
export type SmppTimes = {
  /** TCP and TLS. */
  connectTimeoutMs: number
  /** The response to each PDU. */
  responseTimeoutMs: number
  enquireLinkIntervalMs: number
  /** How long a message waits for a link that is down. */
  linkTimeoutMs: number
  /** How long after the start of an attempt a part may still be submitted. */
  submitTimeoutMs: number
  /** The delay before a part that was refused temporarily is submitted again; it doubles each time. */
  retryDelayMs: number
  /** The delay before a new link; it doubles with each failure up to the maximum. */
  reconnectDelayMs: number
  maxReconnectDelayMs: number
  /** The delay after a wrong user or password: networks lock accounts after repeated attempts. */
  wrongLoginDelayMs: number
  /** How long requests in progress may take while the link closes. */
  closeTimeoutMs: number
}

/**
 * An attempt ends after submitTimeoutMs and responseTimeoutMs at the latest. That is shorter than the worker's
 * limit for an attempt, so that no part is submitted after its attempt is over.
 */
const TIMES: SmppTimes = {
  connectTimeoutMs: 10_000,
  responseTimeoutMs: 30_000,
  enquireLinkIntervalMs: 30_000,
  linkTimeoutMs: 5000,
  submitTimeoutMs: 20_000,
  retryDelayMs: 500,
  reconnectDelayMs: 500,
  maxReconnectDelayMs: 30_000,
  wrongLoginDelayMs: 60_000,
  closeTimeoutMs: 8000,
}

/** Creates an SMS provider that sends to an SMSC over SMPP 3.4. */
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
  const link = new SmscLink(options)
  const limiter = new Limiter({ window, rate })
  const closing = new AbortController()
  const send = createSender({ ...times, link, limiter, signal: closing.signal })
  if (listener) link.start()

  /** Passes a deliver_sm to the listener; returns the command status of the response. */
  async function deliver(fields: Fields): Promise<number> {
    // Another process of this account listens, and the SMSC delivers it there.
    if (!listener) return TRY_AGAIN
    try {
      const delivery = readDelivery(fields, new Date(), countryCode)
      if (!delivery) log.debug('SMS receipt without id or known state ignored')
      else if ('receipt' in delivery) await listener.onReceipt(delivery.receipt)
      else if ('inbound' in delivery) await listener.onInbound(delivery.inbound)
      else listener.onIgnored(delivery.ignored)
      return OK
    } catch (err) {
      log.warn({ err }, 'SMSC delivery failed, asked it to send again')
      return TRY_AGAIN
    }
  }

  return {
    name: 'smpp',
    send,
    async check() {
      try {
        const session = await openSession(options, new AbortController().signal)
        await session.unbind()
        return null
      } catch (error) {
        return hintOf(LinkFailed.from(error))
      }
    },
    async close() {
      closing.abort()
      limiter.close()
      await link.close()
    },
  }
}
