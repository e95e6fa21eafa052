import t from 'tap'
import { createLimiter, type Limiter, type Permit } from '../../../src/providers/smpp/limiter.ts'
import { VirtualTimer } from '../../fixtures/smpp.ts'

/** Requests `count` permits and passes each to `use`; returns the times at which they were issued. */
function acquireAll(
  { limiter, timer }: { limiter: Limiter; timer: VirtualTimer },
  count: number,
  use: (permit: Permit, number: number) => void = (permit) => permit.release('accepted'),
  timeoutMs = 10_000_000,
): { times: number[]; late: number } {
  const issued = { times: [] as number[], late: 0 }
  for (let number = 1; number <= count; number++) {
    limiter.acquire(timeoutMs).then((permit) => {
      if (!permit) {
        issued.late++
        return
      }
      issued.times.push(timer.now())
      use(permit, number)
    })
  }
  return issued
}

function limited(window: number, rate: number) {
  const timer = new VirtualTimer()
  return { timer, limiter: createLimiter({ window, rate, timer }) }
}

function mostInASecond(times: number[]): number {
  return Math.max(
    ...times.map((start) => times.filter((time) => time >= start && time < start + 1000).length),
  )
}

t.test('Limiter: every second has the rate and never more', async (t) => {
  for (const rate of [1, 3, 10, 100, 999]) {
    const all = limited(1000, rate)
    const { times } = acquireAll(all, rate * 5)
    await all.timer.pass(5200)
    t.equal(times.length, rate * 5, `${rate}`)
    t.ok(mostInASecond(times) <= rate)
  }
})

t.test('Limiter: a late timer neither lowers the speed nor exceeds the rate', async (t) => {
  const all = limited(1000, 100)
  const { timer } = all
  const late = {
    now: () => timer.now(),
    after: (ms: number, run: () => void) => timer.after(Math.ceil(ms / 15) * 15, run),
  }
  const limiter = createLimiter({ window: 1000, rate: 100, timer: late })
  const { times } = acquireAll({ limiter, timer }, 500)
  await timer.pass(5200)
  t.equal(times.length, 500)
  t.ok(mostInASecond(times) <= 100)
})

t.test('Limiter: idle time does not add permits', async (t) => {
  const all = limited(1000, 10)
  await all.timer.pass(60_000)
  const { times } = acquireAll(all, 30)
  await all.timer.pass(3200)
  t.equal(mostInASecond(times), 10)
})

t.test('Limiter: at most `window` permits are open, issued in order', async (t) => {
  const all = limited(3, 1000)
  const open: Permit[] = []
  const order: number[] = []
  acquireAll(all, 10, (permit, number) => {
    open.push(permit)
    order.push(number)
  })
  await all.timer.pass(1000)
  t.strictSame(order, [1, 2, 3])
  open[1]?.release()
  open[1]?.release('accepted')
  await all.timer.pass(1000)
  t.strictSame(order, [1, 2, 3, 4], 'a permit that is released twice counts once')
  for (const permit of open) permit.release()
  await all.timer.pass(1000)
  t.strictSame(order, [1, 2, 3, 4, 5, 6, 7])
})

t.test('Limiter: requests with isFirst go before all others, in order', async (t) => {
  const all = limited(1, 10)
  const order: string[] = []
  for (const name of ['a', 'b', 'C', 'D', 'e']) {
    all.limiter.acquire(10_000, { isFirst: name < 'a' }).then((permit) => {
      order.push(name)
      permit?.release()
    })
  }
  await all.timer.pass(1000)
  t.strictSame(order, ['a', 'C', 'D', 'b', 'e'])
})

t.test('acquire(): a request that times out gets null and delays no other', async (t) => {
  const all = limited(1, 1000)
  const open: Permit[] = []
  acquireAll(all, 1, (permit) => open.push(permit))
  const hurried = acquireAll(all, 5, undefined, 500)
  const waiting = acquireAll(all, 1)
  await all.timer.pass(499)
  t.equal(hurried.late, 0)
  await all.timer.pass(1)
  t.equal(hurried.late, 5)
  t.strictSame(waiting.times, [])
  open[0]?.release()
  await all.timer.pass(0)
  t.strictSame(waiting.times, [500])
})

t.test('Limiter: throttling halves the speed once for all PDUs in progress', async (t) => {
  const all = limited(1000, 100)
  const { limiter, timer } = all
  const open: Permit[] = []
  acquireAll(all, 20, (permit) => open.push(permit))
  await timer.pass(1000)
  for (const permit of open) permit.release('throttled')
  t.equal(limiter.speed(), 50)
  const next = acquireAll(all, 100, (permit) => permit.release())
  await timer.pass(2200)
  t.equal(next.times.length, 100)
  t.ok(mostInASecond(next.times) <= 50)
})

t.test('Limiter: repeated throttling never lowers the speed below 1/32 of the rate', async (t) => {
  const all = limited(10, 320)
  acquireAll(all, 100, (permit) => permit.release('throttled'))
  await all.timer.pass(60_000)
  t.equal(all.limiter.speed(), 10)
})

t.test('Limiter: accepted PDUs restore the speed up to the rate', async (t) => {
  const all = limited(10, 100)
  acquireAll(all, 1, (permit) => permit.release('throttled'))
  await all.timer.pass(0)
  t.equal(all.limiter.speed(), 50)
  acquireAll(all, 500)
  await all.timer.pass(10_000)
  t.ok(Math.abs(all.limiter.speed() - 75) < 0.001)
  acquireAll(all, 1000)
  await all.timer.pass(20_000)
  t.equal(all.limiter.speed(), 100)
})

t.test('Limiter: after close() every request gets null', async (t) => {
  const all = limited(1, 100)
  acquireAll(all, 1, () => undefined)
  const waiting = acquireAll(all, 3)
  await all.timer.pass(0)
  all.limiter.close()
  const after = acquireAll(all, 2)
  await all.timer.pass(0)
  t.strictSame([waiting.late, after.late], [3, 2])
})
