import { here, lineWith, load, memoryOf, start, startApi, stop } from './processes.ts'
import type { Bench, Channel } from './setup.ts'

const LIST = { emails: 'emails', sms: 'messages' } as const

/** The API alone: at ease, with all that it takes, and in batches. */
export async function benchAccept(bench: Bench, channel: Channel, seconds: number) {
  const senders = bench.senders[channel]
  const plan = { path: `/v1/${channel}`, senders, connections: 64, seconds }
  const api = await startApi(bench, ['--only', 'api'])
  // First, as the server still writes back what the flood left when that is over.
  const calm = await load({ ...plan, port: api.port, rate: 500 })
  const single = await load({ ...plan, port: api.port })
  const memory = await memoryOf(api.child)
  const inBatches = {
    ...plan,
    path: `/v1/${channel}/batch`,
    senders: batchesOf(bench, channel),
    port: api.port,
  }
  const batches = await load({ ...inBatches, connections: 2 })
  const batch = await load({ ...inBatches, connections: 1, seconds: Math.ceil(seconds / 2) })
  await stop(api.child)
  return { single, calm, batches, batch, memory }
}

/** A batch of 1 000 messages for each of some senders. */
export function batchesOf({ senders }: Bench, channel: Channel) {
  return senders[channel].slice(0, 20).map(({ key, body }) => ({
    key,
    body: JSON.stringify({
      [LIST[channel]]: Array.from({ length: 1000 }, () => JSON.parse(body)),
    }),
  }))
}

/** One transaction per send, each taking its own locks. */
export async function benchNaiveAccept(bench: Bench, seconds: number) {
  const api = start([here('naive-api.ts'), bench.url])
  const port = Number((await lineWith(api, 'port')).port)
  const senders = bench.senders.emails
  const answered = await load({
    path: '/v1/emails',
    senders,
    connections: 64,
    seconds,
    port,
  })
  await stop(api)
  return answered
}
