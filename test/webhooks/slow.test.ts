import { randomUUID } from 'node:crypto'
import type { JobHelpers } from 'graphile-worker'
import t from 'tap'
import type { Call } from '../../src/db/call.ts'
import deliverWebhook from '../../tasks/deliver_webhook.ts'
import { until } from '../fixtures/until.ts'

/** A worker with a fake of its database calls; the test ends each of its posts. */
function aWorker() {
  const due = new Set<string>()
  const open: (() => void)[] = []
  const ended: { endpoint_id: string; pause_seconds: number }[] = []
  const call = async (name: string, args: { leases: typeof ended }) => {
    if (name === 'release_leases') ended.push(...args.leases)
    if (name !== 'start_deliveries') return []
    return args.leases
      .filter(({ endpoint_id: id }) => due.delete(id))
      .map(({ endpoint_id: endpointId }) => ({
        ...{ endpointId, eventId: randomUUID(), attempt: 1, startedAt: new Date() },
        ...{ isFailing: false, url: 'https://acme.zone/', secrets: ['s'], body: '{}' },
      }))
  }
  const post = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    open.push(resolve)
    return promise.then(() => ({ status: 200, error: null, answer: '' }))
  }
  const task = deliverWebhook(call as unknown as Call, {
    poster: { post, close: async () => {} },
    openSecret: async (sealed) => sealed,
    stopping: new AbortController().signal,
  })
  const haveTurns = (endpoints: string[]) =>
    endpoints.map((endpoint) => {
      due.add(endpoint)
      const helpers = { abortSignal: new AbortController().signal, job: { id: endpoint } }
      return task({ endpoint }, helpers as unknown as JobHelpers)
    })
  const answer = () => {
    for (const resolve of open.splice(0)) resolve()
  }
  return { open, ended, haveTurns, answer }
}

t.test('endpoints that answer slowly leave places to the others', async (t) => {
  let now = 0
  t.intercept(performance, 'now', { value: () => now, configurable: true })
  const { open, ended, haveTurns, answer } = aWorker()
  const endpoints = Array.from({ length: 310 }, () => randomUUID())
  const posted = (count: number) => until(`${count} posts`, async () => open.length === count)

  const first = haveTurns(endpoints)
  await posted(310)
  now += 3001
  answer()
  await Promise.all(first)
  t.same(ended, [], 'which is not known before')

  const second = haveTurns(endpoints)
  await posted(300)
  await Promise.all(second.slice(300))
  t.same(
    ended.map(({ endpoint_id, pause_seconds }) => [endpoint_id, pause_seconds]),
    endpoints.slice(300).map((endpoint) => [endpoint, 10]),
    'the rest is put off',
  )
  const others = haveTurns(Array.from({ length: 50 }, () => randomUUID()))
  await posted(350)
  answer()
  await Promise.all([...second, ...others])

  const third = haveTurns(endpoints)
  await posted(310)
  answer()
  await Promise.all(third)
  t.equal(ended.length, 10, 'a turn in which they answer fast and they are slow no more')
})
