import t from 'tap'
import type { Call } from '../../src/db/call.ts'
import { fairCall } from '../../src/db/fair-call.ts'
import { Refusal } from '../../src/errors.ts'

/** A fair call whose calls the test ends. */
function heldCalls(options: { atOnce: number; waiting: number }) {
  const begun: { of: string; end(): void }[] = []
  const inner = ((_name: string, args: { organisation_id?: string; id?: string }) =>
    new Promise((resolve) => {
      begun.push({
        of: `${args.organisation_id ?? ''} ${args.id ?? ''}`,
        end: () => resolve(undefined),
      })
    })) as unknown as Call
  const lineOf = (_name: string, args: object) =>
    (args as { organisation_id?: string }).organisation_id
  const call = fairCall(inner, { ...options, lineOf, subject: 'This organisation' })
  return {
    begun,
    get: (organisation_id: string, id: string) => call('get_domain', { organisation_id, id }),
    metrics: () => call('metrics', {}),
  }
}

t.test(
  'fairCall: an organisation has few calls at a time, and others do not wait for it',
  async (t) => {
    const { begun, get, metrics } = heldCalls({ atOnce: 2, waiting: 10 })
    const calls = ['1', '2', '3', '4'].map((id) => get('a', id))
    calls.push(get('b', '1'))
    void metrics()
    t.same(
      begun.map(({ of }) => of),
      ['a 1', 'a 2', 'b 1', ' '],
    )
    for (let n = 0; n < 6; n++) {
      begun[n]?.end()
      await new Promise(setImmediate)
    }
    await Promise.all(calls)
    t.same(
      begun.slice(4).map(({ of }) => of),
      ['a 3', 'a 4'],
      'in the order of their arrival',
    )
  },
)

t.test('fairCall: calls beyond those that may wait are refused with rate_limited', async (t) => {
  const { begun, get } = heldCalls({ atOnce: 1, waiting: 1 })
  const calls = [get('a', '1'), get('a', '2')]
  const refusal = await get('a', '3').catch((error) => error)
  t.type(refusal, Refusal)
  t.match(refusal, { code: 'rate_limited', retryAfter: 1, message: /has 1 request waiting/ })
  for (const n of [0, 1]) {
    begun[n]?.end()
    await calls[n]
  }
  const next = get('a', '4')
  t.equal(begun.length, 3, 'and pass again later')
  begun[2]?.end()
  await next
})
