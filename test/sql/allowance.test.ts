import fc from 'fast-check'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

type Item = { payer: number; amount: number }

/** Returns the result of the window function for each item, in order of arrival. */
async function fitted(items: Item[], available: number[]): Promise<boolean[]> {
  const rows = await sql<{ fits: boolean }[]>`
    select core.fits(i.amount, a.available, i.place::integer) over (partition by i.payer order by i.place) as fits
    from unnest(${items.map(({ payer }) => payer)}::integer[], ${items.map(({ amount }) => amount)}::integer[])
      with ordinality as i (payer, amount, place)
    join unnest(${available}::integer[]) with ordinality as a (available, number) on a.number = i.payer + 1
    order by i.place`
  return rows.map(({ fits }) => fits)
}

/** Returns the same for items served one by one. */
function served(items: Item[], available: number[]): boolean[] {
  const left = [...available]
  return items.map(({ payer, amount }) => {
    const rest = left[payer] ?? 0
    // An amount of 0 always fits, also where less than nothing is left.
    if (amount > 0 && amount > rest) return false
    left[payer] = rest - amount
    return true
  })
}

t.test(
  'fits: an item that does not fit takes nothing, and a smaller one after it fits',
  async (t) => {
    const items = [4, 5, 2, 4, 1, 1].map((amount) => ({ payer: 0, amount }))
    t.same(await fitted(items, [8]), [true, false, true, false, true, true])
  },
)

t.test('fits: the whole amount can be used, and nothing fits into 0 or less', async (t) => {
  const items = [3, 1].map((amount) => ({ payer: 0, amount }))
  t.same(await fitted(items, [3]), [true, false])
  t.same(await fitted(items, [4]), [true, true])
  t.same(await fitted(items, [0]), [false, false])
  // A change to a smaller plan has this effect.
  t.same(await fitted(items, [-100]), [false, false])
})

t.test('fits: sums beyond 32 bits do not overflow', async (t) => {
  const items = Array.from({ length: 5 }, () => ({ payer: 0, amount: 2_147_483_647 }))
  t.same(await fitted(items, [2_147_483_647]), [true, false, false, false, false])
})

t.test('fits: equals serving any items one by one', async () => {
  const items = fc.array(
    fc.record({
      payer: fc.nat(2),
      amount: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.nat(2_147_483_647)),
    }),
    { minLength: 1, maxLength: 100 },
  )
  const available = fc.array(fc.integer({ min: -10, max: 1000 }), { minLength: 3, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(items, available, async (items, available) => {
      const [window, one] = [await fitted(items, available), served(items, available)]
      if (window.join() !== one.join()) throw new Error(`${window} instead of ${one}`)
    }),
    { numRuns: 200, examples: [[[{ payer: 0, amount: 0 }], [-1, 0, 0]]] },
  )
})

type Charge = { amount: number; call: number }

/** Returns the same for calls; after an item that does not fit, the rest of its call does not either. */
async function fittedUntilShort(items: Charge[], available: number): Promise<boolean[]> {
  const rows = await sql<{ fits: boolean }[]>`
    select core.fits(i.amount, ${available}::bigint, i.call) over (order by i.place) as fits
    from unnest(${items.map(({ amount }) => amount)}::integer[], ${items.map(({ call }) => call)}::integer[])
      with ordinality as i (amount, call, place)
    order by i.place`
  return rows.map(({ fits }) => fits)
}

function servedUntilShort(items: Charge[], available: number): boolean[] {
  const short = new Set<number>()
  let rest = available
  return items.map(({ amount, call }) => {
    if (amount === 0) return true
    if (amount > rest) short.add(call)
    if (short.has(call)) return false
    rest -= amount
    return true
  })
}

t.test('fits: after an item that does not fit, its call gets nothing, others do', async (t) => {
  const items = [
    ...[2, 4, 1, 0].map((amount) => ({ amount, call: 0 })),
    ...[1, 3].map((amount) => ({ amount, call: 1 })),
    { amount: 1, call: 2 },
  ]
  const expected = [true, false, false, true, true, false, true]
  t.same(await fittedUntilShort(items, 5), expected)
})

t.test('fits: equals serving any calls item by item', async () => {
  const calls = fc.array(
    fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 10 })), {
      minLength: 1,
      maxLength: 20,
    }),
    { minLength: 1, maxLength: 8 },
  )
  await fc.assert(
    fc.asyncProperty(calls, fc.nat(120), async (calls, available) => {
      const items = calls.flatMap((amounts, call) => amounts.map((amount) => ({ amount, call })))
      const [window, one] = [
        await fittedUntilShort(items, available),
        servedUntilShort(items, available),
      ]
      if (window.join() !== one.join()) throw new Error(`${window} instead of ${one}`)
    }),
    { numRuns: 200 },
  )
})

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
