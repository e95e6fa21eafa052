import * as v from 'valibot'
import type { OutgoingEmail, Receipt, SentEmail } from '../email.ts'
import { messageIdOf } from '../message-id.ts'
import { receiptOf } from './callback.ts'
import type { Client } from './client.ts'

/** The most that Mailgun answers with at a time. */
const PAGE_SIZE = 300

/** An email to 150 recipients, each of which may be deferred some times before it is settled. */
const MAX_PAGES = 10

const eventSchema = v.object({
  message: v.object({ headers: v.object({ 'message-id': v.string() }) }),
})

/** Whether Mailgun knows an email by its Message-ID: some event of it is on record. */
export async function isKnown(client: Client, email: OutgoingEmail): Promise<boolean> {
  for await (const _ of eventsOf(client, email.domain, messageIdOf(email))) return true
  return false
}

/** What Mailgun has on record of an email, or of each of its copies. */
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
    const answer = await client.events.get(domain, {
      'message-id': messageId,
      limit: PAGE_SIZE,
      ...(page ? { page } : {}),
    })
    const events = v.parse(v.array(v.unknown()), answer.items)
    // A filter that Mailgun does not understand is none: it answers with events of other messages.
    yield* events.filter((event) => isOf(event, messageId))
    page = answer.pages.next?.page
    if (events.length < PAGE_SIZE || !page) return
  }
}

function isOf(event: unknown, messageId: string): boolean {
  const parsed = v.safeParse(eventSchema, event)
  return parsed.success && parsed.output.message.headers['message-id'] === messageId
}
