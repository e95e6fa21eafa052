import * as v from 'valibot'
import type { Client } from './client.ts'
import { MailgunError } from './transport.ts'

/** Mailgun's names of the events that Postgram reads. */
const EVENTS = [
  'accepted',
  'delivered',
  'temporary_fail',
  'permanent_fail',
  'complained',
  'unsubscribed',
] as const

/** Mailgun's limit for one kind of event. */
const MAX_URLS = 3

const listSchema = v.fallback(
  v.record(v.string(), v.fallback(v.object({ urls: v.array(v.string()) }), { urls: [] })),
  {},
)

/**
 * Registers this URL at Mailgun for the events of a domain, beside those already registered. If Mailgun
 * refuses the URL, the domain works without callbacks: the task poll_receipts asks for its receipts.
 */
export async function ensureWebhooks(client: Client, name: string, url: string): Promise<void> {
  const webhooks = v.parse(listSchema, await client.webhooks.list(name, {}))
  for (const kind of EVENTS) {
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
