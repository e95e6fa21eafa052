import t from 'tap'
import type { Delivery } from '../../src/db/api.gen.ts'
import { createTurn } from '../../src/webhooks/lease.ts'

type Post = { id: string; end(isSuccess: boolean | null): void; fail(error: Error): void }

/** A turn over an endpoint with so many events due, in the hands of the test. */
function aTurn({ due = 0, isFailing = false, places = 8, mayFail = true } = {}) {
  const posts: Post[] = []
  const asked: { inHand: number; room: number }[] = []
  const stopping = new AbortController()
  let left = due
  let next = 0
  const state = { isFailing, onStart: async () => {} }
  const turn = createTurn({
    async start(inHand, room) {
      asked.push({ inHand: inHand.length, room })
      await state.onStart()
      const count = Math.min(left, state.isFailing ? 2 - inHand.length : room)
      left -= count
      return Array.from({ length: count }, () => {
        next += 1
        return { eventId: String(next), isFailing: state.isFailing } as Delivery
      })
    },
    deliver({ eventId }) {
      const { promise, resolve, reject } = Promise.withResolvers<boolean | null>()
      posts.push({ id: eventId, end: resolve, fail: reject })
      return promise
    },
    places: () => places,
    mayFail: () => mayFail,
    stopping: stopping.signal,
  })
  const add = (count: number) => {
    left += count
  }
  const stop = () => {
    stopping.abort()
    turn.wake()
  }
  return { turn, posts, asked, state, add, stop }
}

/** Settles once all that was ready to happen has happened. */
const quiet = () => new Promise((resolve) => setImmediate(resolve))

const ended = async (posts: Post[], isSuccess: boolean | null = true) => {
  for (const post of posts) post.end(isSuccess)
  await quiet()
}

let now = 0
t.intercept(performance, 'now', { value: () => now, configurable: true })

/** The clock that turns look at: it stands still until it is moved on. */
const clock = {
  pass(ms: number) {
    now += ms
  },
}

t.test('the window is filled again once a quarter of it is free', async (t) => {
  const { turn, posts, asked } = aTurn({ due: 11 })
  const end = turn.have()
  await quiet()
  t.equal(posts.length, 8)
  await ended(posts.slice(0, 1))
  t.same(asked, [{ inHand: 0, room: 8 }])
  await ended(posts.slice(1, 2))
  t.same(asked[1], { inHand: 6, room: 2 })
  t.equal(posts.length, 10)
  await ended(posts.slice(2, 9))
  t.equal(posts.length, 11)
  t.equal(asked.length, 3, 'which was less than asked for')
  await ended(posts.slice(9))
  t.same(asked[3], { inHand: 0, room: 8 }, 'it looks a last time with nothing in hand')
  t.equal(await end, 'idle')
})

t.test('what falls due meanwhile is taken when the turn is told', async (t) => {
  const { turn, posts, add, state } = aTurn({ due: 1 })
  const end = turn.have()
  await quiet()
  add(1)
  t.ok(turn.nudge())
  await quiet()
  t.equal(posts.length, 2)
  state.onStart = async () => {
    state.onStart = async () => add(1)
    t.ok(turn.nudge(), 'also during its last look')
  }
  await ended(posts)
  t.equal(posts.length, 3)
  state.onStart = async () => {}
  await ended(posts)
  t.equal(await end, 'idle')
  t.notOk(turn.nudge(), 'but not after it')
})

t.test('the last look is one with nothing in hand, also if that ends during a look', async (t) => {
  const { turn, posts, asked, state } = aTurn({ due: 1 })
  const end = turn.have()
  await quiet()
  state.onStart = () => ended(posts)
  turn.nudge()
  t.equal(await end, 'idle')
  t.same(
    asked.map(({ inHand }) => inHand),
    [0, 1, 0],
  )
})

t.test('another look is taken each second while a slow endpoint is waited for', async (t) => {
  const { turn, posts, asked, add } = aTurn({ due: 1 })
  const end = turn.have()
  await quiet()
  add(1)
  turn.wake()
  await quiet()
  t.equal(asked.length, 1)
  clock.pass(1001)
  turn.wake()
  await quiet()
  t.equal(posts.length, 2)
  await ended(posts)
  t.equal(await end, 'idle')
})

t.test('an endpoint that fails has one round', async (t) => {
  const { turn, posts, asked } = aTurn({ due: 5, isFailing: true })
  const end = turn.have()
  await quiet()
  t.equal(posts.length, 2)
  await ended(posts.slice(0, 1), false)
  turn.nudge()
  await quiet()
  t.equal(asked.length, 1)
  await ended(posts.slice(1), false)
  t.equal(await end, 'over')
  t.equal(asked.length, 1)
})

t.test('unless it succeeds in that', async (t) => {
  const { turn, posts, state } = aTurn({ due: 5, isFailing: true })
  const end = turn.have()
  await quiet()
  await ended(posts.slice(0, 1), false)
  await ended(posts.slice(1), true)
  t.equal(posts.length, 4)
  state.isFailing = false
  await ended(posts)
  t.equal(posts.length, 5)
  await ended(posts)
  t.equal(await end, 'idle')
})

t.test('where too many others fail, nothing is posted', async (t) => {
  const { turn, posts } = aTurn({ due: 5, isFailing: true, mayFail: false })
  t.equal(await turn.have(), 'crowded out')
  t.same(posts, [])
})

t.test('where nothing can be posted for a lack of ours, the rest is put off', async (t) => {
  for (const isFailing of [false, true]) {
    const { turn, posts, asked } = aTurn({ due: 20, isFailing })
    const end = turn.have()
    await quiet()
    await ended(posts.slice(0, 1), null)
    t.ok(turn.nudge())
    await ended(posts.slice(1))
    t.equal(await end, 'crowded out')
    t.equal(asked.length, 1)
  }
  const { turn, posts, stop } = aTurn({ due: 20 })
  const end = turn.have()
  await quiet()
  stop()
  await ended(posts, null)
  t.equal(await end, 'over', 'but a worker that stops leaves it to another at once')
})

t.test('an end in sight, what is in hand is waited for and nothing more is taken', async (t) => {
  for (const end of ['stop', 'time'] as const) {
    const { turn, posts, asked, stop } = aTurn({ due: 20 })
    let isOver = false
    const over = turn.have().then((how) => {
      isOver = true
      return how
    })
    await quiet()
    if (end === 'stop') stop()
    else clock.pass(5001)
    await ended(posts.slice(0, 7))
    t.notOk(isOver)
    t.ok(turn.nudge(), 'who gives the turn up sees what is left')
    await ended(posts.slice(7))
    t.equal(await over, 'over', end)
    t.equal(posts.length, 8)
    t.equal(asked.length, 1)
  }
})

t.test('what could not be recorded ends the turn once all else is', async (t) => {
  const { turn, posts } = aTurn({ due: 20 })
  const failure = t.rejects(turn.have(), { message: 'the database is gone' })
  await quiet()
  posts[3]?.fail(new Error('the database is gone'))
  await quiet()
  await ended(posts)
  await failure
  t.equal(posts.length, 8)
  t.notOk(turn.nudge())
})

t.test('so does a look that could not be taken', async (t) => {
  const { turn, posts, state } = aTurn({ due: 8 })
  const failure = t.rejects(turn.have(), { message: 'the database is gone' })
  await quiet()
  state.onStart = async () => {
    throw new Error('the database is gone')
  }
  turn.nudge()
  await ended(posts.slice(0, 7))
  await ended(posts)
  await failure
})
