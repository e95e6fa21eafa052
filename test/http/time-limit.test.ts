import t from 'tap'
import { Unreachable } from '../../src/db/connection-errors.ts'
import { createTimeLimit } from '../../src/http/time-limit.ts'

const UNKNOWN = { message: 'it is unknown whether a call took effect' }

const never = () => new Promise<never>(() => undefined)

t.test('timeLimit.wait(): settles with the result or error of the work', async (t) => {
  const timeLimit = createTimeLimit(60_000)
  t.equal(await timeLimit.wait(async () => 'result'), 'result')
  await t.rejects(
    timeLimit.wait(async () => {
      throw new Error('no')
    }),
    { message: 'no' },
  )
})

t.test(
  'timeLimit.wait(): work that does not end in time rejects with OutcomeUnknown',
  async (t) => {
    await t.rejects(createTimeLimit(1).wait(never), UNKNOWN)
  },
)

t.test(
  'timeLimit.wait(): work that its signal ends before it begins rejects with its own error',
  async (t) => {
    const work = (signal: AbortSignal) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(new Unreachable('not begun')))
      })
    await t.rejects(createTimeLimit(1).wait(work), { name: 'Unreachable' })
  },
)

t.test('timeLimit.wait(): all work of a request shares the limit', async (t) => {
  let now = 0
  t.intercept(performance, 'now', { value: () => now })
  const timeLimit = createTimeLimit(60_000)
  await timeLimit.wait(async () => {
    now = 60_000
  })
  await t.rejects(timeLimit.wait(never), UNKNOWN)
})
