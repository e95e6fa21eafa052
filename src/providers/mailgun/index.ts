import { DomainRefused, type EmailProvider, ProviderUnavailable } from '../email.ts'
import { createCallbackReader } from './callback.ts'
import { type Account, createClient } from './client.ts'
import { checkDomain, createDomain, deleteDomain, removeSuppression } from './domains.ts'
import { isKnown, receiptsOf } from './events.ts'
import { rotateDkim } from './keys.ts'
import { sendEmail } from './send.ts'
import type { MailgunError } from './transport.ts'
import { ensureWebhooks } from './webhooks.ts'

const SENDS_WITHIN_MS = 30_000
const ANSWERS_WITHIN_MS = 10_000

/** How long Mailgun is given to show an event of what it took; it names no figure itself. */
const SETTLES_WITHIN_MS = 30_000

export type MailgunOptions = Account & {
  signingKey: string
  /** Where Mailgun is to call; without it nothing is changed about that. */
  callbackUrl?: string
}

/** Mailgun through mailgun.js. */
export function createMailgun(
  { signingKey, callbackUrl, ...account }: MailgunOptions,
  { sendsWithinMs = SENDS_WITHIN_MS, answersWithinMs = ANSWERS_WITHIN_MS } = {},
): EmailProvider {
  const sender = createClient(account, sendsWithinMs)
  const client = createClient(account, answersWithinMs)
  return {
    name: 'mailgun',
    account: 'mailgun',
    signsHere: false,
    settlesWithinMs: SETTLES_WITHIN_MS,
    send: async (email) => sendEmail(sender, { ...email, domain: inPath(email.domain) }),
    lookup: (email) => asked(email.domain, () => isKnown(client, email)),
    createDomain: (domain) =>
      asked(domain.name, async () => {
        const identity = await createDomain(client, domain)
        if (callbackUrl) await ensureWebhooks(client, domain.name, callbackUrl)
        return identity
      }),
    checkDomain: (name, selector) =>
      asked(name, async () => {
        const state = await checkDomain(client, name, selector)
        if (callbackUrl && state !== 'unknown') await ensureWebhooks(client, name, callbackUrl)
        return state
      }),
    deleteDomain: (name) => asked(name, () => deleteDomain(client, name)),
    rotateDkim: (name, rotation) => asked(name, () => rotateDkim(client, name, rotation)),
    removeSuppression: (domain, address) =>
      asked(domain, () => removeSuppression(client, domain, address)),
    receiptsOf: (email) => asked(email.domain, () => receiptsOf(client, email)),
    readCallback: createCallbackReader(signingKey),
    async examine() {
      try {
        await client.domains.list({ limit: 1 })
        return null
      } catch (error) {
        const { message, status } = error as MailgunError
        return status === 401
          ? `Mailgun does not accept MAILGUN_API_KEY at ${account.apiBase}: check it, and MAILGUN_API_BASE, which differs for accounts in the EU`
          : `${message}; check MAILGUN_API_BASE and the way to it`
      }
    },
    close: async () => undefined,
  }
}

async function asked<Answer>(domain: string, ask: () => Promise<Answer>): Promise<Answer> {
  inPath(domain)
  try {
    return await ask()
  } catch (error) {
    if (error instanceof DomainRefused) throw error
    const { message } = error as Error
    throw new ProviderUnavailable(message, { cause: error })
  }
}

/** mailgun.js puts a domain's name into the path as it is. */
function inPath(domain: string): string {
  if (!/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i.test(domain)) {
    throw new DomainRefused(`${domain} is not a domain name`)
  }
  return domain
}
