import t from 'tap'
import { summarise } from '../../src/telemetry/summary.ts'

t.test('summarise(): reports the first of a kind at once and later ones together', async (t) => {
  const reports: [string, number][] = []
  const summary = summarise<string>((event, times) => reports.push([event, times]))
  summary.note('a', 'first')
  summary.note('a', 'second')
  summary.note('b', 'other')
  summary.note('a', 'third')
  t.strictSame(reports.splice(0), [
    ['first', 1],
    ['other', 1],
  ])
  summary.flush()
  t.strictSame(reports.splice(0), [['third', 2]])
  summary.note('a', 'fourth')
  summary.note('b', 'other again')
  t.strictSame(reports.splice(0), [['other again', 1]], 'b had a time without any')
  summary.flush()
  t.strictSame(reports, [['fourth', 1]])
})

t.test('summarise(): reports after a second', async (t) => {
  const { promise, resolve } = Promise.withResolvers<number>()
  const summary = summarise<string>((_, times) => times > 1 && resolve(times))
  for (let n = 0; n < 4; n++) summary.note('a', 'event')
  // The timer of a summary keeps no process alive.
  const awake = setInterval(() => undefined, 1000)
  t.equal(await promise, 3)
  clearInterval(awake)
})

t.test('summarise(): reports at the given interval', async (t) => {
  const { promise, resolve } = Promise.withResolvers<number>()
  const summary = summarise<string>((_, times) => times > 1 && resolve(times), 10)
  for (let n = 0; n < 4; n++) summary.note('a', 'event')
  const awake = setInterval(() => undefined, 1000)
  t.equal(await promise, 3)
  clearInterval(awake)
})
