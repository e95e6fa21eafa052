import t from 'tap'
import { createShares, largestShare } from '../../src/http/body/shares.ts'

t.test('createShares: one party alone gets a quarter of the total', async (t) => {
  const shares = createShares(100, 1)
  t.ok(shares.take('a', 25))
  t.notOk(shares.take('a', 1))
  t.equal(shares.held('a'), 25)
  t.equal(largestShare(100), 25)
})

t.test(
  'createShares: ten greedy parties leave a twentieth, a newcomer gets its part of it',
  async (t) => {
    const total = 100_000
    const shares = createShares(total, 1)
    let all = 0
    for (let n = 0; n < 10; n++) while (shares.take(`party ${n}`, 10)) all += 10
    t.ok(all < total * 0.95)
    t.ok(shares.take('newcomer', total / 100))
  },
)

t.test(
  'createShares: the guaranteed amount is there however many parties are greedy',
  async (t) => {
    const shares = createShares(1000, 10)
    for (let n = 0; n < 200; n++) while (shares.take(`party ${n}`, 1));
    t.ok(shares.take('newcomer', 10))
    t.notOk(shares.take('newcomer', 1))
  },
)

t.test('createShares: an amount that is given back can be taken again, by anybody', async (t) => {
  const shares = createShares(100, 1)
  shares.take('a', 25)
  t.notOk(shares.take('b', 19))
  shares.giveBack('a', 25)
  t.equal(shares.held('a'), 0)
  t.ok(shares.take('b', 25))
})

t.test('createShares: giveBack of a negative amount holds more than the share', async (t) => {
  const shares = createShares(100, 1)
  shares.giveBack('a', -80)
  t.equal(shares.held('a'), 80)
  t.notOk(shares.take('a', 1))
  t.ok(shares.take('b', 5))
})
