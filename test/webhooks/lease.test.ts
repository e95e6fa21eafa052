import t from 'tap'
import type { Delivery } from '../../src/db/api.gen.ts'
import { createLease, type LastRecord } from '../../src/webhooks/lease.ts'
import { VirtualTimer } from '../fixtures/smpp.ts'

type Post = {
  id: string
  last: LastRecord
  end(isSuccess: boolean | null): void
  fail(error: Error): void
}

/** A lease of an endpoint with so many due events, whose posts end when the test says so. */
function leaseOf({ due = 0, isFailing = false, maxPosts = 8, mayFail = true } = {}) {
  const time = new VirtualTimer()
  const posts: Post[] = []
  const looks: { inProgress: number; room: number }[] = []
  const stopping = new AbortController()
  let left = due
  let next = 0
  const state = { isFailing, onStart: async () => {} }
  const lease = createLease({
    async start(inProgress, room) {
      looks.push({ inProgress: inProgress.length, room })
      await state.onStart()
      const count = Math.min(left, state.isFailing ? 2 - inProgress.length : room)
      left -= count
      return Array.from({ length: count }, () => {
        next += 1
        return { eventId: String(next), isFailing: state.isFailing } as Delivery
      })
    },
    deliver({ eventId }, last) {
      const { promise, resolve, reject } = Promise.withResolvers<boolean | null>()
      posts.push({ id: eventId, last, end: resolve, fail: reject })
      return promise
    },
    maxPosts: () => maxPosts,
    mayFail: () => mayFail,
    stopping: stopping.signal,
    time,
  })
  const add = (count: number) => {
    left += count
  }
  const stop = () => {
    stopping.abort()
    lease.wake()
  }
  return { lease, posts, looks, state, add, stop, time }
}

/** Resolves once all settled promises have run. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

const ended = async (posts: Post[], isSuccess: boolean | null = true) => {
  for (const post of posts) post.end(isSuccess)
  await settled()
}

t.test('run(): refills its window once a quarter of it is free', async (t) => {
  const { lease, posts, looks } = leaseOf({ due: 11 })
  const end = lease.run()
  await settled()
  t.equal(posts.length, 8)
  await ended(posts.slice(0, 1))
  t.same(looks, [{ inProgress: 0, room: 8 }])
  await ended(posts.slice(1, 2))
  t.same(looks[1], { inProgress: 6, room: 2 })
  t.equal(posts.length, 10)
  await ended(posts.slice(2, 9))
  t.equal(posts.length, 11)
  t.equal(looks.length, 3, 'the last look found less than it had room for')
  await ended(posts.slice(9))
  t.same(looks[3], { inProgress: 0, room: 8 }, 'the last look reports nothing in progress')
  t.equal(await end, 'released')
})

t.test('notify(): the lease takes what fell due meanwhile', async (t) => {
  const { lease, posts, add, state } = leaseOf({ due: 1 })
  const end = lease.run()
  await settled()
  add(1)
  t.ok(lease.notify())
  await settled()
  t.equal(posts.length, 2)
  state.onStart = async () => {
    state.onStart = async () => add(1)
    t.ok(lease.notify(), 'also during its last look')
  }
  await ended(posts)
  t.equal(posts.length, 3)
  state.onStart = async () => {}
  await ended(posts)
  t.equal(await end, 'released')
  t.notOk(lease.notify(), 'but not after it')
})

t.test(
  'run(): the last look reports nothing in progress, also when posts end during a look',
  async (t) => {
    const { lease, posts, looks, state } = leaseOf({ due: 1 })
    const end = lease.run()
    await settled()
    state.onStart = () => ended(posts)
    lease.notify()
    t.equal(await end, 'released')
    t.same(
      looks.map(({ inProgress }) => inProgress),
      [0, 1, 0],
    )
  },
)

t.test('run(): a lease that was released with its last record does not look again', async (t) => {
  const { lease, posts, looks } = leaseOf({ due: 3 })
  const end = lease.run()
  await settled()
  t.same(
    posts.map(({ last }) => last.mayRelease()),
    [false, false, true],
    'the last post that ends may release it',
  )
  posts.at(-1)?.last.onReleased()
  await ended(posts)
  t.equal(await end, 'released')
  t.equal(looks.length, 1)
  t.notOk(lease.notify(), 'what falls due later needs another lease')
})

t.test('run(): no record releases the lease while more may be due', async (t) => {
  const full = leaseOf({ due: 8 })
  const fullEnd = full.lease.run()
  await settled()
  t.notOk(
    full.posts.some(({ last }) => last.mayRelease()),
    'the last look found as much as it had room for',
  )
  await ended(full.posts)
  t.equal(await fullEnd, 'released')

  const notified = leaseOf({ due: 1 })
  const end = notified.lease.run()
  await settled()
  const [post] = notified.posts
  t.ok(post?.last.mayRelease())
  notified.add(1)
  t.ok(notified.lease.notify(), 'while the post is recorded')
  post?.last.onReleased()
  await ended(notified.posts)
  t.equal(notified.posts.length, 2)
  t.notOk(notified.looks.length < 2)
  await ended(notified.posts)
  t.equal(await end, 'released')
})

t.test(
  'run(): a release that is known late does not end a lease that was claimed again',
  async (t) => {
    const { lease, posts, looks, add } = leaseOf({ due: 1 })
    const end = lease.run()
    await settled()
    t.ok(posts[0]?.last.mayRelease())
    add(1)
    lease.notify()
    await settled()
    t.equal(posts.length, 2, 'another post began while the first one was recorded')
    posts[0]?.last.onReleased()
    await ended(posts)
    t.equal(await end, 'released')
    t.equal(looks.length, 3, 'by a look of its own')
  },
)

t.test(
  'run(): a look that finds nothing while the last post is recorded claims the lease again',
  async (t) => {
    const { lease, posts, looks } = leaseOf({ due: 1 })
    const end = lease.run()
    await settled()
    t.ok(posts[0]?.last.mayRelease())
    lease.notify()
    await settled()
    posts[0]?.last.onReleased()
    await ended(posts)
    t.equal(await end, 'released')
    t.same(
      looks.map(({ inProgress }) => inProgress),
      [0, 1, 0],
      'the last look releases it',
    )
  },
)

t.test('run(): no record releases the lease during a look', async (t) => {
  const { lease, posts, state } = leaseOf({ due: 1 })
  const end = lease.run()
  await settled()
  const look = Promise.withResolvers<void>()
  state.onStart = () => look.promise
  lease.notify()
  await settled()
  t.notOk(posts[0]?.last.mayRelease())
  state.onStart = async () => {}
  look.resolve()
  await settled()
  await ended(posts)
  t.equal(await end, 'released')
})

t.test('run(): looks each second while it waits for a slow endpoint', async (t) => {
  const { lease, posts, looks, add, time } = leaseOf({ due: 1 })
  const end = lease.run()
  await settled()
  add(1)
  lease.wake()
  await settled()
  t.equal(looks.length, 1)
  await time.pass(1001)
  lease.wake()
  await settled()
  t.equal(posts.length, 2)
  await ended(posts)
  t.equal(await end, 'released')
})

t.test('a failing endpoint gets one round', async (t) => {
  const { lease, posts, looks } = leaseOf({ due: 5, isFailing: true })
  const end = lease.run()
  await settled()
  t.equal(posts.length, 2)
  await ended(posts.slice(0, 1), false)
  lease.notify()
  await settled()
  t.equal(looks.length, 1)
  await ended(posts.slice(1), false)
  t.equal(await end, 'ended')
  t.equal(looks.length, 1)
})

t.test('a failing endpoint gets a further round after a success', async (t) => {
  const { lease, posts, state } = leaseOf({ due: 5, isFailing: true })
  const end = lease.run()
  await settled()
  await ended(posts.slice(0, 1), false)
  await ended(posts.slice(1), true)
  t.equal(posts.length, 4)
  state.isFailing = false
  await ended(posts)
  t.equal(posts.length, 5)
  await ended(posts)
  t.equal(await end, 'released')
})

t.test(
  'without a slot for failing endpoints the lease is deferred and nothing is posted',
  async (t) => {
    const { lease, posts } = leaseOf({ due: 5, isFailing: true, mayFail: false })
    t.equal(await lease.run(), 'deferred')
    t.same(posts, [])
  },
)

t.test('after a local failure the rest of the lease is deferred', async (t) => {
  for (const isFailing of [false, true]) {
    const { lease, posts, looks } = leaseOf({ due: 20, isFailing })
    const end = lease.run()
    await settled()
    await ended(posts.slice(0, 1), null)
    t.ok(lease.notify())
    await ended(posts.slice(1))
    t.equal(await end, 'deferred')
    t.equal(looks.length, 1)
  }
  const { lease, posts, stop } = leaseOf({ due: 20 })
  const end = lease.run()
  await settled()
  stop()
  await ended(posts, null)
  t.equal(await end, 'ended', 'but not when the worker stops')
})

t.test('a lease that ends waits for its posts and starts no more', async (t) => {
  for (const end of ['stop', 'time'] as const) {
    const { lease, posts, looks, stop, time } = leaseOf({ due: 20 })
    let isOver = false
    const over = lease.run().then((how) => {
      isOver = true
      return how
    })
    await settled()
    if (end === 'stop') stop()
    else await time.pass(5001)
    await ended(posts.slice(0, 7))
    t.notOk(isOver)
    t.ok(lease.notify(), 'the release finds what is left')
    await ended(posts.slice(7))
    t.equal(await over, 'ended', end)
    t.equal(posts.length, 8)
    t.equal(looks.length, 1)
  }
})

t.test('run(): throws when an attempt was not recorded, after the other posts', async (t) => {
  const { lease, posts } = leaseOf({ due: 20 })
  const failure = t.rejects(lease.run(), { message: 'the database is gone' })
  await settled()
  posts[3]?.fail(new Error('the database is gone'))
  await settled()
  await ended(posts)
  await failure
  t.equal(posts.length, 8)
  t.notOk(lease.notify())
})

t.test('run(): throws when a look fails, after the posts in progress', async (t) => {
  const { lease, posts, state } = leaseOf({ due: 8 })
  const failure = t.rejects(lease.run(), { message: 'the database is gone' })
  await settled()
  state.onStart = async () => {
    throw new Error('the database is gone')
  }
  lease.notify()
  await ended(posts.slice(0, 7))
  await ended(posts)
  await failure
})
