import Mailgun from 'mailgun.js'
import type { Interfaces } from 'mailgun.js/definitions'
import { createTransport, MailgunError } from './transport.ts'

/** Mailgun's client, with the part that its types lack. */
export type Client = Interfaces.IMailgunClient & {
  domains: { domainKeys: Interfaces.IDomainKeysClient }
}

export type Account = { apiKey: string; apiBase: string }

/** Creates a client of mailgun.js with a time limit for each request. Its requests throw MailgunError. */
export function createClient({ apiKey, apiBase }: Account, timeoutMs: number): Client {
  const client = new Mailgun(FormData).client({ username: 'api', key: apiKey, url: apiBase })
  client.request.requestProvider = createTransport(apiKey, timeoutMs)
  // Its events client warns at every call to use the logs API, which has no filter for a Message-ID.
  Object.assign(client.events, { logger: { warn: () => undefined } })
  return client as Client
}

/** Returns the response, or null if Mailgun responds with 404. */
export async function found<Response>(request: Promise<Response>): Promise<Response | null> {
  try {
    return await request
  } catch (error) {
    if (error instanceof MailgunError && error.status === 404) return null
    throw error
  }
}
