import t from 'tap'
import { createQuota, largestReservation } from '../../src/http/body/quota.ts'

t.test('createQuota: a single owner can reserve a quarter of the total', async (t) => {
  const quota = createQuota(100, 1)
  t.ok(quota.reserve('a', 25))
  t.notOk(quota.reserve('a', 1))
  t.equal(quota.reservedBy('a'), 25)
  t.equal(largestReservation(100), 25)
})

t.test('createQuota: ten owners at their limit leave room for a further one', async (t) => {
  const total = 100_000
  const quota = createQuota(total, 1)
  for (let n = 0; n < 10; n++) while (quota.reserve(`owner ${n}`, 10));
  t.ok(quota.reserved() < total * 0.95)
  t.ok(quota.reserve('another', total / 100))
})

t.test(
  'createQuota: the guaranteed amount is available with 200 owners at their limit',
  async (t) => {
    const quota = createQuota(1000, 10)
    for (let n = 0; n < 200; n++) while (quota.reserve(`owner ${n}`, 1));
    t.ok(quota.reserve('another', 10))
    t.notOk(quota.reserve('another', 1))
  },
)

t.test('createQuota: a released amount can be reserved by every owner', async (t) => {
  const quota = createQuota(100, 1)
  quota.reserve('a', 25)
  t.notOk(quota.reserve('b', 19))
  quota.release('a', 25)
  t.equal(quota.reservedBy('a'), 0)
  t.ok(quota.reserve('b', 25))
})

t.test('createQuota: add() ignores the limit, and reduces that of other owners', async (t) => {
  const quota = createQuota(100, 1)
  quota.add('a', 80)
  t.equal(quota.reservedBy('a'), 80)
  t.notOk(quota.reserve('a', 1))
  t.ok(quota.reserve('b', 5))
  t.notOk(quota.reserve('b', 5))
})
