import t from 'tap'
import { createDatabase, rolledBack } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()
const organisation = await createOrganisation(sql)

type Message = { channel: string; class: string; status: string; recipients: number }

/** Returns the status of a message after one receipt for one of its recipients. */
async function statusAfter(message: Message, type: string) {
  let result: { status: string | null; errorCode: string | null } | undefined
  await rolledBack(sql, async (tx) => {
    const { channel, status, recipients } = message
    const [row] = await tx<{ id: string }[]>`
      insert into app.messages (
        status, id, organisation_id, channel, mode, class, from_address, to_address, subject, tags,
        recipients, created_at, sent_at
      )
      values (
        ${status}, core.new_id(now()), core.decode_id('org', ${organisation.id}), ${channel}, 'live',
        ${message.class}, 'from', 'to', 'Hi', '{}', ${recipients}, now(),
        ${status === 'sent' ? new Date() : null}
      )
      returning id`
    await tx`
      insert into app.events (message_id, type, occurred_at, provider_event_id, detail)
      values (${row?.id ?? ''}, ${type}, now(), 'e1', '{"recipient": "to"}')`
    const [found] = await tx<{ status: string | null; errorCode: string | null }[]>`
      select v.status, v.error_code from app.messages m, core.receipt_status(m) v where m.id = ${row?.id ?? ''}`
    result = found && { ...found }
  })
  return result
}

const sent = { channel: 'email', class: 'transactional', status: 'sent', recipients: 1 }

t.test(
  'receipt_status: the error code of a permanent refusal depends on the channel',
  async (t) => {
    t.strictSame(await statusAfter(sent, 'failed'), {
      status: 'failed',
      errorCode: 'provider_rejected',
    })
    t.strictSame(await statusAfter({ ...sent, channel: 'sms' }, 'failed'), {
      status: 'failed',
      errorCode: 'network_rejected',
    })
  },
)

t.test(
  'receipt_status: one copy of a queued marketing email does not decide its status',
  async (t) => {
    const copies = { ...sent, class: 'marketing', status: 'queued', recipients: 2 }
    for (const [message, status] of [
      [copies, null],
      [{ ...copies, status: 'sent' }, 'bounced'],
      [{ ...copies, recipients: 1 }, 'bounced'],
      [{ ...copies, class: 'transactional' }, 'bounced'],
    ] as const) {
      t.equal((await statusAfter(message, 'bounced'))?.status, status)
    }
  },
)
