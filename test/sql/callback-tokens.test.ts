import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { anyJson, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { runTask, startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)

const NOW = Date.parse('2026-06-01T12:00:00Z')
const HOUR = 3600

/** Calls at a fixed time. */
const service = connect(url, {
  role: 'postgram_service',
  clock: { 'postgram.now': new Date(NOW).toISOString() },
})
t.teardown(() => service.end())
const call = caller(service)

type Callback = { token: string; signed_at?: number; receipt?: object | null }

const jsonOf = (callbacks: Callback[]) =>
  anyJson(
    callbacks.map((callback, n) => ({ n, signed_at: NOW / 1000, receipt: null, ...callback })),
  )
/** Returns the outcome of each. */
async function record(callbacks: Callback[]) {
  const [received] = await call('receive_callbacks', { callbacks: jsonOf(callbacks) })
  return received?.outcomes
}

async function aMessage() {
  const id = await send(base, organisation)
  const [row] = await sql<{ uuid: string }[]>`select core.decode_id('em', ${id}) as uuid`
  return { id, uuid: row?.uuid as string }
}

const aReceipt = (uuid: string, event: string) => ({
  message_id: uuid,
  provider_event_id: event,
  type: 'deferred',
  occurred_at: new Date(NOW).toISOString(),
  recipient: 'delivered@sandbox.postgram.test',
})

const eventsOf = async (id: string) =>
  (await timelineOf(sql, id)).filter(({ type }) => type === 'deferred').length

const tokensLike = async (pattern: string) =>
  (
    await sql<{ token: string }[]>`
    select token from app.callback_tokens where token like ${pattern} order by token`
  ).map(({ token }) => token)

t.test('receive_callbacks: returns one outcome for each callback in order', async (t) => {
  const { id, uuid } = await aMessage()
  const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()]
  t.same(
    await record([
      { token: c, receipt: aReceipt(uuid, 'one') },
      { token: a, receipt: aReceipt(uuid, 'two') },
      { token: b, signed_at: NOW / 1000 - 9 * HOUR, receipt: aReceipt(uuid, 'three') },
      { token: b },
    ]),
    ['recorded', 'recorded', 'stale', 'recorded'],
  )
  t.equal(await eventsOf(id), 2)
  t.same(await record([]), [], 'none for none')
})

t.test(
  'receive_callbacks: of several callbacks with one token only the first is recorded',
  async (t) => {
    const { id, uuid } = await aMessage()
    const token = randomUUID()
    t.same(
      await record([
        { token, receipt: aReceipt(uuid, 'one') },
        { token, receipt: aReceipt(uuid, 'one') },
        { token, receipt: aReceipt(uuid, 'two') },
        { token },
      ]),
      ['recorded', 'repeated', 'replayed', 'replayed'],
    )
    t.same(await record([{ token, receipt: aReceipt(uuid, 'two') }]), ['replayed'])
    t.same(await record([{ token, receipt: aReceipt(uuid, 'one') }]), ['repeated'])
    t.equal(await eventsOf(id), 1)
  },
)

t.test('receive_callbacks: the token of an ignored event cannot be reused', async (t) => {
  const { id, uuid } = await aMessage()
  const token = randomUUID()
  t.same(await record([{ token }, { token }]), ['recorded', 'repeated'])
  t.same(await record([{ token, receipt: aReceipt(uuid, 'one') }]), ['replayed'])
  t.equal(await eventsOf(id), 0)
})

t.test('receive_callbacks: accepts callbacks up to 8 hours old and 5 minutes ahead', async (t) => {
  const now = NOW / 1000
  const times = [now - 8 * HOUR - 1, now - 8 * HOUR, now, now + 300, now + 301]
  t.same(await record(times.map((signed_at) => ({ token: `time ${signed_at}`, signed_at }))), [
    'stale',
    'recorded',
    'recorded',
    'recorded',
    'stale',
  ])
  t.equal((await tokensLike('time %')).length, 3, 'the token of one that is not taken is not kept')
})

/** Runs two transactions with one token: the second waits until the first has committed or rolled back. */
async function race(t: Test, { token, end }: { token: string; end: 'commit' | 'rollback' }) {
  const [first, second] = [await aMessage(), await aMessage()]
  const of = (message: { uuid: string }, event: string) =>
    jsonOf([{ token, receipt: aReceipt(message.uuid, event) }])
  const holder = await service.reserve()
  try {
    await holder`begin`
    await holder`select api.receive_callbacks(${of(first, 'one')}::text::jsonb)`
    const waiting = call('receive_callbacks', { callbacks: of(second, 'two') })
    await untilLocked(sql)
    await holder.unsafe(end)
    const [answer] = await waiting
    t.equal(await eventsOf(first.id), end === 'commit' ? 1 : 0)
    t.equal(await eventsOf(second.id), end === 'commit' ? 0 : 1)
    return answer?.outcomes
  } finally {
    holder.release()
  }
}

t.test('receive_callbacks: the first of two transactions with one token counts', async (t) => {
  t.same(await race(t, { token: randomUUID(), end: 'commit' }), ['replayed'])
})

t.test('receive_callbacks: a rolled-back transaction releases its token', async (t) => {
  t.same(await race(t, { token: randomUUID(), end: 'rollback' }), ['recorded'])
})

t.test('receive_callbacks: concurrent calls with the same tokens do not deadlock', async (t) => {
  const { id, uuid } = await aMessage()
  const callbacks = Array.from({ length: 100 }, (_, place) => ({
    token: `many ${place}`,
    receipt: aReceipt(uuid, `event ${place}`),
  }))
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, caller) =>
      record(caller % 2 ? callbacks : callbacks.toReversed()),
    ),
  )
  t.equal(answers.flat().filter((answer) => answer === 'recorded').length, 100)
  t.equal(answers.flat().filter((answer) => answer === 'repeated').length, 700)
  t.equal(await eventsOf(id), 100)
})

t.test('delete_old_callbacks: deletes tokens that are refused for their age', async (t) => {
  await sql`truncate app.callback_tokens`
  const ages = { old: '9 hours 1 second', kept: '8 hours 59 minutes', new: '0 seconds' }
  for (const [token, age] of Object.entries(ages)) {
    await sql`
      insert into app.callback_tokens (token, signed_at)
      values (${token}, ${new Date(NOW)}::timestamptz - ${age}::interval)`
  }
  await sql`
    insert into app.callback_tokens (token, signed_at)
    select 'many ' || n, ${new Date(NOW)}::timestamptz - interval '1 day' from generate_series(1, 45000) n`
  t.equal(await runTask('delete-old-callbacks', { call }), 45_001)
  t.same(await tokensLike('%'), ['kept', 'new'])
  t.equal(await runTask('delete-old-callbacks', { call }), 0)
})
