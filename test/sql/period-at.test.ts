import fc from 'fast-check'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

type Period = { periodStart: Date; periodEnd: Date }

async function periodsAt(pairs: [anchor: string, at: string][]): Promise<Period[]> {
  const anchors = pairs.map(([anchor]) => anchor)
  const ats = pairs.map(([, at]) => at)
  return sql<Period[]>`
    select p.*
    from unnest(${anchors}::timestamptz[], ${ats}::timestamptz[]) with ordinality as i (anchor, at, place)
    cross join lateral core.period_at(i.anchor, i.at) p
    order by i.place`
}

const periodAt = async (anchor: string, at: string) => {
  const [period] = await periodsAt([[anchor, at]])
  return [period?.periodStart.toISOString(), period?.periodEnd.toISOString()]
}

/** The same in TypeScript: some month's day of the anchor, or the month's last if it is shorter. */
function monthlyFrom(anchor: Date, months: number): number {
  const first = Date.UTC(anchor.getUTCFullYear(), anchor.getUTCMonth() + months, 1)
  const days = new Date(
    Date.UTC(anchor.getUTCFullYear(), anchor.getUTCMonth() + months + 1, 0),
  ).getUTCDate()
  const timeOfDay = anchor.getTime() % 86_400_000
  return first + (Math.min(anchor.getUTCDate(), days) - 1) * 86_400_000 + timeOfDay
}

t.test('period_at: 31 January is followed by the end of February and 31 March', async (t) => {
  const anchor = '2023-01-31T09:30:00Z'
  t.same(await periodAt(anchor, '2023-02-10T00:00:00Z'), [
    '2023-01-31T09:30:00.000Z',
    '2023-02-28T09:30:00.000Z',
  ])
  t.same(await periodAt(anchor, '2023-03-01T00:00:00Z'), [
    '2023-02-28T09:30:00.000Z',
    '2023-03-31T09:30:00.000Z',
  ])
  t.same(await periodAt(anchor, '2023-04-15T00:00:00Z'), [
    '2023-03-31T09:30:00.000Z',
    '2023-04-30T09:30:00.000Z',
  ])
  t.same(await periodAt(anchor, '2023-05-31T10:00:00Z'), [
    '2023-05-31T09:30:00.000Z',
    '2023-06-30T09:30:00.000Z',
  ])
})

t.test('period_at: a leap year has 29 February', async (t) => {
  t.same(await periodAt('2024-01-31T00:00:00Z', '2024-02-29T00:00:00Z'), [
    '2024-02-29T00:00:00.000Z',
    '2024-03-31T00:00:00.000Z',
  ])
  t.same(await periodAt('2024-02-29T12:00:00Z', '2025-02-28T11:59:59Z'), [
    '2025-01-29T12:00:00.000Z',
    '2025-02-28T12:00:00.000Z',
  ])
  t.same(await periodAt('2024-02-29T12:00:00Z', '2028-02-29T12:00:00Z'), [
    '2028-02-29T12:00:00.000Z',
    '2028-03-29T12:00:00.000Z',
  ])
  t.same(await periodAt('2099-12-31T00:00:00Z', '2100-03-01T00:00:00Z'), [
    '2100-02-28T00:00:00.000Z',
    '2100-03-31T00:00:00.000Z',
  ])
})

t.test('period_at: a period includes its start and excludes its end', async (t) => {
  const anchor = '2023-05-17T10:20:30.123456Z'
  const [before, at] = await sql<{ start: string; end: string }[]>`
    select core.iso(p.period_start) as start, core.iso(p.period_end) as end
    from (values (1, '2023-06-17T10:20:30.123455Z'::timestamptz), (2, '2023-06-17T10:20:30.123456Z')) i (place, at)
    cross join lateral core.period_at(${anchor}::text::timestamptz, i.at) p
    order by place`
  t.same(before, { start: '2023-05-17T10:20:30.123Z', end: '2023-06-17T10:20:30.123Z' })
  t.same(at, { start: '2023-06-17T10:20:30.123Z', end: '2023-07-17T10:20:30.123Z' })
})

t.test('period_at: the first period starts at the anchor', async (t) => {
  t.same(await periodAt('2023-12-31T23:59:59.999Z', '2023-12-31T23:59:59.999Z'), [
    '2023-12-31T23:59:59.999Z',
    '2024-01-31T23:59:59.999Z',
  ])
})

t.test('period_at: counts in UTC with any session time zone', async (t) => {
  for (const zone of ['America/New_York', 'Pacific/Kiritimati', 'Africa/Johannesburg']) {
    const [row] = await sql.begin(async (tx) => {
      await tx`select set_config('timezone', ${zone}, true)`
      return tx<
        Period[]
      >`select * from core.period_at('2023-01-31T01:00:00Z', '2023-03-12T12:00:00Z')`
    })
    t.same(row, {
      periodStart: new Date('2023-02-28T01:00:00Z'),
      periodEnd: new Date('2023-03-31T01:00:00Z'),
    })
  }
})

t.test('period_at: periods contain their time, have no gaps and keep their day', async () => {
  const moment = fc.date({
    min: new Date('2000-01-01'),
    max: new Date('2060-01-01'),
    noInvalidDate: true,
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(moment, moment), { minLength: 1, maxLength: 50 }),
      async (given) => {
        const pairs = given.map(([anchor, at]): [string, string] => [
          anchor.toISOString(),
          at.toISOString(),
        ])
        const periods = await periodsAt(pairs)
        const next = await periodsAt(
          periods.map(({ periodEnd }, place) => [
            String(pairs[place]?.[0]),
            periodEnd.toISOString(),
          ]),
        )
        given.forEach(([anchor, at], place) => {
          const { periodStart, periodEnd } = periods[place] as Period
          const holds = periodStart <= at && at < periodEnd
          const hasNoGap = next[place]?.periodStart.getTime() === periodEnd.getTime()
          const months =
            (periodStart.getUTCFullYear() - anchor.getUTCFullYear()) * 12 +
            periodStart.getUTCMonth() -
            anchor.getUTCMonth()
          const isOnItsDay =
            monthlyFrom(anchor, months) === periodStart.getTime() &&
            monthlyFrom(anchor, months + 1) === periodEnd.getTime()
          if (!holds || !hasNoGap || !isOnItsDay) {
            throw new Error(
              `${pairs[place]}: ${periodStart.toISOString()} to ${periodEnd.toISOString()}`,
            )
          }
        })
      },
    ),
    { numRuns: 100 },
  )
})
