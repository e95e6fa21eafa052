import t from 'tap'
import { createDatabase, rolledBack } from '../fixtures/database.ts'

const { sql } = await createDatabase()

/** Times of South Africa, and whether marketing may be sent then: by the interface, by the law. */
const times: [local: string, byInterface: boolean, byLaw: boolean][] = [
  // A Tuesday.
  ['2026-03-03T00:00:00', false, false],
  ['2026-03-03T07:59:59', false, false],
  ['2026-03-03T07:59:59.999999', false, false],
  ['2026-03-03T08:00:00', true, true],
  ['2026-03-03T12:00:00', true, true],
  ['2026-03-03T19:59:59', true, true],
  ['2026-03-03T19:59:59.999999', true, true],
  ['2026-03-03T20:00:00', false, false],
  ['2026-03-03T23:59:59', false, false],
  // Friday to Monday.
  ['2026-03-06T19:59:59', true, true],
  ['2026-03-07T07:59:59', false, false],
  ['2026-03-07T08:00:00', true, false],
  ['2026-03-07T08:59:59', true, false],
  ['2026-03-07T09:00:00', true, true],
  ['2026-03-07T12:59:59', true, true],
  ['2026-03-07T13:00:00', true, false],
  ['2026-03-07T19:59:59', true, false],
  ['2026-03-07T20:00:00', false, false],
  ['2026-03-08T00:00:00', false, false],
  ['2026-03-08T08:00:00', false, false],
  ['2026-03-08T12:00:00', false, false],
  ['2026-03-08T19:59:59', false, false],
  ['2026-03-08T23:59:59.999999', false, false],
  ['2026-03-09T00:00:00', false, false],
  ['2026-03-09T08:00:00', true, true],
  // Leap years: a Thursday, a Saturday; and a 29th that is a 1st.
  ['2024-02-29T08:00:00', true, true],
  ['2024-02-29T20:00:00', false, false],
  ['2020-02-29T08:30:00', true, false],
  ['2020-02-29T12:59:59', true, true],
  ['2023-03-01T08:00:00', true, true],
  ['2032-02-29T12:00:00', false, false],
  // The change of year: Thursday to Friday; and a Sunday whose Monday is the holiday.
  ['2026-12-31T19:59:59', true, true],
  ['2026-12-31T20:00:00', false, false],
  ['2027-01-01T08:00:00', true, false],
  ['2023-01-01T12:00:00', false, false],
  ['2023-01-02T12:00:00', true, false],
  ['2023-01-03T08:00:00', true, true],
  // Public holidays: on a weekday, on a Saturday, on a Sunday with its Monday, around Easter.
  ['2025-06-16T12:00:00', true, false],
  ['2025-06-17T00:00:00', false, false],
  ['2025-06-17T08:00:00', true, true],
  ['2024-04-27T10:00:00', true, false],
  ['2024-06-16T10:00:00', false, false],
  ['2024-06-17T10:00:00', true, false],
  ['2024-06-18T10:00:00', true, true],
  ['2024-03-28T10:00:00', true, true],
  ['2024-03-29T10:00:00', true, false],
  ['2024-03-30T10:00:00', true, true],
  ['2024-03-31T10:00:00', false, false],
  ['2024-04-01T10:00:00', true, false],
]

for (const [place, rule] of ['interface', 'statutory'].entries()) {
  t.test(`is_sending_hour: hours of rule ${rule}`, async (t) => {
    await rolledBack(sql, async (tx) => {
      await tx`select ops.set_marketing_hours(${rule})`
      for (const [local, ...expected] of times) {
        const [row] = await tx`select core.is_sending_hour(${`${local}+02:00`}) as is_sending_hour`
        t.equal(row?.isSendingHour, expected[place], local)
      }
    })
  })
}

t.test('is_sending_hour: the default rule is interface', async (t) => {
  t.match(await sql`select marketing_hours from ops.sms_settings`, [
    { marketingHours: 'interface' },
  ])
})

t.test('is_sending_hour: hours are South African in every session', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const zone of ['UTC', 'Pacific/Kiritimati', 'America/Los_Angeles']) {
      await tx`select set_config('timezone', ${zone}, true)`
      const [row] = await tx`
        select core.is_sending_hour('2026-03-03T06:00:00Z') as first, core.is_sending_hour('2026-03-03T05:59:59Z') as before,
          core.is_sending_hour('2026-03-07T21:59:59Z') as saturday_night, core.is_sending_hour('2026-03-09T06:00:00Z') as monday`
      t.same(row, { first: true, before: false, saturdayNight: false, monday: true }, zone)
    }
  })
})
