import t from 'tap'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

t.test('record_receipts: concurrent receipts that end attempts do not deadlock', async (t) => {
  const one = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  const receipts: { id: string; type: string }[] = []
  for (const [organisation, type] of [
    [one, 'sent'],
    [other, 'delivered'],
    [other, 'sent'],
    [one, 'delivered'],
  ] as const) {
    receipts.push({ id: await send(base, organisation), type })
  }
  await sql`update app.messages set attempt_started_at = now()`
  const record = (two: typeof receipts) => sql`
    select core.record_receipts((
      select jsonb_agg(jsonb_build_object('message_id', m.id, 'type', r.type,
        'provider_event_id', r.id || r.type, 'occurred_at', now(), 'recipient', m.to_address))
      from jsonb_to_recordset(${JSON.stringify(two)}::text::jsonb) r (id text, type text)
      join app.messages m on m.id = core.decode_id('em', r.id)))`
  const { both } = await sql.begin(async (tx) => {
    await tx`select from app.counters for update`
    const both = Promise.all([record(receipts.slice(0, 2)), record(receipts.slice(2))])
    both.catch(() => undefined)
    await untilLocked(sql, 2)
    return { both }
  })
  await t.resolves(both)
  const statuses = await sql`select status::text from app.messages order by status`
  t.same(
    statuses.map(({ status }) => status),
    ['delivered', 'delivered', 'sent', 'sent'],
  )
})
