import * as v from 'valibot'
import type { Notice } from '../db/api.gen.ts'

/** What a notice is about, as api.start_notice has it. */
export type Occasion = Pick<Notice, 'kind' | 'detail' | 'createdAt' | 'organisationName'>

export type Mail = { subject: string; text: string }

const complaints = v.object({ complaints: v.number(), sent: v.number() })
const endpoint = v.object({
  endpoint: v.string(),
  url: v.string(),
  failingSince: v.string(),
  lastError: v.nullable(v.string()),
})
const records = v.object({ domain: v.string(), records: v.array(v.string()) })

const writers: Record<Notice['kind'], (occasion: Occasion, publicUrl: string) => Mail> = {
  org_paused({ detail, createdAt, organisationName }, publicUrl) {
    const { complaints: count, sent } = v.parse(complaints, detail)
    return {
      subject: 'Sending is paused: too many recipients complained',
      text: paragraphs(
        `Sending for ${organisationName} is paused since ${minute(createdAt)}, because too many recipients marked its email as spam.`,
        `Complaints within 24 hours: ${count}\nEmails sent within 24 hours: ${sent}`,
        'An organisation is paused from 3 complaints on when they are 0.1 % of what it sent, or more: beyond that, mailbox providers begin to put the email of everyone who sends from here into spam folders.',
        'What this means: sends with a live key are refused (423 org_paused). What was accepted before waits, and is sent once the pause is lifted. Reading and test keys work as before. Who complained is on your suppression list and gets nothing more.',
        'What to do: find out which email it was and how its recipients came onto your list, send only to people who asked for it, and make leaving easy. Then write to whoever runs this service, by answering this email if nothing else was agreed: the pause is lifted after a review.',
        `${publicUrl}/docs/errors#org_paused`,
      ),
    }
  },

  domain_failed({ detail, createdAt, organisationName }, publicUrl) {
    const { domain, records: names } = v.parse(records, detail)
    return {
      subject: `${domain} can no longer send: its DNS records are gone`,
      text: paragraphs(
        `${organisationName} can no longer send from ${domain}. For 72 hours until ${minute(createdAt)}, DNS records that had verified it were missing or wrong:`,
        listed(names),
        'What this means: sends from this domain are refused (403 domain_not_verified), and what was accepted before is rejected.',
        'What to do: publish the records again as GET /v1/domains lists them, each with what was found instead, then ask for a check with POST /v1/domains/{id}/verify. Once they are right, the domain can send at once. Until then another organisation may add it.',
        `${publicUrl}/docs/errors#domain_not_verified`,
      ),
    }
  },

  domain_not_found({ detail, createdAt, organisationName }, publicUrl) {
    const { domain, records: names } = v.parse(records, detail)
    return {
      subject: `${domain} is not verified: its DNS records were not found`,
      text: paragraphs(
        `${organisationName} added ${domain} to send from, but for 72 hours until ${minute(createdAt)} not all of its DNS records were found. These are missing or wrong:`,
        listed(names),
        'What this means: the domain cannot send, and is no longer checked by itself.',
        'What to do: publish the records as GET /v1/domains lists them, each with what was found instead, then ask for a check with POST /v1/domains/{id}/verify, at any time. Until it is verified, another organisation may add it.',
        `${publicUrl}/docs/errors#domain_not_verified`,
      ),
    }
  },

  webhook_failing({ detail, organisationName }, publicUrl) {
    const { endpoint: id, url, failingSince, lastError } = v.parse(endpoint, detail)
    return {
      subject: 'A webhook endpoint has been failing for a day',
      text: paragraphs(
        `No event of ${organisationName} could be delivered to ${url} (${id}) since ${minute(new Date(failingSince))}.`,
        `The last attempt came to this: ${lastError ?? 'no answer'}`,
        'What this means: each event is tried six times over some 27 hours and then rests. Once the endpoint has failed for three days it is disabled.',
        'What to do: make it answer any 2xx within 10 seconds. Events of the last 30 days are kept and can be replayed.',
        `${publicUrl}/docs/webhooks#retries`,
      ),
    }
  },

  webhook_disabled({ detail, organisationName }, publicUrl) {
    const { endpoint: id, url, failingSince, lastError } = v.parse(endpoint, detail)
    return {
      subject: 'A webhook endpoint was disabled: it failed for three days',
      text: paragraphs(
        `No event of ${organisationName} could be delivered to ${url} (${id}) since ${minute(new Date(failingSince))}, so nothing is sent there any more.`,
        `The last attempt came to this: ${lastError ?? 'no answer'}`,
        'What this means: events go on being recorded, and are kept for 30 days.',
        'What to do: make it answer any 2xx within 10 seconds, then have whoever runs this service enable it again, which can replay all that it missed.',
        `${publicUrl}/docs/webhooks#disabled-endpoints`,
      ),
    }
  },
}

/** The words of a notice, in plain text; `publicUrl` is where the documentation is served. */
export function writeNotice(occasion: Occasion, publicUrl: string): Mail {
  return writers[occasion.kind](occasion, publicUrl)
}

function paragraphs(...parts: string[]): string {
  return `${parts.join('\n\n')}\n`
}

function listed(names: string[]): string {
  if (names.length === 0)
    return '  none that DNS shows, but the email provider does not confirm them'
  return names.map((name) => `  ${name}`).join('\n')
}

function minute(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
