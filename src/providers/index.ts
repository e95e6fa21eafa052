import type { Logger } from 'pino'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'
import type { EmailProvider } from './email.ts'
import { createMailgun } from './mailgun/index.ts'
import type { MailgunSettings } from './mailgun/settings.ts'
import { createSandbox } from './sandbox/email.ts'
import type { SandboxSettings } from './sandbox/settings.ts'
import { createSmsSandbox } from './sandbox/sms.ts'
import { createSmpp } from './smpp/index.ts'
import type { SmppSettings } from './smpp/settings.ts'
import type { SmsListener, SmsProvider } from './sms.ts'
import { createSmtp } from './smtp/index.ts'
import type { SmtpSettings } from './smtp/settings.ts'

/** The settings of an email provider. */
export type EmailSettings = SandboxSettings | MailgunSettings | SmtpSettings

/** The settings of an SMS provider. */
export type SmsSettings = SandboxSettings | SmppSettings

export type ProviderOptions = {
  email: EmailSettings
  call: Call
  secrets: Secrets
  /** PUBLIC_URL; null if it is not set, and then no callbacks are set up. */
  publicUrl: string | null
}

/** Creates the email provider that the configuration names. */
export function createEmailProvider({
  email,
  call,
  secrets,
  publicUrl,
}: ProviderOptions): EmailProvider {
  switch (email.provider) {
    case 'sandbox':
      return createSandbox(call)
    case 'mailgun':
      return createMailgun({
        ...email,
        ...(publicUrl ? { callbackUrl: `${publicUrl}/providers/mailgun/events` } : {}),
      })
    case 'smtp':
      return createSmtp({ url: email.url, secrets })
  }
}

export type SmsProviderOptions = {
  sms: SmsSettings
  call: Call
  /** null: the provider does not listen, for example because only its settings are checked. */
  listener: SmsListener | null
  log: Logger
}

/** Creates the SMS provider that the configuration names. */
export function createSmsProvider({ sms, call, listener, log }: SmsProviderOptions): SmsProvider {
  switch (sms.provider) {
    case 'sandbox':
      return createSmsSandbox(call)
    case 'smpp':
      return createSmpp({ ...sms, listener, log })
  }
}
