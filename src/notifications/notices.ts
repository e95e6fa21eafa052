import * as v from 'valibot'
import type { Notice } from '../db/api.gen.ts'

/** The event that a notice is about, as api.start_notice returns it. */
export type Occasion = Pick<Notice, 'kind' | 'detail' | 'createdAt' | 'organisationName'>

export type Mail = { subject: string; text: string }

/** The life of a link (core.create_sign_in_link). */
const LINK_LIFETIME_MS = 15 * 60 * 1000

const complaints = v.object({ complaints: v.number(), sent: v.number() })
const endpoint = v.object({
  endpoint: v.string(),
  url: v.string(),
  failingSince: v.string(),
  lastError: v.nullable(v.string()),
})
const records = v.object({ domain: v.string(), records: v.array(v.string()) })

const link = v.object({ token: v.string() })
const invitation = v.object({ role: v.string(), invitedBy: v.string() })

const writers: Record<Notice['kind'], (occasion: Occasion, publicUrl: string) => Mail> = {
  org_paused({ detail, createdAt, organisationName }, publicUrl) {
    const { complaints: count, sent } = v.parse(complaints, detail)
    return {
      subject: 'Sending is paused: too many recipients complained',
      text: paragraphs(
        `Sending for ${organisationName} has been paused since ${minute(createdAt)}, because too many recipients marked its email as spam.`,
        `Complaints within 24 hours: ${count}\nEmails sent within 24 hours: ${sent}`,
        'An organisation is paused when it has at least 3 complaints and they are at least 0.1 % of the emails that it sent. Above that rate, mailbox providers move the email of all senders of this service to spam folders.',
        'Effect: the API refuses sends with a live key (423 org_paused). Messages accepted before wait until the pause is lifted. Read requests and test keys work as before. The recipients who complained are on your suppression list and receive no more email.',
        'What to do: find out which email caused the complaints and how its recipients came onto your list. Send only to people who asked for it, and make it easy to unsubscribe. Then write to the operator of this service, or reply to this email. The operator lifts the pause after a review.',
        `The messages with complaints: ${publicUrl}/dashboard`,
        `${publicUrl}/docs/errors#org_paused`,
      ),
    }
  },

  domain_failed({ detail, createdAt, organisationName }, publicUrl) {
    const { domain, records: names } = v.parse(records, detail)
    return {
      subject: `${domain} can no longer send: its DNS records are gone`,
      text: paragraphs(
        `${organisationName} can no longer send from ${domain}. For 72 hours until ${minute(createdAt)}, these required DNS records were missing or wrong:`,
        listed(names),
        'Effect: the API refuses sends from this domain (403 domain_not_verified). Messages accepted before are rejected.',
        'What to do: publish the records again. The page Domains of the dashboard and GET /v1/domains list them, each with the value that was found instead. Then check the domain on that page, or with POST /v1/domains/{id}/verify. The domain can send again as soon as the records are correct. Until then another organisation may add it.',
        `${publicUrl}/dashboard`,
        `${publicUrl}/docs/errors#domain_not_verified`,
      ),
    }
  },

  domain_not_found({ detail, createdAt, organisationName }, publicUrl) {
    const { domain, records: names } = v.parse(records, detail)
    return {
      subject: `${domain} is not verified: its DNS records were not found`,
      text: paragraphs(
        `${organisationName} added the sending domain ${domain}, but for 72 hours until ${minute(createdAt)} some of its DNS records were not found. These are missing or wrong:`,
        listed(names),
        'Effect: the domain cannot send, and automatic checks have stopped.',
        'What to do: publish the records. The page Domains of the dashboard and GET /v1/domains list them, each with the value that was found instead. Then check the domain on that page, or with POST /v1/domains/{id}/verify, at any time. Until the domain is verified, another organisation may add it.',
        `${publicUrl}/dashboard`,
        `${publicUrl}/docs/errors#domain_not_verified`,
      ),
    }
  },

  sign_in({ detail, createdAt }, publicUrl) {
    const { token } = v.parse(link, detail)
    return {
      subject: 'Sign in to Postgram',
      text: paragraphs(
        `Open this link to sign in to ${publicUrl}/dashboard. It works once, until ${minute(new Date(createdAt.getTime() + LINK_LIFETIME_MS))}.`,
        `${publicUrl}/login/${token}`,
        'If you did not request it, ignore this email: nobody can sign in without the link.',
      ),
    }
  },

  invited({ detail, organisationName }, publicUrl) {
    const { role, invitedBy } = v.parse(invitation, detail)
    return {
      subject: `${invitedBy} invites you to ${organisationName} on Postgram`,
      text: paragraphs(
        `${invitedBy} added you to the dashboard of ${organisationName} with the role ${role}.`,
        'Request a link with this email address to sign in:',
        `${publicUrl}/login`,
      ),
    }
  },

  webhook_failing({ detail, organisationName }, publicUrl) {
    const { endpoint: id, url, failingSince, lastError } = v.parse(endpoint, detail)
    return {
      subject: 'A webhook endpoint has been failing for a day',
      text: paragraphs(
        `No event of ${organisationName} could be delivered to ${url} (${id}) since ${minute(new Date(failingSince))}.`,
        `Result of the last attempt: ${lastError ?? 'no response'}`,
        'Effect: delivery of an event stops after six failed attempts, some 27 hours after the first. Once the endpoint has failed for three days, it is disabled.',
        'What to do: make the endpoint respond with any 2xx status within 10 seconds. Events of the last 30 days are stored; replay them on the page Webhooks of the dashboard.',
        `${publicUrl}/dashboard`,
        `${publicUrl}/docs/webhooks#retries`,
      ),
    }
  },

  webhook_disabled({ detail, organisationName }, publicUrl) {
    const { endpoint: id, url, failingSince, lastError } = v.parse(endpoint, detail)
    return {
      subject: 'A webhook endpoint was disabled: it failed for three days',
      text: paragraphs(
        `No event of ${organisationName} could be delivered to ${url} (${id}) since ${minute(new Date(failingSince))}, so no more events are sent to it.`,
        `Result of the last attempt: ${lastError ?? 'no response'}`,
        'Effect: events are still recorded, and are stored for 30 days.',
        'What to do: make the endpoint respond with any 2xx status within 10 seconds. Then enable it on the page Webhooks of the dashboard, and replay the events that it missed.',
        `${publicUrl}/dashboard`,
        `${publicUrl}/docs/webhooks#disabled-endpoints`,
      ),
    }
  },
}

/** Writes a notice in plain text; `publicUrl` serves the documentation that it links. */
export function writeNotice(occasion: Occasion, publicUrl: string): Mail {
  return writers[occasion.kind](occasion, publicUrl)
}

function paragraphs(...parts: string[]): string {
  return `${parts.join('\n\n')}\n`
}

function listed(names: string[]): string {
  if (names.length === 0)
    return '  none: DNS has all records, but the email provider does not confirm them'
  return names.map((name) => `  ${name}`).join('\n')
}

function minute(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
