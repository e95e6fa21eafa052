import Mailgun from 'mailgun.js'
import type { Interfaces } from 'mailgun.js/definitions'
import { createTransport, MailgunError } from './transport.ts'

/** What Mailgun's own client offers, with the part that its types leave out. */
export type Client = Interfaces.IMailgunClient & {
  domains: { domainKeys: Interfaces.IDomainKeysClient }
}

export type Account = { apiKey: string; apiBase: string }

/** mailgun.js at an address, with a limit for every answer; what it asks for throws MailgunError. */
export function createClient({ apiKey, apiBase }: Account, answersWithinMs: number): Client {
  const client = new Mailgun(FormData).client({ username: 'api', key: apiKey, url: apiBase })
  client.request.requestProvider = createTransport(apiKey, answersWithinMs)
  // It warns at every call that events are to be read from the logs, which cannot be asked for a
  // Message-ID.
  Object.assign(client.events, { logger: { warn: () => undefined } })
  return client as Client
}

/** The answer, or null when Mailgun has nothing by that name. */
export async function found<Answer>(asked: Promise<Answer>): Promise<Answer | null> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof MailgunError && error.status === 404) return null
    throw error
  }
}
