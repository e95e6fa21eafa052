import { DomainRefused, type EmailProvider, ProviderUnavailable } from '../email.ts'
import { createCallbackReader } from './callback.ts'
import { type Account, createClient, found } from './client.ts'
import { checkDomain, createDomain, removeSuppression } from './domains.ts'
import { isKnown, receiptsOf } from './events.ts'
import { rotateDkim } from './keys.ts'
import { sendEmail } from './send.ts'
import type { MailgunError } from './transport.ts'
import { ensureWebhooks } from './webhooks.ts'

const SEND_TIMEOUT_MS = 30_000
const TIMEOUT_MS = 10_000

/** How long Mailgun may take to list an event of an email that it took. Mailgun documents no figure. */
const LOOKUP_DELAY_MS = 30_000

export type MailgunOptions = Account & {
  signingKey: string
  /** The URL for Mailgun's callbacks; without it Mailgun's settings stay as they are. */
  callbackUrl?: string
}

/** Sends through Mailgun with mailgun.js. */
export function createMailgun(
  { signingKey, callbackUrl, ...account }: MailgunOptions,
  { sendTimeoutMs = SEND_TIMEOUT_MS, timeoutMs = TIMEOUT_MS } = {},
): EmailProvider {
  const sender = createClient(account, sendTimeoutMs)
  const client = createClient(account, timeoutMs)
  return {
    name: 'mailgun',
    account: 'mailgun',
    signsHere: false,
    lookupDelayMs: LOOKUP_DELAY_MS,
    send: async (email) => sendEmail(sender, { ...email, domain: inPath(email.domain) }),
    lookup: (email) => request(email.domain, () => isKnown(client, email)),
    createDomain: (domain) =>
      request(domain.name, async () => {
        const identity = await createDomain(client, domain)
        if (callbackUrl) await ensureWebhooks(client, domain.name, callbackUrl)
        return identity
      }),
    checkDomain: (name, selector) =>
      request(name, async () => {
        const state = await checkDomain(client, name, selector)
        if (callbackUrl && state !== 'unknown') await ensureWebhooks(client, name, callbackUrl)
        return state
      }),
    async deleteDomain(name) {
      await request(name, () => found(client.domains.destroy(name)))
    },
    rotateDkim: (name, rotation) => request(name, () => rotateDkim(client, name, rotation)),
    removeSuppression: (domain, address) =>
      request(domain, () => removeSuppression(client, domain, address)),
    receiptsOf: (email) => request(email.domain, () => receiptsOf(client, email)),
    readCallback: createCallbackReader(signingKey),
    async check() {
      try {
        await client.domains.list({ limit: 1 })
        return null
      } catch (error) {
        const { message, status } = error as MailgunError
        return status === 401
          ? `Mailgun does not accept MAILGUN_API_KEY at ${account.apiBase}: check the key, and MAILGUN_API_BASE, which differs for accounts in the EU`
          : `${message}; check MAILGUN_API_BASE and the connection to it`
      }
    },
    close: async () => undefined,
  }
}

/** Turns any error but DomainRefused into ProviderUnavailable. */
async function request<Response>(domain: string, send: () => Promise<Response>): Promise<Response> {
  inPath(domain)
  try {
    return await send()
  } catch (error) {
    if (error instanceof DomainRefused) throw error
    const { message } = error as Error
    throw new ProviderUnavailable(message, { cause: error })
  }
}

/** mailgun.js puts the name of a domain into the path without escaping it. */
function inPath(domain: string): string {
  if (!/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i.test(domain)) {
    throw new DomainRefused(`${domain} is not a domain name`)
  }
  return domain
}
