import t from 'tap'
import { Pace, type Turn } from '../../../src/providers/smpp/limiter.ts'
import { VirtualTimer } from '../../fixtures/timer.ts'

/** Asks for so many turns and ends each as `answer` says; answers with the moments at which they came. */
function claimLeases(
  { pace, timer }: { pace: Pace; timer: VirtualTimer },
  count: number,
  answer: (turn: Turn, number: number) => void = (turn) => turn.end('taken'),
  withinMs = 10_000_000,
): { times: number[]; late: number } {
  const taken = { times: [] as number[], late: 0 }
  for (let number = 1; number <= count; number++) {
    pace.turn(withinMs).then((turn) => {
      if (!turn) {
        taken.late++
        return
      }
      taken.times.push(timer.now())
      answer(turn, number)
    })
  }
  return taken
}

function paced(window: number, rate: number) {
  const timer = new VirtualTimer()
  return { timer, pace: new Pace({ window, rate, timer }) }
}

function mostInASecond(times: number[]): number {
  return Math.max(
    ...times.map((start) => times.filter((time) => time >= start && time < start + 1000).length),
  )
}

t.test('no second has more than the rate, and hardly one less', async (t) => {
  for (const rate of [1, 3, 10, 100, 999]) {
    const all = paced(1000, rate)
    const { times } = claimLeases(all, rate * 5)
    await all.timer.pass(5200)
    t.equal(times.length, rate * 5, `${rate}`)
    t.ok(mostInASecond(times) <= rate)
  }
})

t.test('a timer that fires late costs no speed and allows no more', async (t) => {
  const all = paced(1000, 100)
  const { timer } = all
  const late = {
    now: () => timer.now(),
    after: (ms: number, run: () => void) => timer.after(Math.ceil(ms / 15) * 15, run),
  }
  const pace = new Pace({ window: 1000, rate: 100, timer: late })
  const { times } = claimLeases({ pace, timer }, 500)
  await timer.pass(5200)
  t.equal(times.length, 500)
  t.ok(mostInASecond(times) <= 100)
})

t.test('after a pause it does not make up for what was not asked of it', async (t) => {
  const all = paced(1000, 10)
  await all.timer.pass(60_000)
  const { times } = claimLeases(all, 30)
  await all.timer.pass(3200)
  t.equal(mostInASecond(times), 10)
})

t.test('no more than the window are unanswered, and turns come in order', async (t) => {
  const all = paced(3, 1000)
  const open: Turn[] = []
  const order: number[] = []
  claimLeases(all, 10, (turn, number) => {
    open.push(turn)
    order.push(number)
  })
  await all.timer.pass(1000)
  t.strictSame(order, [1, 2, 3])
  open[1]?.end()
  open[1]?.end('taken')
  await all.timer.pass(1000)
  t.strictSame(order, [1, 2, 3, 4], 'one turn that ends twice makes room once')
  for (const turn of open) turn.end()
  await all.timer.pass(1000)
  t.strictSame(order, [1, 2, 3, 4, 5, 6, 7])
})

t.test('who is to be first goes before all who are not, in order too', async (t) => {
  const all = paced(1, 10)
  const order: string[] = []
  for (const name of ['a', 'b', 'C', 'D', 'e']) {
    all.pace.turn(10_000, { isFirst: name < 'a' }).then((turn) => {
      order.push(name)
      turn?.end()
    })
  }
  await all.timer.pass(1000)
  t.strictSame(order, ['a', 'C', 'D', 'b', 'e'])
})

t.test('who waited too long gets none, and those behind are not held up', async (t) => {
  const all = paced(1, 1000)
  const open: Turn[] = []
  claimLeases(all, 1, (turn) => open.push(turn))
  const impatient = claimLeases(all, 5, undefined, 500)
  const patient = claimLeases(all, 1)
  await all.timer.pass(499)
  t.equal(impatient.late, 0)
  await all.timer.pass(1)
  t.equal(impatient.late, 5)
  t.strictSame(patient.times, [])
  open[0]?.end()
  await all.timer.pass(0)
  t.strictSame(patient.times, [500])
})

t.test('throttled, it goes at half the speed, once for all that were under way', async (t) => {
  const all = paced(1000, 100)
  const { pace, timer } = all
  const open: Turn[] = []
  claimLeases(all, 20, (turn) => open.push(turn))
  await timer.pass(1000)
  for (const turn of open) turn.end('throttled')
  t.equal(pace.speed, 50)
  const next = claimLeases(all, 100, (turn) => turn.end())
  await timer.pass(2200)
  t.equal(next.times.length, 100)
  t.ok(mostInASecond(next.times) <= 50)
})

t.test('throttled again and again, it never stops', async (t) => {
  const all = paced(10, 320)
  claimLeases(all, 100, (turn) => turn.end('throttled'))
  await all.timer.pass(60_000)
  t.equal(all.pace.speed, 10)
})

t.test('it comes back to its rate with what is taken, and not above', async (t) => {
  const all = paced(10, 100)
  claimLeases(all, 1, (turn) => turn.end('throttled'))
  await all.timer.pass(0)
  t.equal(all.pace.speed, 50)
  claimLeases(all, 500)
  await all.timer.pass(10_000)
  t.ok(Math.abs(all.pace.speed - 75) < 0.001)
  claimLeases(all, 1000)
  await all.timer.pass(20_000)
  t.equal(all.pace.speed, 100)
})

t.test('closed, it gives out nothing more', async (t) => {
  const all = paced(1, 100)
  claimLeases(all, 1, () => undefined)
  const waiting = claimLeases(all, 3)
  await all.timer.pass(0)
  all.pace.close()
  const after = claimLeases(all, 2)
  await all.timer.pass(0)
  t.strictSame([waiting.late, after.late], [3, 2])
})
