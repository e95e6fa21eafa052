import t from 'tap'
import { createSlots, type Slot } from '../../src/webhooks/slots.ts'

const granted = (slot: Slot | null): Slot => {
  if (!slot) throw new Error('there is no free slot')
  return slot
}

/** Gives `count` endpoints a lease, one after the other, with one post of this duration. */
function lease(slots: ReturnType<typeof createSlots>, count: number, ms: number) {
  for (let n = 0; n < count; n += 1) {
    const slot = granted(slots.acquire(`endpoint ${n}`))
    slot.recordPost(ms)
    slot.release()
  }
}

/** Returns how many of these endpoints get a slot at the same time, and releases the slots. */
function slotsFor(slots: ReturnType<typeof createSlots>, endpoints: readonly number[]) {
  const taken = endpoints.map((n) => slots.acquire(`endpoint ${n}`))
  for (const slot of taken) slot?.release()
  return taken.filter((slot) => slot !== null).length
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n)

t.test(
  'mayFail(): is true for a hundred leases at a time, each counted once until its release',
  async (t) => {
    const slots = createSlots()
    const failing = range(0, 100).map((n) => granted(slots.acquire(`endpoint ${n}`)))
    for (const slot of [...failing, ...failing]) t.ok(slot.mayFail())
    const other = granted(slots.acquire('another'))
    t.notOk(other.mayFail())
    failing.pop()?.release()
    t.ok(other.mayFail())
    t.notOk(granted(slots.acquire('one more')).mayFail())
    other.release()
    t.ok(granted(slots.acquire('one more')).mayFail())
  },
)

t.test('an endpoint is slow after a lease whose longest post took more than 3 s', async (t) => {
  const slots = createSlots()
  lease(slots, 400, 3001)
  t.equal(slotsFor(slots, range(0, 400)), 300)
  t.equal(slotsFor(slots, range(0, 400)), 300, 'a lease without a post changes nothing')
  for (const n of range(0, 100)) {
    const slot = granted(slots.acquire(`endpoint ${n}`))
    for (const ms of [5, 3000, 5]) slot.recordPost(ms)
    slot.release()
  }
  t.equal(slotsFor(slots, range(0, 400)), 400)
  const slot = granted(slots.acquire('endpoint 0'))
  for (const ms of [5, 3001, 5]) slot.recordPost(ms)
  slot.release()
  t.equal(slotsFor(slots, range(0, 400)), 400 - 1)
})

t.test('the last 10 000 slow endpoints are remembered', async (t) => {
  const slots = createSlots()
  lease(slots, 10_400, 3001)
  t.equal(slotsFor(slots, range(0, 400)), 400)
  t.equal(slotsFor(slots, range(400, 800)), 300)
  t.equal(slotsFor(slots, range(10_000, 10_400)), 300)
})
