import type { Logger } from 'pino'
import type { SmsListener, SmsProvider } from '../sms.ts'

export type SmppOptions = {
  /** As SMPP_URL has it. */
  url: string
  /** Unanswered PDUs allowed. */
  window: number
  /** Messages per second. */
  rate: number
  /** null: nothing is listened for, as where settings are examined only. */
  listener: SmsListener | null
  log: Logger
}

/** An SMS provider that hands over to an SMSC by SMPP 3.4. */
export function createSmpp(_options: SmppOptions): SmsProvider {
  throw new Error('there is no SMPP yet')
}
