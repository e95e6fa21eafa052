import { randomUUID } from 'node:crypto'
import { anEmail, anSms, type Bench, type Channel } from './setup.ts'

/** What api.accept_emails and api.accept_sms take for a message. */
function itemOf(channel: Channel, domain: string) {
  if (channel === 'sms') {
    const { to, body, ...sms } = anSms()
    return { ...sms, sender_id: null, recipient: to, body, segments: 1, scheduled_at: null }
  }
  const email = anEmail(domain)
  return {
    class: 'transactional',
    sender: email.from,
    from_address: `hello@${domain}`,
    from_domain: domain,
    to: [email.to],
    cc: [],
    bcc: [],
    to_addresses: email.to,
    recipients: [email.to],
    subject: email.subject,
    html: email.html,
    text: email.text,
    tags: email.tags,
  }
}

/**
 * Empties the queue and fills it with so many messages, spread over the organisations, of which none
 * has a webhook endpoint any more.
 */
export async function fill(bench: Bench, channel: Channel, count: number) {
  const { sql } = bench
  await sql`truncate app.messages, app.bodies, app.events, app.idempotency_keys, app.sms_parts, graphile_worker._private_jobs`
  await sql`truncate app.webhook_endpoints, app.webhook_events, app.webhook_deliveries, app.webhook_attempts`
  await sql`update app.counters d set messages_dequeued = a.messages_accepted from app.allowances a where a.organisation_id = d.organisation_id`
  await enqueue(bench, channel, count)
  await sql`vacuum analyze graphile_worker._private_jobs`
}

/** Accepts so many messages in batches of 1 000, spread over the organisations. */
export async function enqueue({ sql }: Bench, channel: Channel, count: number) {
  const domains = await sql<{ id: string; name: string }[]>`
    select organisation_id as id, name from app.domains limit 100`
  for (let from = 0; from < count; from += 1000) {
    const { id, name } = domains[(from / 1000) % domains.length] as { id: string; name: string }
    const call = { n: 0, organisation_id: id, mode: 'live', fingerprint: '', batch: true }
    const calls = [{ ...call, key: randomUUID() }]
    const item = { ...itemOf(channel, name), call: 0 }
    const items = Array.from({ length: 1000 }, (_, index) => ({ ...item, index }))
    await sql.unsafe(`select api.accept_${channel}($1::text::jsonb, $2::text::jsonb, '{}')`, [
      JSON.stringify(calls),
      JSON.stringify(items),
    ])
  }
}
