import { hash } from 'node:crypto'
import type { Context } from 'koa'
import t from 'tap'
import type { Admission } from '../../src/db/api.gen.ts'
import type { Call } from '../../src/db/call.ts'
import { admission } from '../../src/http/admit.ts'

const clock = { now: 1000 }
t.intercept(performance, 'now', { value: () => clock.now })

const admitted: Admission = {
  n: 1,
  organisationId: 'o',
  mode: 'live',
  scopes: ['read'],
  state: 'active',
  limit: 100,
  remaining: 5,
  retryAfter: null,
  refusedForMs: null,
}

/** An admission with a stub of api.admit that records its calls. */
function controlled() {
  const calls: string[][] = []
  /** The key of each request whose connection closes. */
  const closed: string[] = []
  let response: Partial<Admission>[] = [{}]
  const call = (async (_name: string, { keys }: { keys: string[] }) => {
    calls.push(keys)
    return response.map((row) => ({ ...admitted, ...row }))
  }) as unknown as Call
  const waits: { ms: number; end(): void }[] = []
  const admit = admission(
    call,
    (ms) =>
      new Promise<void>((end) => {
        waits.push({ ms, end })
      }),
  )
  const send = (key = 'a', owner?: string) => {
    const headers: Record<string, string> = {}
    const ctx = {
      state: { owner },
      get: () => `Bearer sk_live_${key.repeat(32)}`,
      set: (name: string, value: string) => {
        headers[name] = value
        if (name === 'Connection') closed.push(key)
      },
    } as unknown as Context
    return admit(ctx, 'read').then(
      () => ['admitted', headers['x-ratelimit-remaining']],
      (error) => [error.code, headers['x-ratelimit-remaining'], error.retryAfter],
    )
  }
  return {
    admit,
    calls,
    closed,
    waits,
    send,
    respondWith: (...rows: Partial<Admission>[]) => {
      response = rows
    },
  }
}

const overLimit = { remaining: 0, retryAfter: 1, refusedForMs: 300 }

t.test('admit: a key over its limit makes no database call until the second ends', async (t) => {
  const { calls, send, respondWith } = controlled()
  respondWith(overLimit)
  for (let n = 0; n < 10; n++) {
    t.same(await send(), ['rate_limited', '0', 1])
    clock.now += 29
  }
  t.equal(calls.length, 1)
  respondWith({})
  clock.now += 10
  t.same(await send(), ['admitted', '5'])
  t.equal(calls.length, 2)
})

t.test(
  'admitKnown: a key over its limit is not admitted with its work until the second ends',
  async (t) => {
    const { admit, calls, send } = controlled()
    const key = hash('sha256', `sk_live_${'a'.repeat(32)}`)
    const known = { key, organisationId: 'o', mode: 'live' as const }
    const ctx = { state: { known }, set: () => undefined } as unknown as Context
    t.equal(admit.knownKeyOf(ctx), known)
    const refused = { ...admitted, ...overLimit }
    const asked = { isLost: false as const, askedAt: clock.now, admission: refused }
    t.throws(() => admit.admitKnown(ctx, 'read', known, { asked }), { code: 'rate_limited' })
    t.equal(admit.knownKeyOf(ctx), undefined)
    t.same(await send(), ['rate_limited', '0', 1])
    t.equal(calls.length, 0, 'the database was not asked')
    clock.now += 300
    t.equal(admit.knownKeyOf(ctx), known)
  },
)

t.test('admit: a key over its limit does not affect other keys', async (t) => {
  const { calls, send, respondWith } = controlled()
  respondWith(overLimit)
  t.same(await send('a'), ['rate_limited', '0', 1])
  respondWith({})
  t.same(await send('b'), ['admitted', '5'])
  t.equal(calls.length, 2)
})

t.test('admit: asks the database for each request whether the key is valid', async (t) => {
  const { calls, send, respondWith } = controlled()
  t.same(await send(), ['admitted', '5'])
  respondWith({ state: 'suspended' })
  t.match(await send(), ['org_suspended'])
  respondWith()
  t.match(await send(), ['unauthorized'])
  t.equal(calls.length, 3)
})

t.test(
  'admit: 20 requests over the limit are refused at once, further ones when the second ends',
  async (t) => {
    const { calls, waits, send, respondWith } = controlled()
    respondWith(overLimit)
    for (let n = 0; n <= 20; n++) t.same(await send(), ['rate_limited', '0', 1])
    t.equal(waits.length, 0)
    clock.now += 100
    const late = [send(), send()]
    t.equal(waits.length, 2)
    for (const { ms } of waits) t.ok(ms >= 200 && ms < 700)
    clock.now += 200
    for (const { end } of waits) end()
    for (const one of late) t.same(await one, ['rate_limited', '0', 1])
    t.equal(calls.length, 1)
    t.same(await send(), ['rate_limited', '0', 1])
    t.equal(calls.length, 2, 'the next second makes a database call')
  },
)

t.test(
  'admit: 100 requests over a limit wait, 1 000 of all keys; others are refused at once and their connections close',
  async (t) => {
    const { closed, waits, send, respondWith } = controlled()
    respondWith(overLimit)
    const keys = 'abcdefghijkl'.split('')
    const late: Promise<unknown>[] = []
    for (const key of keys) {
      for (let n = 0; n <= 20; n++) await send(key)
      for (let n = 0; n < 100; n++) late.push(send(key))
      t.same(await send(key), ['rate_limited', '0', 1])
    }
    t.equal(waits.length, 1000)
    t.same(new Set(closed.slice(0, 10)), new Set(keys.slice(0, 10)), 'one of each key')
    t.equal(closed.length, 10 + 2 * 101)
    for (const { end } of waits) end()
    await Promise.all(late)
    late.push(send('a'))
    t.equal(waits.length, 1001, 'places become free')
    waits.at(-1)?.end()
    await late.at(-1)
  },
)

t.test('admit: unknown keys share 50 places of a run and delay no other key', async (t) => {
  const { calls, send } = controlled()
  const invented = Array.from({ length: 100 }, (_, n) => send(`x${n}`))
  await Promise.all([...invented, send('a', 'o')])
  t.same(
    calls.map((keys) => keys.length),
    [51, 50],
  )
  t.ok(calls[0]?.includes(hash('sha256', `sk_live_${'a'.repeat(32)}`)))
})
