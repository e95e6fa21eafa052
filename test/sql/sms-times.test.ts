import t from 'tap'
import { createDatabase, raisedBy, rolledBack } from '../fixtures/database.ts'

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

/** Easter Sundays, with the earliest and the latest possible date and turns of centuries. */
const easters = [
  '1818-03-22',
  '1900-04-15',
  '1943-04-25',
  '1961-04-02',
  '1981-04-19',
  '2000-04-23',
  '2008-03-23',
  '2011-04-24',
  '2023-04-09',
  '2024-03-31',
  '2025-04-20',
  '2026-04-05',
  '2027-03-28',
  '2028-04-16',
  '2029-04-01',
  '2030-04-21',
  '2038-04-25',
  '2049-04-18',
  '2076-04-19',
  '2100-03-28',
  '2285-03-22',
]

/** The holidays with fixed dates; Good Friday, Family Day and Mondays after Sundays move. */
const moving: Record<number, string[]> = {
  2022: ['04-15', '04-18', '05-02', '12-26'],
  2023: ['01-02', '04-07', '04-10', '09-25'],
  2024: ['03-29', '04-01', '06-17'],
  2025: ['04-18', '04-21', '04-28'],
  2026: ['04-03', '04-06', '08-10'],
  2027: ['03-22', '03-26', '03-29', '12-27'],
  2028: ['04-14', '04-17', '09-25'],
}
const fixed = [
  '01-01',
  '03-21',
  '04-27',
  '05-01',
  '06-16',
  '08-09',
  '09-24',
  '12-16',
  '12-25',
  '12-26',
]

t.test('easter: returns Easter Sunday of each year', async (t) => {
  for (const easter of easters) {
    const [row] = await sql`select core.easter(${Number(easter.slice(0, 4))})::text as easter`
    t.equal(row?.easter, easter)
  }
})

for (const [year, days] of Object.entries(moving)) {
  t.test(`is_public_holiday: true on the holidays of ${year}`, async (t) => {
    const rows = await sql<{ day: string }[]>`
      select d::date::text as day
      from generate_series(${`${year}-01-01`}::timestamp, ${`${year}-12-31`}::timestamp, '1 day') d
      where core.is_public_holiday(d::date)`
    t.same(
      rows.map(({ day }) => day.slice(5)),
      [...new Set([...fixed, ...days])].sort(),
    )
  })
}

t.test('is_public_holiday: an added day counts until it is removed', async (t) => {
  await rolledBack(sql, async (tx) => {
    const isHoliday = async (day: string) => {
      const [row] = await tx`select core.is_public_holiday(${day}) as is_holiday`
      return row?.isHoliday
    }
    t.equal(await isHoliday('2024-05-29'), false)
    await tx`select ops.add_holiday('2024-05-29', 'General election')`
    t.equal(await isHoliday('2024-05-29'), true)
    t.equal(await isHoliday('2025-05-29'), false)
    await tx`select ops.remove_holiday('2024-05-29')`
    t.equal(await isHoliday('2024-05-29'), false)
  })
})

t.test('ops.add_holiday: refuses an impossible day', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const day of ['infinity', '-infinity', '0044-03-15 BC']) {
      const { message } = await raisedBy(tx, (inner) =>
        inner.unsafe(`select ops.add_holiday('${day}', 'Ides')`),
      )
      t.equal(message, 'the day must be from 2000-01-01 to 2999-12-31, such as 2029-05-30', day)
    }
  })
})

t.test('ops.holidays: lists this year, the next and all added days', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select set_config('postgram.now', '2026-12-31T22:00:00Z', true)`
    await tx`select ops.add_holiday('2028-02-29', 'A proclaimed one')`
    await tx`select ops.add_holiday('2032-05-30', 'A far one')`
    await tx`select ops.add_holiday('2026-11-04', 'One that is over')`
    const rows = await tx<{ day: string; name: string }[]>`select day::text, name from ops.holidays`
    t.equal(rows[0]?.day, '2027-01-01', 'it is next year already in South Africa')
    t.same(
      rows.slice(-2).map(({ day }) => day),
      ['2028-12-26', '2032-05-30'],
    )
    t.match(
      rows,
      rows.toSorted((one, other) => one.day.localeCompare(other.day)),
    )
    t.match(
      rows.filter(({ day }) => /2028-02-29|2027-12-27/.test(day)).map(({ name }) => name),
      ['Day of Goodwill fell on a Sunday', 'A proclaimed one'],
    )
  })
})

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
