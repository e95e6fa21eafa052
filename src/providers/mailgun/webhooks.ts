import * as v from 'valibot'
import type { Client } from './client.ts'
import { MailgunError } from './transport.ts'

/** Mailgun's names of what callbacks are wanted for; all others mean nothing to us. */
const WANTED = [
  'accepted',
  'delivered',
  'temporary_fail',
  'permanent_fail',
  'complained',
  'unsubscribed',
] as const

/** So many addresses Mailgun calls for one kind of event. */
const MAX_URLS = 3

const listSchema = v.fallback(
  v.record(v.string(), v.fallback(v.object({ urls: v.array(v.string()) }), { urls: [] })),
  {},
)

/**
 * Have Mailgun call this address for what becomes of a domain's messages, beside those that it calls
 * already. An address that it does not take is left out: what callbacks do not tell is asked for.
 */
export async function ensureWebhooks(client: Client, name: string, url: string): Promise<void> {
  const webhooks = v.parse(listSchema, await client.webhooks.list(name, {}))
  for (const kind of WANTED) {
    const urls = webhooks[kind]?.urls ?? []
    if (urls.includes(url) || urls.length >= MAX_URLS) continue
    try {
      if (urls.length === 0) await client.webhooks.create(name, kind, url, false)
      else await client.webhooks.update(name, kind, [...urls, url])
    } catch (error) {
      if (!(error instanceof MailgunError && error.isRefusal)) throw error
    }
  }
}
