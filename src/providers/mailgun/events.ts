import * as v from 'valibot'
import type { SentEmail } from '../../db/api.gen.ts'
import type { OutgoingEmail, Receipt } from '../email.ts'
import { messageIdOf } from '../message-id.ts'
import { receiptOf } from './callback.ts'
import type { Client } from './client.ts'

/** The maximum that Mailgun allows. */
const PAGE_SIZE = 300

/** Enough for an email to 150 recipients, each deferred several times. */
const MAX_PAGES = 10

const eventSchema = v.object({
  message: v.object({ headers: v.object({ 'message-id': v.string() }) }),
})

/** Whether Mailgun has any event with the Message-ID of an email. */
export async function isKnown(client: Client, email: OutgoingEmail): Promise<boolean> {
  for await (const _ of eventsOf(client, email.domain, messageIdOf(email))) return true
  return false
}

/** Returns the receipts of an email, or of all its copies, from Mailgun's events. */
export async function receiptsOf(client: Client, email: SentEmail): Promise<Receipt[]> {
  const copies =
    email.copies > 1 ? Array.from({ length: email.copies }, (_, place) => place + 1) : [null]
  const receipts: Receipt[] = []
  for (const copy of copies) {
    const messageId = messageIdOf({ ...email, copy })
    for await (const event of eventsOf(client, email.domain, messageId)) {
      const receipt = receiptOf(event)
      if (receipt) receipts.push(receipt)
    }
  }
  return receipts
}

async function* eventsOf(client: Client, domain: string, messageId: string) {
  let page: string | undefined
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const response = await client.events.get(domain, {
      'message-id': messageId,
      limit: PAGE_SIZE,
      ...(page ? { page } : {}),
    })
    const events = v.parse(v.array(v.unknown()), response.items)
    // Mailgun ignores a filter that it does not understand and then returns events of other messages.
    yield* events.filter((event) => belongsTo(event, messageId))
    page = response.pages.next?.page
    if (events.length < PAGE_SIZE || !page) return
  }
}

function belongsTo(event: unknown, messageId: string): boolean {
  const parsed = v.safeParse(eventSchema, event)
  return parsed.success && parsed.output.message.headers['message-id'] === messageId
}
