import t from 'tap'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { messageOf, movementsOf, PROMOTION, sendSms, startSmsAt } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startApiAt } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const NOW = '2028-02-29T10:00:00+02:00'
const { base } = await startApiAt(sql, url, NOW)

t.test(
  'start_sms: of two workers that start a marketing SMS one sends it, without a refund',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const to = '+27821234567'
    await sql`select ops.record_consent(${organisation.id}, ${to}, 'the form on the web site')`
    const id = await sendSms(base, organisation, { class: 'marketing', body: PROMOTION, to })
    const { id: uuid } = await messageOf(sql, id)
    const { second } = await atTime(sql, NOW, async (tx) => {
      const first = await tx`select * from api.start_sms(array[${uuid}::uuid])`
      t.equal(first.length, 1)
      const second = startSmsAt(sql, NOW, id)
      second.catch(() => undefined)
      await untilLocked(sql)
      return { second }
    })
    t.same(await second, [])
    t.match(await messageOf(sql, id), { status: 'failed', errorCode: 'provider_unavailable' })
    t.same(await movementsOf(sql, id), ['sms -1'])
  },
)
