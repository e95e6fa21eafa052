import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { AT_NOON, backlogOf, PROMOTION, sendSmsBatch } from '../fixtures/messages.ts'
import { createPayer, smsOf } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { startApiAt } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const MESSAGES = 100
const SEGMENTS = 2

const { url, sql } = await createDatabase()
const { base } = await startApiAt(sql, url, AT_NOON)
const startWorker = () => spawnService(url, 'worker', { POSTGRAM_NOW: AT_NOON })

type Counts = Record<
  'taken' | 'doubled' | 'early' | 'delivered' | 'failed' | 'again' | 'noted' | 'refunds',
  number
>

async function countsOf() {
  const [counts] = await sql<Counts[]>`
    select
      (select count(*)::integer from ${takenBySandbox(sql)} s where s.copy > 0) as taken,
      (select count(*)::integer from ${takenBySandbox(sql)} s join app.messages m on m.id = s.message_id
       where s.attempts > 1 and m.class = 'marketing') as doubled,
      (select count(*)::integer from app.early_receipts) as early,
      (select count(*)::integer from app.messages where status = 'delivered') as delivered,
      (select count(*)::integer from app.messages where error_code = 'provider_unavailable') as failed,
      (select count(*)::integer from app.messages where attempts > 1) as again,
      (select count(*)::integer from app.sms_parts) as noted,
      (select count(*)::integer from app.credit_ledger where kind = 'refund') as refunds`
  if (!counts) throw new Error('no counts')
  return counts
}

t.test('worker killed: no SMS is lost, and no marketing SMS is sent twice', async (t) => {
  const organisation = await createPayer(sql, { included: 2 * MESSAGES * SEGMENTS })
  const phones = Array.from({ length: 10 }, (_, place) => `+4477009001${place}0`)
  for (const phone of phones) {
    await sql`select ops.record_consent(${organisation.id}, ${phone}, 'a form')`
  }
  const victim = await startWorker()
  // The network accepts and reports everything, but no response of it can be recorded.
  await sql`revoke execute on function api.finish_messages from postgram_service`
  const messages = Array.from({ length: 2 * MESSAGES }, (_, place) => {
    const kind = place % 2 ? 'marketing' : 'transactional'
    const body = PROMOTION.padStart(153 * SEGMENTS, 'x ')
    return smsOf(SEGMENTS, { to: phones[place % phones.length], class: kind, body })
  })
  await sendSmsBatch(base, organisation, messages)
  const parts = 2 * MESSAGES * SEGMENTS
  await until('all parts to be reported on', async () => (await countsOf()).early === parts)
  await victim.end('SIGKILL')
  t.match(await countsOf(), { taken: parts, delivered: 0, noted: 0 })

  await sql`grant execute on function api.finish_messages to postgram_service`
  const next = await startWorker()
  await until('each to come to its end', async () => {
    const { delivered, failed } = await countsOf()
    return delivered === MESSAGES && failed === MESSAGES
  })
  t.match(await countsOf(), {
    taken: parts,
    doubled: 0,
    again: MESSAGES,
    noted: MESSAGES * SEGMENTS,
    // Receipts for marketing SMS whose parts were never recorded; they are deleted after a day.
    early: MESSAGES * SEGMENTS,
    // Any of the SMS may have left.
    refunds: 0,
  })
  const [wrong] = await sql`
    select from app.messages where status = 'failed' and class <> 'marketing' limit 1`
  t.notOk(wrong)
  t.equal(await backlogOf(sql, organisation), 0)
  t.equal(await next.end('SIGTERM'), 0)
})
