import * as v from 'valibot'
import { httpUrl } from '../../text/values.ts'

/** A credential that Mailgun issued. */
const credential = v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,500}$/, 'must be one word'))

/** A base URL to which paths with their version are appended. */
const unversionedUrl = v.pipe(
  httpUrl,
  v.check(
    (text) => !/\/v\d+$/.test(text),
    'must end before the version, as https://api.mailgun.net',
  ),
)

/** The environment variables of this provider. */
export const mailgunVariables = v.object({
  MAILGUN_API_KEY: v.optional(credential),
  MAILGUN_API_BASE: v.optional(unversionedUrl, 'https://api.mailgun.net'),
  MAILGUN_WEBHOOK_SIGNING_KEY: v.optional(credential),
})

/** The variables that a service with this provider requires. */
export const mailgunRequired = ['MAILGUN_API_KEY', 'MAILGUN_WEBHOOK_SIGNING_KEY'] as const

export type MailgunSettings = {
  provider: 'mailgun'
  apiKey: string
  apiBase: string
  /** Mailgun signs its callbacks with this key. */
  signingKey: string
}

/** Returns the settings; variables that a command does not require and that are not set are ''. */
export function mailgunSettings(
  variables: v.InferOutput<typeof mailgunVariables>,
): MailgunSettings {
  return {
    provider: 'mailgun',
    apiKey: variables.MAILGUN_API_KEY ?? '',
    apiBase: variables.MAILGUN_API_BASE,
    signingKey: variables.MAILGUN_WEBHOOK_SIGNING_KEY ?? '',
  }
}
