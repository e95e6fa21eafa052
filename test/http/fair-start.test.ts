import type { Context } from 'koa'
import t from 'tap'
import { fairStart } from '../../src/http/fair-start.ts'

/** Sends requests at the same moment, and returns the order in which they start. */
function started(middleware: ReturnType<typeof fairStart>, requests: Request[]) {
  const order: string[] = []
  const send = ({ name, key = '', path = '/v1/usage', organisation }: Request) => {
    const ctx = { path, state: {}, get: () => key } as unknown as Context
    return middleware(ctx as never, async () => {
      order.push(name)
      ctx.state.admitted = organisation && { key, organisationId: organisation, mode: 'live' }
    })
  }
  return Promise.all(requests.map(send)).then(() => order)
}

/** `organisation`: the organisation of the request's key. */
type Request = { name: string; key?: string; path?: string; organisation?: string }

t.test('fairStart(): requests with admitted keys start round-robin by organisation', async (t) => {
  const middleware = fairStart()
  const a = { key: 'Bearer a', organisation: 'a' }
  const other = { key: 'bearer  a', organisation: 'a' }
  const b = { key: 'Bearer b', organisation: 'b' }
  const spellings = [a, other, b].map((one, n) => ({ ...one, name: `first ${n}` }))
  await started(middleware, spellings)
  const order = await started(middleware, [
    { name: 'a0', ...a },
    { name: 'a1', ...other },
    { name: 'a2', ...a },
    { name: 'b0', ...b },
  ])
  t.same(order, ['a0', 'b0', 'a1', 'a2'], 'whatever the spelling of the key')
})

t.test('fairStart(): forgets a key that the database does not know', async (t) => {
  const middleware = fairStart()
  const ask = async (admitted?: object | null) => {
    const ctx = { path: '/v1/usage', state: {}, get: () => 'Bearer a' } as unknown as Context
    await middleware(ctx as never, async () => {
      ctx.state.admitted = admitted
    })
    return ctx.state.known
  }
  const known = { key: 'hash', organisationId: 'a', mode: 'live' }
  t.equal(await ask(known), undefined)
  t.same(await ask(), known, 'remembered without another admission')
  t.same(await ask(null), known)
  t.equal(await ask(), undefined)
})

t.test('all requests with unknown keys share one place in the order', async (t) => {
  const middleware = fairStart()
  const a = { key: 'Bearer a', organisation: 'a' }
  await started(middleware, [{ name: 'first', ...a }])
  const order = await started(middleware, [
    ...[0, 1, 2].map((n) => ({ name: `invented ${n}`, key: `Bearer ${n}` })),
    { name: 'keyless' },
    { name: 'a0', ...a },
    { name: 'a1', ...a },
    { name: 'health', path: '/healthz' },
    { name: 'callback', path: '/providers/mailgun/events' },
  ])
  t.same(order, [
    ...['invented 0', 'a0', 'health', 'callback', 'invented 1', 'a1', 'invented 2', 'keyless'],
  ])
})
