import * as v from 'valibot'
import { urlReadBy } from '../server-url.ts'
import { readRelay } from './relay.ts'

/** `smtp://` or `smtps://user:password@host:port`, as readRelay() takes it. */
const smtpUrl = urlReadBy(readRelay)

/** The environment variables of this provider. */
export const smtpVariables = v.object({
  SMTP_URL: v.optional(smtpUrl),
})

/** The variables that a service with this provider requires. */
export const smtpRequired = ['SMTP_URL'] as const

export type SmtpSettings = { provider: 'smtp'; url: string }

/** Returns the settings; the URL is '' where a command does not require it and it is not set. */
export function smtpSettings({ SMTP_URL: url }: v.InferOutput<typeof smtpVariables>): SmtpSettings {
  return { provider: 'smtp', url: url ?? '' }
}
