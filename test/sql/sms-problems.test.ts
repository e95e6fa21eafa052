import t from 'tap'
import { createDatabase, rolledBack } from '../fixtures/database.ts'

const { sql } = await createDatabase()

t.test('sms_problems: 30 days ignore daylight saving', async (t) => {
  const at = '2026-03-10T12:00:00Z'
  await rolledBack(sql, async (tx) => {
    for (const zone of ['UTC', 'Europe/London', 'Australia/Sydney']) {
      await tx`select set_config('timezone', ${zone}, true)`
      const [row] = await tx`
        select core.sms_problems(gen_random_uuid(), null, ${'2026-04-09T12:00:00Z'}, ${at}) as edge,
          core.sms_problems(gen_random_uuid(), null, ${'2026-04-09T12:00:00.001Z'}, ${at}) as beyond`
      t.same(row, { edge: null, beyond: { scheduledAt: ['must be at most 30 days ahead'] } }, zone)
    }
  })
})
