import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { type BatcherOptions, createBatcher } from '../../src/db/batcher/index.ts'
import { LEFT_OUT } from '../../src/db/batcher/run.ts'
import type { Time } from '../../src/time/index.ts'

type Run = {
  items: string[]
  isShared: boolean
  answer(results?: (string | typeof LEFT_OUT)[]): void
  fail(error: string | Error): void
}

const resultOf = (item: string) => `result of ${item}`

// Time stands still unless a test moves it.
const clock = {
  now: 1000,
  timers: new Set<{ at: number; work(): void }>(),
  /** Moves time, and runs what is due. */
  async pass(ms: number) {
    clock.now += ms
    for (const timer of [...clock.timers].filter(({ at }) => at <= clock.now)) {
      clock.timers.delete(timer)
      timer.work()
    }
    await calm()
  },
}
const time: Time = {
  now: () => clock.now,
  after(ms, work) {
    const timer = { at: clock.now + ms, work }
    clock.timers.add(timer)
    return () => clock.timers.delete(timer)
  },
}

/** A batcher whose runs the test ends. */
function controlled(options: BatcherOptions<string> = { maxWeight: 100 }) {
  const runs: Run[] = []
  const put = createBatcher<string, string>(
    (items, isShared) =>
      new Promise((resolve, reject) => {
        runs.push({
          items,
          isShared,
          answer: (results = items.map(resultOf)) => resolve(results),
          fail: (error) => reject(typeof error === 'string' ? new Error(error) : error),
        })
      }),
    { time, ...options },
  )
  const run = (place: number) => {
    const found = runs[place]
    if (!found) throw new Error(`there was no run ${place}`)
    return found
  }
  return { put, runs, run, itemsOfRuns: () => runs.map(({ items }) => items) }
}

/** Waits until everything is done that does not need the end of a run. */
async function calm() {
  for (let turns = 0; turns < 5; turns += 1) await turn()
}

t.test('an item runs at once if no run is in progress', async (t) => {
  const { put, run, itemsOfRuns } = controlled()
  const result = put('a')
  await turn()
  t.same(itemsOfRuns(), [['a']])
  run(0).answer()
  t.equal(await result, 'result of a')
})

t.test('items that arrive together share a run and get their own results, in order', async (t) => {
  const { put, run, itemsOfRuns } = controlled()
  const results = Promise.all(['a', 'b', 'c'].map((item) => put(item)))
  await calm()
  t.same(itemsOfRuns(), [['a', 'b', 'c']])
  run(0).answer()
  t.same(await results, ['result of a', 'result of b', 'result of c'])
})

t.test('items that arrive during a run share the next run', async (t) => {
  const { put, run, itemsOfRuns } = controlled()
  const first = put('a')
  await calm()
  const rest = []
  for (const item of ['b', 'c', 'd']) {
    rest.push(put(item))
    await calm()
  }
  t.same(itemsOfRuns(), [['a']], 'one run at a time')
  run(0).answer()
  t.equal(await first, 'result of a')
  t.same(itemsOfRuns(), [['a'], ['b', 'c', 'd']])
  run(1).answer()
  t.same(await Promise.all(rest), ['result of b', 'result of c', 'result of d'])
})

t.test('a run has at most its largest weight, in the order of arrival', async (t) => {
  const { put, run, itemsOfRuns } = controlled({
    maxWeight: 10,
    weigh: (item) => Number(item.slice(1)),
  })
  const results = Promise.all(['a4', 'b6', 'c1', 'd9', 'e1'].map((item) => put(item)))
  for (const place of [0, 1, 2]) {
    await calm()
    run(place).answer()
  }
  await results
  t.same(itemsOfRuns(), [['a4', 'b6'], ['c1', 'd9'], ['e1']])
})

t.test('items that fill a run do not wait for the run in progress', async (t) => {
  const { put, run, itemsOfRuns } = controlled({
    maxWeight: 10,
    weigh: (item) => Number(item.slice(1)),
  })
  const first = put('a1')
  await calm()
  const light = put('b9')
  await calm()
  t.same(itemsOfRuns(), [['a1']], 'what could still grow waits')
  const heavy = put('c1')
  await calm()
  t.same(itemsOfRuns(), [['a1'], ['b9', 'c1']])
  const third = put('d10')
  await calm()
  t.equal(itemsOfRuns().length, 2, 'there are no more than two at a time')
  run(0).answer()
  run(1).answer()
  await calm()
  run(2).answer()
  await Promise.all([first, light, heavy, third])
})

t.test('an item heavier than a run runs alone', async (t) => {
  const { put, run, itemsOfRuns } = controlled({
    maxWeight: 10,
    weigh: (item) => Number(item.slice(1)),
  })
  const results = Promise.all(['a1', 'b99', 'c1'].map((item) => put(item)))
  for (const place of [0, 1, 2]) {
    await calm()
    run(place).answer()
  }
  await results
  t.same(itemsOfRuns(), [['a1'], ['b99'], ['c1']])
})

t.test(
  'failed run: its halves run again one after the other, and a bad item fails alone',
  async (t) => {
    const { put, run, runs, itemsOfRuns } = controlled()
    const results = Promise.allSettled(['a', 'bad', 'c'].map((item) => put(item)))
    await calm()
    run(0).fail('the transaction was rolled back')
    await calm()
    for (let place = 1; place < runs.length; place++) {
      const { items } = run(place)
      if (items.includes('bad')) run(place).fail('it is bad')
      else run(place).answer()
      await calm()
    }
    t.same(itemsOfRuns(), [['a', 'bad', 'c'], ['a', 'bad'], ['a'], ['bad'], ['c']])
    t.match(await results, [
      { status: 'fulfilled', value: 'result of a' },
      { status: 'rejected', reason: { message: 'it is bad' } },
      { status: 'fulfilled', value: 'result of c' },
    ])
  },
)

t.test('an item settles when its own part of a failed run ends', async (t) => {
  const { put, run } = controlled()
  const first = put('a')
  const second = put('b')
  await calm()
  run(0).fail('the transaction was rolled back')
  await calm()
  run(1).answer()
  t.equal(await first, 'result of a', 'although the other part is in progress')
  await calm()
  run(2).answer()
  t.equal(await second, 'result of b')
})

t.test(
  'run with a time-out: the items of each owner run again, four owners at a time, and the blocked owner fails alone',
  async (t) => {
    for (const code of ['55P03', '57014']) {
      const { put, run, itemsOfRuns } = controlled()
      const items = ['locked', 'a', 'b', 'c', 'd']
      const results = Promise.allSettled(items.map((item) => put(item)))
      await calm()
      run(0).fail(Object.assign(new Error('canceling statement'), { code }))
      await calm()
      t.same(itemsOfRuns().slice(1), [['locked'], ['a'], ['b'], ['c']])
      for (const place of [2, 3, 4]) run(place).answer()
      await calm()
      t.same(itemsOfRuns().slice(5), [['d']], 'no item waits for the locked one')
      run(5).answer()
      run(1).fail(Object.assign(new Error('canceling statement'), { code }))
      t.match(await results, [
        { status: 'rejected', reason: { code } },
        ...items.slice(1).map((item) => ({ status: 'fulfilled', value: resultOf(item) })),
      ])
    }
  },
)

t.test('an item whose signal aborts between the parts of a failed run is in none', async (t) => {
  const { put, run, runs } = controlled()
  const ending = new AbortController()
  const first = put('a')
  const second = put('b', ending.signal)
  await calm()
  run(0).fail('the transaction was rolled back')
  await calm()
  ending.abort()
  await t.rejects(second, { name: 'Unreachable' })
  run(1).answer()
  t.equal(await first, resultOf('a'))
  await put.idle()
  t.equal(runs.length, 2)
})

t.test('a single item that fails is not run again', async (t) => {
  const { put, run, runs } = controlled()
  const result = put('a')
  await calm()
  run(0).fail('it is bad')
  await t.rejects(result, { message: 'it is bad' })
  await calm()
  t.equal(runs.length, 1)
})

t.test('a run with too few or too many results fails', async (t) => {
  const { put, run } = controlled()
  const alone = put('a')
  await calm()
  run(0).answer([])
  await t.rejects(alone, { message: '0 results for 1 item' })

  const both = Promise.allSettled([put('b'), put('c')])
  await calm()
  run(1).answer(['one', 'two', 'three'])
  await calm()
  run(2).answer()
  await calm()
  run(3).answer(['one', 'two'])
  t.match(await both, [
    { status: 'fulfilled', value: 'result of b' },
    { status: 'rejected', reason: { message: '2 results for 1 item' } },
  ])
})

t.test('a run that throws synchronously rejects its item and blocks no other run', async (t) => {
  let isBroken = true
  const put = createBatcher<string, string>(
    (items) => {
      if (isBroken) throw new Error('broken')
      return Promise.resolve(items.map(resultOf))
    },
    { maxWeight: 10 },
  )
  await t.rejects(put('a'), { message: 'broken' })
  isBroken = false
  t.equal(await put('b'), 'result of b')
  await put.idle()
})

t.test('a failed run does not stop the next one', async (t) => {
  const { put, run } = controlled()
  const first = put('a')
  await calm()
  const second = put('b')
  run(0).fail('it is bad')
  await t.rejects(first)
  await calm()
  run(1).answer()
  t.equal(await second, 'result of b')
})

t.test('a second run begins only beside one that takes more than 25 ms', async (t) => {
  const { put, run, itemsOfRuns } = controlled()
  const first = put('a')
  await calm()
  clock.now += 25
  const second = put('b')
  await calm()
  t.same(itemsOfRuns(), [['a']])
  clock.now += 1
  const third = put('c')
  await calm()
  t.same(itemsOfRuns(), [['a'], ['b', 'c']])
  run(1).answer()
  t.same(await Promise.all([second, third]), ['result of b', 'result of c'])
  run(0).answer()
  t.equal(await first, 'result of a')
})

t.test(
  'overlapWeight: a run begins beside another if it has that and three quarters of its weight',
  async (t) => {
    const { put, run, itemsOfRuns } = controlled({ maxWeight: 100, overlapWeight: 4 })
    const items = (name: string, count: number) =>
      Array.from({ length: count }, (_, n) => `${name}${n}`)
    const results = items('a', 3).map((item) => put(item))
    await calm()
    results.push(...items('b', 3).map((item) => put(item)))
    await calm()
    t.equal(itemsOfRuns().length, 1, 'too few for a run beside the first')
    results.push(put('b3'))
    await calm()
    t.same(itemsOfRuns(), [items('a', 3), items('b', 4)])
    run(0).answer()
    run(1).answer()
    await calm()
    results.push(...items('c', 8).map((item) => put(item)))
    await calm()
    results.push(...items('d', 5).map((item) => put(item)))
    await calm()
    t.equal(itemsOfRuns().length, 3, 'less than three quarters of the first')
    results.push(put('d5'))
    await calm()
    t.same(itemsOfRuns().slice(2), [items('c', 8), items('d', 6)])
    results.push(...items('e', 20).map((item) => put(item)))
    await calm()
    t.equal(itemsOfRuns().length, 4, 'never three at a time')
    run(2).answer()
    await calm()
    run(3).answer()
    run(4).answer()
    await Promise.all(results)
  },
)

t.test('overlapWeight: items of owners in a run in progress do not count', async (t) => {
  const { put, run, itemsOfRuns } = controlled({
    maxWeight: 100,
    overlapWeight: 2,
    fairness: { ownerOf: ([owner = '']) => owner, share: 50, maxSharedWeight: 100 },
  })
  const results = [put('a0')]
  await calm()
  results.push(put('a1'), put('a2'), put('b0'))
  await calm()
  t.equal(itemsOfRuns().length, 1)
  results.push(put('c0'))
  await calm()
  t.same(itemsOfRuns(), [['a0'], ['b0', 'c0']])
  run(1).answer()
  run(0).answer()
  await calm()
  run(2).answer()
  await Promise.all(results)
})

t.test('a second run begins 26 ms after the first, also without new items', async (t) => {
  const { put, run, itemsOfRuns } = controlled()
  const results = [put('a')]
  await calm()
  results.push(put('b'))
  await calm()
  await clock.pass(25)
  t.same(itemsOfRuns(), [['a']])
  await clock.pass(1)
  t.same(itemsOfRuns(), [['a'], ['b']])
  run(0).answer()
  run(1).answer()
  await Promise.all(results)
})

t.test('at most two runs are in progress', async (t) => {
  const { put, run, itemsOfRuns } = controlled()
  const results = [put('a')]
  await calm()
  for (const item of ['b', 'c', 'd']) {
    clock.now += 1000
    results.push(put(item))
    await calm()
  }
  t.same(itemsOfRuns(), [['a'], ['b']])
  run(1).answer()
  await calm()
  t.same(itemsOfRuns(), [['a'], ['b'], ['c', 'd']])
  run(0).answer()
  run(2).answer()
  await Promise.all(results)
})

t.test(
  'when the slower of two runs ends, the age of the other one decides about the next',
  async (t) => {
    const { put, run, itemsOfRuns } = controlled()
    const results = [put('a')]
    await calm()
    clock.now += 1000
    results.push(put('b'))
    await calm()
    results.push(put('c'))
    run(0).answer()
    await calm()
    t.same(itemsOfRuns(), [['a'], ['b']])
    clock.now += 26
    results.push(put('d'))
    await calm()
    t.same(itemsOfRuns(), [['a'], ['b'], ['c', 'd']])
    run(1).answer()
    run(2).answer()
    t.same(await Promise.all(results), ['a', 'b', 'c', 'd'].map(resultOf))
  },
)

t.test('idle(): settles at once if no run is in progress', async () => {
  const put = createBatcher<string, string>(async (items) => items, { maxWeight: 1 })
  await put.idle()
  await put('a')
  await put.idle()
})

t.test('idle(): settles after the last waiting item, also if its run fails', async (t) => {
  const { put, run, runs } = controlled({ maxWeight: 1 })
  let isIdle = false
  const results = Promise.allSettled([put('a'), put('b')])
  const idle = Promise.all([put.idle(), put.idle()]).then(() => {
    isIdle = true
  })
  await calm()
  t.equal(runs.length, 1)
  run(0).answer()
  await calm()
  t.notOk(isIdle)
  run(1).fail('it is bad')
  await idle
  t.match(await results, [{ status: 'fulfilled' }, { status: 'rejected' }])
})

/** Items are named by owner, number and weight: a1:10. */
const fair: BatcherOptions<string> = {
  maxWeight: 100,
  weigh: (item) => Number(item.split(':')[1] ?? 1),
  fairness: { ownerOf: (item) => item.charAt(0), share: 5, maxSharedWeight: 12 },
}

const numbered = (owner: string, count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `${owner}${from + n}`)

t.test('fairness: owners rotate, each with its share of a run', async (t) => {
  const { put, run, itemsOfRuns } = controlled(fair)
  const items = [...numbered('a', 20), 'b0', 'c0', 'b1']
  const results = Promise.all(items.map((item) => put(item)))
  await calm()
  t.same(itemsOfRuns(), [[...numbered('a', 5), 'b0', 'b1', 'c0']])
  results.catch(() => undefined)
  const late = put('d0')
  await calm()
  run(0).answer()
  await calm()
  t.same(itemsOfRuns()[1], [...numbered('a', 5, 5), 'd0'], 'who comes later waits for one run')
  for (const place of [1, 2, 3]) {
    run(place).answer()
    await calm()
  }
  await Promise.all([results, late])
  t.equal(itemsOfRuns().length, 4)
})

t.test('fairness: an owner whose item ran comes after all owners who wait', async (t) => {
  const { put, run, itemsOfRuns } = controlled({
    ...fair,
    fairness: { ownerOf: (item) => item.charAt(0), share: 2, maxSharedWeight: 4 },
  })
  const items = ['a', 'b', 'c'].flatMap((owner) => numbered(owner, 4))
  const results = Promise.all(items.map((item) => put(item)))
  for (const place of [0, 1, 2]) {
    await calm()
    run(place).answer()
  }
  await results
  t.same(itemsOfRuns(), [
    ['a0', 'a1', 'b0', 'b1'],
    ['c0', 'c1', 'a2', 'a3'],
    ['b2', 'b3', 'c2', 'c3'],
  ])
})

t.test('fairness: a heavy item runs without those of others, who do not wait for it', async (t) => {
  const { put, run, runs, itemsOfRuns } = controlled(fair)
  const heavy = put('a0:5000')
  await calm()
  const light = put('b0')
  await calm()
  t.same(itemsOfRuns(), [['a0:5000'], ['b0']])
  t.same(
    runs.map(({ isShared }) => isShared),
    [false, true],
  )
  run(1).answer()
  await light
  for (let n = 1; n <= 10; n++) {
    const next = put(`b${n}`)
    await calm()
    run(n + 1).answer()
    await next
  }
  run(0).answer()
  await heavy
})

/** Puts a light item, whose run ends at once: heavy runs do not overlap for a second. */
async function afterShared({ put, runs }: ReturnType<typeof controlled>) {
  const light = put('v0')
  await calm()
  runs[0]?.answer()
  await light
  runs.length = 0
}

t.test('fairness: heavy runs after a shared run go one at a time, and owners rotate', async (t) => {
  const controls = controlled(fair)
  await afterShared(controls)
  const { put, run, itemsOfRuns } = controls
  const items = ['a0:500', 'a1:500', 'b0:500', 'c0:60', 'c1:40', 'd0:100']
  const results = Promise.all(items.map((item) => put(item)))
  const expected = [['a0:500'], ['b0:500'], ['c0:60', 'c1:40'], ['d0:100'], ['a1:500']]
  for (const place of expected.keys()) {
    await calm()
    t.same(itemsOfRuns(), expected.slice(0, place + 1))
    run(place).answer()
  }
  await results
})

t.test('fairness: two heavy runs overlap once no shared run was there for 1 s', async (t) => {
  const controls = controlled(fair)
  await afterShared(controls)
  const { put, run, itemsOfRuns } = controls
  clock.now += 1001
  const results = [put('a0:90'), put('b0:90'), put('c0:90')]
  await calm()
  t.same(itemsOfRuns(), [['a0:90'], ['b0:90']])
  results.push(put('v1'))
  await calm()
  t.same(itemsOfRuns()[2], ['v1'], 'a shared run does not wait')
  run(0).answer()
  await calm()
  t.equal(itemsOfRuns().length, 3, 'beside a shared run the second lane is closed')
  run(1).answer()
  await calm()
  t.same(itemsOfRuns()[3], ['c0:90'])
  run(2).answer()
  run(3).answer()
  await Promise.all(results)
})

t.test('fairness: a second heavy run begins only beside one that takes over 1 s', async (t) => {
  const controls = controlled(fair)
  await afterShared(controls)
  const { put, run, itemsOfRuns } = controls
  const results = [put('a0:90'), put('b0:90')]
  await calm()
  clock.now += 1000
  results.push(put('c0:500'))
  await calm()
  t.same(itemsOfRuns(), [['a0:90']])
  clock.now += 1
  results.push(put('d0:90'))
  await calm()
  t.same(itemsOfRuns(), [['a0:90'], ['b0:90']])
  run(1).answer()
  await calm()
  t.equal(itemsOfRuns().length, 2, 'the owner whose turn it is keeps it until both fit')
  run(0).answer()
  await calm()
  run(2).answer()
  await calm()
  run(3).answer()
  await Promise.all(results)
  t.same(itemsOfRuns().slice(2), [['c0:500'], ['d0:90']])
})

t.test(
  'fairness: a heavy run beside slow shared runs is followed by a rest of four times its duration',
  async (t) => {
    const { put, run, itemsOfRuns } = controlled(fair)
    const results = [put('a0:90'), put('v0'), put('b0:90')]
    await calm()
    t.same(itemsOfRuns(), [['a0:90'], ['v0']])
    clock.now += 11
    run(1).answer()
    await calm()
    clock.now += 9
    run(0).answer()
    await calm()
    t.equal(itemsOfRuns().length, 2, 'the next heavy run does not follow at once')
    results.push(put('v1'))
    await calm()
    t.same(itemsOfRuns()[2], ['v1'], 'shared runs do not rest')
    clock.now += 10
    run(2).answer()
    await calm()
    await clock.pass(69)
    t.equal(itemsOfRuns().length, 3)
    await clock.pass(1)
    t.same(itemsOfRuns()[3], ['b0:90'])
    clock.now += 100
    results.push(put('c0:90'))
    run(3).answer()
    await calm()
    t.same(itemsOfRuns()[4], ['c0:90'], 'no rest after shared runs of 10 ms')
    run(4).answer()
    await Promise.all(results)
  },
)

t.test('fairness: a shared run that ended before a heavy one began causes no rest', async (t) => {
  const { put, run, itemsOfRuns } = controlled(fair)
  const slow = put('v0')
  await calm()
  clock.now += 100
  run(0).answer()
  await slow
  const results = [put('a0:90'), put('b0:90')]
  await calm()
  clock.now += 50
  run(1).answer()
  await calm()
  t.same(itemsOfRuns().slice(1), [['a0:90'], ['b0:90']])
  run(2).answer()
  await Promise.all(results)
})

t.test(
  'fairness: a second heavy run begins 1 s after the first, also without new items',
  async (t) => {
    const controls = controlled(fair)
    await afterShared(controls)
    const { put, run, itemsOfRuns } = controls
    const results = [put('a0:90'), put('b0:90')]
    await calm()
    await clock.pass(1000)
    t.same(itemsOfRuns(), [['a0:90']])
    await clock.pass(1)
    t.same(itemsOfRuns(), [['a0:90'], ['b0:90']])
    run(0).answer()
    run(1).answer()
    await Promise.all(results)
  },
)

t.test('fairness: heavy runs rest for 1 s at most', async (t) => {
  const { put, run, itemsOfRuns } = controlled(fair)
  const results = [put('a0:90'), put('v0')]
  await calm()
  clock.now += 8000
  run(1).answer()
  await calm()
  run(0).answer()
  results.push(put('b0:90'))
  await calm()
  await clock.pass(999)
  t.equal(itemsOfRuns().length, 2)
  await clock.pass(1)
  run(2).answer()
  await Promise.all(results)
})

t.test('fairness: a lock that times out fails the whole run of its owner at once', async (t) => {
  const { put, run, runs } = controlled(fair)
  const results = Promise.allSettled([put('a0:90'), put('a1:10')])
  await calm()
  run(0).fail(
    Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' }),
  )
  t.match(await results, [{ status: 'rejected' }, { status: 'rejected' }])
  t.equal(runs.length, 1)
})

t.test('fairness: an owner with a run in progress is in no other run', async (t) => {
  const { put, run, itemsOfRuns } = controlled(fair)
  const results = [put('a0:500'), put('a1')]
  await calm()
  results.push(put('b0'))
  await calm()
  t.same(itemsOfRuns(), [['a0:500'], ['b0']])
  clock.now += 26
  results.push(put('b1'), put('a2'), put('c0'))
  await calm()
  t.same(itemsOfRuns()[2], ['c0'], 'not even beside a run that takes long')
  run(0).answer()
  run(1).answer()
  await calm()
  run(2).answer()
  await calm()
  const rest = itemsOfRuns().slice(3)
  t.same(rest.flat().toSorted(), ['a1', 'a2', 'b1'])
  for (const place of rest.keys()) run(3 + place).answer()
  await calm()
  for (let place = 3 + rest.length; place < itemsOfRuns().length; place++) run(place).answer()
  await Promise.all(results)
})

t.test('fairness: an item that was left out waits, and runs alone after five times', async (t) => {
  const { put, run, runs, itemsOfRuns } = controlled(fair)
  const results = Promise.all([put('a0'), put('a1'), put('b0')])
  await calm()
  run(0).answer([LEFT_OUT, LEFT_OUT, 'result of b0'])
  await calm()
  await clock.pass(9)
  t.equal(runs.length, 1)
  await clock.pass(1)
  t.same(itemsOfRuns()[1], ['a0', 'a1'], 'in their order')
  run(1).answer([LEFT_OUT, 'result of a1'])
  for (const [place, waitMs] of [20, 40, 80, 160].entries()) {
    await calm()
    await clock.pass(waitMs - 1)
    t.equal(runs.length, place + 2)
    await clock.pass(1)
    if (place < 3) run(place + 2).answer([LEFT_OUT])
  }
  t.same(
    runs.slice(2).map(({ items, isShared }) => [items, isShared]),
    [
      [['a0'], true],
      [['a0'], true],
      [['a0'], true],
      [['a0'], false],
    ],
  )
  let isIdle = false
  void put.idle().then(() => {
    isIdle = true
  })
  await calm()
  t.notOk(isIdle)
  run(5).answer()
  t.same(await results, ['a0', 'a1', 'b0'].map(resultOf))
  await put.idle()
})

t.test('fairness: the wait of a left-out item does not depend on other items', async (t) => {
  const { put, run, itemsOfRuns } = controlled(fair)
  const results = [put('a0')]
  await calm()
  run(0).answer([LEFT_OUT])
  await calm()
  results.push(put('b0'))
  await clock.pass(10)
  t.same(itemsOfRuns().slice(1), [['b0', 'a0']])
  run(1).answer([LEFT_OUT, LEFT_OUT])
  await calm()
  await clock.pass(10)
  t.same(itemsOfRuns().slice(2), [['b0']], 'left out once')
  await clock.pass(10)
  t.same(itemsOfRuns().slice(3), [], 'one run at a time')
  run(2).answer()
  await calm()
  t.same(itemsOfRuns().slice(3), [['a0']], 'left out twice')
  run(3).answer()
  await Promise.all(results)
})

t.test('fairness: an item whose signal aborts after it was left out rejects at once', async (t) => {
  const { put, run, runs } = controlled(fair)
  const ending = new AbortController()
  const result = put('a0', ending.signal)
  await calm()
  run(0).answer([LEFT_OUT])
  await calm()
  ending.abort()
  await t.rejects(result, { name: 'Unreachable' })
  await clock.pass(10)
  await put.idle()
  t.equal(runs.length, 1)
})

t.test('fairness: every item gets its own result once, and no owner is in two runs', async () => {
  const step = fc.oneof(
    fc.record({ put: fc.constantFrom('a', 'b', 'c', 'd'), weight: fc.constantFrom(1, 3, 6, 300) }),
    fc.record({ answer: fc.nat(4), leavesOut: fc.boolean(), fails: fc.boolean() }),
    fc.record({ passes: fc.constantFrom(1, 30) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { put, runs } = controlled(fair)
      const results: Promise<string>[] = []
      const items: string[] = []
      const ended = new Set<Run>()
      const open = () => runs.filter((run) => !ended.has(run))
      const ownersOf = (run: Run) => new Set(run.items.map((item) => item.charAt(0)))
      const end = (run: Run, { leavesOut = false, fails = false } = {}) => {
        ended.add(run)
        // An item that fails alone is refused.
        if (fails && run.items.length > 1) run.fail('once')
        else if (leavesOut && run.isShared) run.answer(run.items.map(() => LEFT_OUT))
        else run.answer()
      }
      for (const one of steps) {
        if ('put' in one) {
          const item = `${one.put}${items.length}:${one.weight}`
          items.push(item)
          results.push(put(item))
        } else if ('passes' in one) {
          await clock.pass(one.passes)
        } else {
          const run = open()[one.answer % Math.max(1, open().length)]
          if (run) end(run, one)
        }
        await calm()
        for (const run of open()) {
          if (!run.isShared && ownersOf(run).size > 1) throw new Error('others share an own run')
          const weights = run.items.map((item) => Number(item.split(':')[1]))
          if (run.isShared && Math.max(...weights) > 5) throw new Error('a heavy item is shared')
        }
      }
      while (open().length > 0 || clock.timers.size > 0) {
        for (const run of open()) end(run)
        await calm()
        await clock.pass(1000)
      }
      await put.idle()
      const got = await Promise.all(results)
      if (got.join() !== items.map(resultOf).join()) throw new Error(`got ${got}`)
    }),
    { numRuns: 100 },
  )
})

t.test('an item whose signal aborts while it waits rejects at once and is in no run', async (t) => {
  for (const options of [
    { maxWeight: 100 },
    { maxWeight: 100, fairness: { ownerOf: () => 'one', share: 10, maxSharedWeight: 10 } },
  ]) {
    const { put, runs } = controlled(options)
    const ending = new AbortController()
    const first = put('first', ending.signal)
    await calm()
    const waiting = put('waiting', ending.signal)
    const other = put('other')
    const rejected = t.rejects(waiting, { name: 'Unreachable' })
    ending.abort()
    await rejected
    await t.rejects(put('late', ending.signal), { name: 'Unreachable' })
    runs[0]?.answer()
    t.equal(await first, resultOf('first'), 'an item that is in a run stays in it')
    await clock.pass(30)
    runs[1]?.answer()
    t.equal(await other, resultOf('other'))
    t.same(
      runs.map(({ items }) => items),
      [['first'], ['other']],
    )
    await put.idle()
  }
})

t.test('every item gets its own result once, in any order of events', async () => {
  // Each event: an item of some weight arrives, a run ends or fails, or time passes.
  const step = fc.oneof(
    fc.record({ put: fc.integer({ min: 1, max: 12 }) }),
    fc.record({ answer: fc.nat(3), fails: fc.boolean() }),
    fc.record({ passes: fc.constantFrom(1, 30) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { put, runs } = controlled({
        maxWeight: 10,
        weigh: (item) => Number(item.split(':')[1]),
      })
      const results: Promise<PromiseSettledResult<string>[]>[] = []
      const items: string[] = []
      const ended = new Set<Run>()
      const end = (run: Run, fails: boolean) => {
        ended.add(run)
        if (fails) run.fail(`not ${run.items}`)
        else run.answer()
      }
      const open = () => runs.filter((run) => !ended.has(run))
      for (const one of steps) {
        if ('put' in one) {
          const item = `${items.length}:${one.put}`
          items.push(item)
          results.push(Promise.allSettled([put(item)]))
        } else if ('passes' in one) {
          clock.now += one.passes
        } else {
          const run = open()[one.answer % Math.max(1, open().length)]
          if (run) end(run, one.fails)
        }
        await calm()
      }
      while (open().length > 0) {
        for (const run of open()) end(run, false)
        await calm()
      }
      await put.idle()
      const outcomes = (await Promise.all(results)).flat()
      outcomes.forEach((outcome, place) => {
        const item = String(items[place])
        const isOwn =
          outcome.status === 'fulfilled'
            ? outcome.value === resultOf(item)
            : outcome.reason.message === `not ${item}`
        if (!isOwn) throw new Error(`${item} got ${JSON.stringify(outcome)}`)
      })
      const weights = runs.map(({ items }) =>
        items.reduce((sum, item) => sum + Number(item.split(':')[1]), 0),
      )
      weights.forEach((weight, place) => {
        if (weight > 10 && runs[place]?.items.length !== 1) throw new Error('a run is too heavy')
      })
      const firsts = [...new Set(runs.flatMap(({ items }) => items))]
      if (firsts.join() !== items.join()) throw new Error('the order of arrival was not kept')
    }),
    { numRuns: 100 },
  )
})
