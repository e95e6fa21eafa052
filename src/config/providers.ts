/** The settings of all providers: each provider declares its own variables, and this file composes them. */
import * as v from 'valibot'
import type { EmailSettings, SmsSettings } from '../providers/index.ts'
import {
  mailgunRequired,
  mailgunSettings,
  mailgunVariables,
} from '../providers/mailgun/settings.ts'
import { sandboxSettings } from '../providers/sandbox/settings.ts'
import { smppRequired, smppSettings, smppVariables } from '../providers/smpp/settings.ts'
import { smtpRequired, smtpSettings, smtpVariables } from '../providers/smtp/settings.ts'
import { word } from './values.ts'

/** The environment variables that select the providers, and those of every provider. */
export const providerVariables = v.object({
  EMAIL_PROVIDER: v.optional(word('sandbox', 'mailgun', 'smtp'), 'sandbox'),
  SMS_PROVIDER: v.optional(word('sandbox', 'smpp'), 'sandbox'),
  ...mailgunVariables.entries,
  ...smtpVariables.entries,
  ...smppVariables.entries,
})

type Variables = v.InferOutput<typeof providerVariables>

/** The variables that sending email to real recipients requires, with any provider. */
const REAL_EMAIL = ['DKIM_ZONE', 'SYSTEM_FROM', 'PUBLIC_URL'] as const

/** A provider other than the sandbox, as its variable selects it. */
type Choice = {
  [Name in 'EMAIL_PROVIDER' | 'SMS_PROVIDER']: `${Name}=${Exclude<Variables[Name], 'sandbox'>}`
}['EMAIL_PROVIDER' | 'SMS_PROVIDER']

/** The variables that a service requires, by the choice of its providers. */
export const requiredByProvider: Record<Choice, readonly string[]> = {
  'EMAIL_PROVIDER=mailgun': [...mailgunRequired, ...REAL_EMAIL],
  'EMAIL_PROVIDER=smtp': [...smtpRequired, ...REAL_EMAIL],
  'SMS_PROVIDER=smpp': smppRequired,
}

/** Returns the settings of the email provider that EMAIL_PROVIDER names. */
export function emailSettings(variables: Variables): EmailSettings {
  switch (variables.EMAIL_PROVIDER) {
    case 'sandbox':
      return sandboxSettings
    case 'mailgun':
      return mailgunSettings(variables)
    case 'smtp':
      return smtpSettings(variables)
  }
}

/** Returns the settings of the SMS provider that SMS_PROVIDER names. */
export function smsSettings(variables: Variables): SmsSettings {
  switch (variables.SMS_PROVIDER) {
    case 'sandbox':
      return sandboxSettings
    case 'smpp':
      return smppSettings(variables)
  }
}
