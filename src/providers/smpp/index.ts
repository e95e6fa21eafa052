import type { Logger } from 'pino'
import type { SmsListener, SmsProvider } from '../sms.ts'
import { createSender } from './attempt.ts'
import { readDelivery } from './delivery.ts'
import { hintOf, LinkFailed } from './failure.ts'
import { createLimiter } from './limiter.ts'
import { createLink, openSession } from './link.ts'
import type { Fields } from './pdu.ts'
import type { SmppSettings } from './settings.ts'
import { readSmsc } from './smsc.ts'
import { OK, TRY_AGAIN } from './status.ts'
import { type SmppTimes, TIMES } from './times.ts'

export type SmppOptions = Omit<SmppSettings, 'provider'> & {
  /** null: the provider binds only to send, and the SMSC must repeat what it delivers. */
  listener: SmsListener | null
  log: Logger
  times?: Partial<SmppTimes>
}

/** Creates an SMS provider that sends to an SMSC over SMPP 3.4. */
export function createSmpp({
  url,
  window,
  rate,
  countryCode,
  listener,
  log,
  ...given
}: SmppOptions): SmsProvider {
  const smsc = readSmsc(url)
  if ('problem' in smsc) throw new Error(`SMPP_URL ${smsc.problem}`)
  const times = { ...TIMES, ...given.times }
  const options = { ...times, smsc, log, deliver }
  const link = createLink(options)
  const limiter = createLimiter({ window, rate })
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
