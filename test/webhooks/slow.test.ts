import { randomUUID } from 'node:crypto'
import type { JobHelpers } from 'graphile-worker'
import t from 'tap'
import type { Call } from '../../src/db/call.ts'
import deliverWebhook from '../../tasks/deliver_webhook.ts'
import { VirtualTimer } from '../fixtures/smpp.ts'
import { until } from '../fixtures/time.ts'

/** A worker whose posts end when the test says so. */
function startWorker() {
  const time = new VirtualTimer()
  const due = new Set<string>()
  const open: (() => void)[] = []
  const released: { endpoint_id: string; pause_seconds: number }[] = []
  const call = async (name: string, args: { leases: typeof released }) => {
    if (name === 'release_leases') released.push(...args.leases)
    if (name !== 'start_deliveries') return []
    return args.leases
      .filter(({ endpoint_id: id }) => due.delete(id))
      .map(({ endpoint_id: endpointId }) => ({
        ...{ endpointId, eventId: randomUUID(), attempt: 1, startedAt: new Date() },
        ...{
          isFailing: false,
          url: 'https://acme.zone/',
          plainSecrets: [],
          sealedSecrets: ['s'],
          body: '{}',
        },
      }))
  }
  const post = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    open.push(resolve)
    return promise.then(() => ({ status: 200, error: null, response: '' }))
  }
  const task = deliverWebhook(call as unknown as Call, {
    poster: { post, close: async () => {} },
    openSecret: (sealed) => sealed,
    sealSecrets: async () => 0,
    time,
    stopping: new AbortController().signal,
  })
  const deliverTo = (endpoints: string[]) =>
    endpoints.map((endpoint) => {
      due.add(endpoint)
      const helpers = { abortSignal: new AbortController().signal, job: { id: endpoint } }
      return task({ endpoint }, helpers as unknown as JobHelpers)
    })
  const respond = () => {
    for (const resolve of open.splice(0)) resolve()
  }
  return { open, released, deliverTo, respond, time }
}

t.test('slow endpoints take at most 300 slots of a worker, and the rest is deferred', async (t) => {
  const { open, released, deliverTo, respond, time } = startWorker()
  const endpoints = Array.from({ length: 310 }, () => randomUUID())
  const posted = (count: number) => until(`${count} posts`, async () => open.length === count)

  const first = deliverTo(endpoints)
  await posted(310)
  await time.pass(3001)
  respond()
  await Promise.all(first)
  t.same(released, [], 'the first lease shows which ones are slow')

  const second = deliverTo(endpoints)
  await posted(300)
  await Promise.all(second.slice(300))
  t.same(
    released.map(({ endpoint_id, pause_seconds }) => [endpoint_id, pause_seconds]),
    endpoints.slice(300).map((endpoint) => [endpoint, 10]),
    'the rest waits 10 s',
  )
  const others = deliverTo(Array.from({ length: 50 }, () => randomUUID()))
  await posted(350)
  respond()
  await Promise.all([...second, ...others])

  const third = deliverTo(endpoints)
  await posted(310)
  respond()
  await Promise.all(third)
  t.equal(released.length, 10, 'after a lease with fast responses they are not slow any more')
})
