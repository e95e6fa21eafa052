import t from 'tap'
import { createDatabase, raisedBy, rolledBack } from '../fixtures/database.ts'

const { sql } = await createDatabase()

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
