import fc from 'fast-check'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

type Item = { payer: number; amount: number }

/** What the window says of each item, in order of arrival. */
async function fitted(items: Item[], available: number[]): Promise<boolean[]> {
  const rows = await sql<{ fits: boolean }[]>`
    select core.fits(i.amount, a.available) over (partition by i.payer order by i.place) as fits
    from unnest(${items.map(({ payer }) => payer)}::integer[], ${items.map(({ amount }) => amount)}::integer[])
      with ordinality as i (payer, amount, place)
    join unnest(${available}::integer[]) with ordinality as a (available, number) on a.number = i.payer + 1
    order by i.place`
  return rows.map(({ fits }) => fits)
}

/** The same, one by one. */
function served(items: Item[], available: number[]): boolean[] {
  const left = [...available]
  return items.map(({ payer, amount }) => {
    const rest = left[payer] ?? 0
    if (amount > rest) return false
    left[payer] = rest - amount
    return true
  })
}

t.test('what does not fit takes nothing, so that a smaller one behind it still fits', async (t) => {
  const items = [4, 5, 2, 4, 1, 1].map((amount) => ({ payer: 0, amount }))
  t.same(await fitted(items, [8]), [true, false, true, false, true, true])
})

t.test('what is left can be used up to the last, and nothing fits into nothing', async (t) => {
  const items = [3, 1].map((amount) => ({ payer: 0, amount }))
  t.same(await fitted(items, [3]), [true, false])
  t.same(await fitted(items, [4]), [true, true])
  t.same(await fitted(items, [0]), [false, false])
  // As after a change to a smaller plan.
  t.same(await fitted(items, [-100]), [false, false])
})

t.test('sums beyond 32 bits do not overflow', async (t) => {
  const items = Array.from({ length: 5 }, () => ({ payer: 0, amount: 2_147_483_647 }))
  t.same(await fitted(items, [2_147_483_647]), [true, false, false, false, false])
})

t.test('the window is what serving them one by one gives', async () => {
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
