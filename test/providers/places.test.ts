import t from 'tap'
import { createPlaces, NOT_STARTED } from '../../src/providers/places.ts'

const { signal } = new AbortController()
const settle = () => new Promise(setImmediate)

t.test('createPlaces(): attempts beyond the limit wait in order', async (t) => {
  const places = createPlaces(2)
  const begun: number[] = []
  for (let n = 0; n < 4; n += 1) void places.take(signal).then(() => begun.push(n))
  await settle()
  t.same(begun, [0, 1])
  t.notOk(places.hasRoom())
  places.leave()
  await settle()
  t.same(begun, [0, 1, 2])
})

t.test('createPlaces(): reports a free place that nothing waits for', async (t) => {
  const places = createPlaces(1)
  let reports = 0
  places.onFree(() => {
    t.ok(places.hasRoom())
    reports += 1
  })
  await places.take(signal)
  const second = places.take(signal)
  places.leave()
  await second
  t.equal(reports, 0)
  places.leave()
  t.equal(reports, 1)
})

t.test('createPlaces(): attempts that wait do not begin when the worker stops', async (t) => {
  const stopping = new AbortController()
  const places = createPlaces(1, stopping.signal)
  await places.take(signal)
  const waiting = t.rejects(places.take(signal), { message: NOT_STARTED })
  stopping.abort()
  await waiting
  await t.rejects(places.take(signal), { message: NOT_STARTED }, 'later ones neither')
  places.leave()
  await places.take(signal)
})

t.test(
  'createPlaces(): an attempt whose worker pool ended while it waited leaves its place',
  async (t) => {
    const places = createPlaces(1)
    const ended = new AbortController()
    await places.take(signal)
    const waiting = t.rejects(places.take(ended.signal), { message: NOT_STARTED })
    ended.abort()
    places.leave()
    await waiting
    t.ok(places.hasRoom())
  },
)
