import t from 'tap'
import { createShares, type Share } from '../../src/webhooks/shares.ts'

/** A share that there is room for. */
const given = (share: Share | null): Share => {
  if (!share) throw new Error('there is no room')
  return share
}

/** These endpoints have a turn each, one after the other, in which a post takes so long. */
function haveTurns(shares: ReturnType<typeof createShares>, count: number, ms: number) {
  for (let n = 0; n < count; n += 1) {
    const share = given(shares.take(`endpoint ${n}`))
    share.took(ms)
    share.leave()
  }
}

/** How many of these endpoints have room for a turn at the same time; they have left when it answers. */
function roomFor(shares: ReturnType<typeof createShares>, endpoints: readonly number[]) {
  const taken = endpoints.map((n) => shares.take(`endpoint ${n}`))
  for (const share of taken) share?.leave()
  return taken.filter((share) => share !== null).length
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n)

t.test('a hundred turns at a time may fail, each counted once and until it ends', async (t) => {
  const shares = createShares()
  const failing = range(0, 100).map((n) => given(shares.take(`endpoint ${n}`)))
  for (const share of [...failing, ...failing]) t.ok(share.mayFail())
  const other = given(shares.take('another'))
  t.notOk(other.mayFail())
  failing.pop()?.leave()
  t.ok(other.mayFail())
  t.notOk(given(shares.take('one more')).mayFail())
  other.leave()
  t.ok(given(shares.take('one more')).mayFail())
})

t.test('an endpoint is slow by the longest post of its last turn that had any', async (t) => {
  const shares = createShares()
  haveTurns(shares, 400, 3001)
  t.equal(roomFor(shares, range(0, 400)), 300)
  t.equal(roomFor(shares, range(0, 400)), 300, 'a turn without a post says nothing')
  for (const n of range(0, 100)) {
    const share = given(shares.take(`endpoint ${n}`))
    for (const ms of [5, 3000, 5]) share.took(ms)
    share.leave()
  }
  t.equal(roomFor(shares, range(0, 400)), 400)
  const share = given(shares.take('endpoint 0'))
  for (const ms of [5, 3001, 5]) share.took(ms)
  share.leave()
  t.equal(roomFor(shares, range(0, 400)), 400 - 1)
})

t.test('ten thousand slow ones are remembered, those that were seen last', async (t) => {
  const shares = createShares()
  haveTurns(shares, 10_400, 3001)
  t.equal(roomFor(shares, range(0, 400)), 400)
  t.equal(roomFor(shares, range(400, 800)), 300)
  t.equal(roomFor(shares, range(10_000, 10_400)), 300)
})
