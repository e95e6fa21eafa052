import fc from 'fast-check'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

type Item = { payer: number; amount: number }

/** Returns the result of the window function for each item, in order of arrival. */
async function fitted(items: Item[], available: number[]): Promise<boolean[]> {
  const rows = await sql<{ fits: boolean }[]>`
    select core.fits(i.amount, a.available) over (partition by i.payer order by i.place) as fits
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
    if (amount > rest) return false
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
    { numRuns: 200 },
  )
})

type Charge = { amount: number; call: number }

/** Returns the same for calls; after an item that does not fit, the rest of its call does not either. */
async function fittedUntilShort(items: Charge[], available: number): Promise<boolean[]> {
  const rows = await sql<{ fits: boolean }[]>`
    select core.fits_until_short(i.amount, ${available}::bigint, i.call) over (order by i.place) as fits
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

t.test(
  'fits_until_short: after an item that does not fit, its call gets nothing, others do',
  async (t) => {
    const items = [
      ...[2, 4, 1, 0].map((amount) => ({ amount, call: 0 })),
      ...[1, 3].map((amount) => ({ amount, call: 1 })),
      { amount: 1, call: 2 },
    ]
    const expected = [true, false, false, true, true, false, true]
    t.same(await fittedUntilShort(items, 5), expected)
  },
)

t.test('fits_until_short: equals serving any calls item by item', async () => {
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
