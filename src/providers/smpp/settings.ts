import * as v from 'valibot'
import { integer } from '../../text/values.ts'
import { urlReadBy } from '../server-url.ts'
import { readSmsc } from './smsc.ts'

/** `smpp://` or `smpps://system_id:password@host:port`, as readSmsc() takes it. */
const smppUrl = urlReadBy(readSmsc)

/** A country calling code (E.164): 27 or +27. */
const countryCode = v.pipe(
  v.string(),
  v.regex(/^\+?[1-9]\d{0,2}$/, 'must be a country calling code of 1 to 3 digits, such as 27'),
  v.transform((text) => text.replace('+', '')),
)

/** The environment variables of this provider. */
export const smppVariables = v.object({
  SMPP_URL: v.optional(smppUrl),
  SMPP_WINDOW: v.optional(integer(1, 1000), '10'),
  SMPP_RATE: v.optional(integer(1, 10_000), '10'),
  SMPP_COUNTRY_CODE: v.optional(countryCode),
})

/** The variables that a service with this provider requires. */
export const smppRequired = ['SMPP_URL'] as const

export type SmppSettings = {
  provider: 'smpp'
  /** SMPP_URL. */
  url: string
  /** The most PDUs without a response. */
  window: number
  /** The most PDUs per second. */
  rate: number
  /** The country calling code of numbers in national form; null: such numbers are not accepted. */
  countryCode: string | null
}

/** Returns the settings; the URL is '' where a command does not require it and it is not set. */
export function smppSettings(variables: v.InferOutput<typeof smppVariables>): SmppSettings {
  return {
    provider: 'smpp',
    url: variables.SMPP_URL ?? '',
    window: variables.SMPP_WINDOW,
    rate: variables.SMPP_RATE,
    countryCode: variables.SMPP_COUNTRY_CODE ?? null,
  }
}
