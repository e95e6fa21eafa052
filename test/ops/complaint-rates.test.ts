import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { createDatabase, type Tx } from '../fixtures/database.ts'
import { anyJson, haveSent } from '../fixtures/messages.ts'
import { aComplaint, createOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()
const call = caller(sql)

async function complaints(count: number, sent: number) {
  const organisation = await createOrganisation(sql, { name: `${count} of ${sent}` })
  const ids = await haveSent(sql, organisation, Math.max(count, sent))
  const receipts = anyJson(ids.slice(0, count).map((id) => aComplaint(id)))
  await call('finish_poll', { receipts })
  return organisation
}

const rates = () => sql`
  select name, state, complaints, sent::integer, rate::float8 from ops.complaint_rates`

t.test(
  'ops.complaint_rates: lists organisations with complaints, the highest rate first',
  async (t) => {
    await complaints(0, 5)
    await complaints(1, 2000)
    await complaints(2, 10)
    const many = await complaints(4, 16)
    t.same(
      [...(await rates())],
      [
        { name: '4 of 16', state: 'paused', complaints: 4, sent: 16, rate: 0.25 },
        { name: '2 of 10', state: 'active', complaints: 2, sent: 10, rate: 0.2 },
        { name: '1 of 2000', state: 'active', complaints: 1, sent: 1001, rate: 0.000999 },
      ],
    )

    await sql`select ops.resume(${many.id})`
    const [resumed] = await sql`
    select state, complaints, rate::float8, counted_since > now() - interval '1 minute' as is_anew
    from ops.complaint_rates where organisation = ${many.id}`
    t.same(resumed, { state: 'active', complaints: 0, rate: 0, isAnew: true })

    await sql`update app.messages set sent_at = sent_at - interval '1 day' where organisation_id in (
    select o.id from app.organisations o where o.name = '2 of 10')`
    t.match([...(await rates())], [{ name: '2 of 10', sent: 0, rate: null }, {}, {}])

    await sql`update app.complaints set received_at = received_at - interval '1 day'`
    t.same([...(await rates())], [])
  },
)

/** Returns how many messages this connection has read. */
async function rowsRead(tx: Tx): Promise<number> {
  const [row] = await tx<{ rows: number }[]>`
    select sum(idx_tup_fetch + seq_tup_read)::integer as rows from pg_stat_xact_user_tables
    where schemaname = 'app' and relname ~ '^messages_'`
  return row?.rows ?? 0
}

t.test("ops.complaint_rates: reads only part of a busy sender's messages", async (t) => {
  const busy = await complaints(2, 50_000)
  await sql`analyze app.messages`
  await sql.begin(async (tx) => {
    const before = await rowsRead(tx)
    const [rate] = await tx`
      select sent::integer from ops.complaint_rates where organisation = ${busy.id}`
    t.equal(rate?.sent, 2001)
    t.equal((await rowsRead(tx)) - before, 2001)
  })
})
