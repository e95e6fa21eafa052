import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import { anEmail, anSms, get, isRefused, post, request } from '../fixtures/http.ts'
import { freePort } from '../fixtures/network.ts'
import {
  createOrganisation,
  moneyOf,
  type TestOrganisation,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import { noPostgres } from '../fixtures/postgres.ts'
import { type ServiceProcess, spawnService } from '../fixtures/processes.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { until } from '../fixtures/time.ts'
import { isSuppressed, startCell, type TestCell, untilAll, untilSame } from './cells.ts'
import { noHaproxy, startRouter } from './router.ts'

const ORGANISATIONS = 50
/** Of each cell, at once. */
const CALLERS = 3

/** Between two requests of a caller: the machine has other work. */
const PAUSE_MS = 50

type RunningCell = TestCell & {
  /** The address of its API. */
  base: string
  organisations: TestOrganisation[]
  /** Starts its service at the same address. */
  start(): Promise<ServiceProcess>
}

async function startRunningCell(number: number): Promise<RunningCell & { port: number }> {
  const cell = await startCell(number)
  const port = await freePort()
  const organisations = []
  for (let n = 0; n < ORGANISATIONS; n += 1) organisations.push(await createOrganisation(cell.sql))
  const start = () => spawnService(cell.url, 'all', { PORT: `${port}` })
  return { ...cell, port, base: `http://127.0.0.1:${port}`, organisations, start }
}

/**
 * Steady callers of one cell, for its organisations in turn. They repeat a request with its Idempotency-Key until it is
 * accepted.
 */
function startCallers(t: Test, base: string, { organisations }: RunningCell) {
  const accepted: string[] = []
  const refusals: string[] = []
  let isOver = false
  t.teardown(() => {
    isOver = true
  })
  async function send({ liveKey, domain }: TestOrganisation) {
    const headers = { 'Idempotency-Key': randomUUID() }
    while (!isOver) {
      const answer = await post(`${base}/v1/emails`, liveKey, anEmail(domain), headers).catch(
        (error) => ({ status: 0, text: String(error), json: null }),
      )
      if (answer.status === 200) return accepted.push(answer.json.id)
      refusals.push(`${answer.status} ${answer.text}`)
      await pause(PAUSE_MS)
    }
  }
  let turn = 0
  async function call() {
    while (!isOver) {
      await send(organisations[turn++ % ORGANISATIONS] as TestOrganisation)
      await pause(PAUSE_MS)
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, call))
  return {
    accepted,
    refusals,
    /** Waits until this many more messages are accepted. */
    more(count: number) {
      const enough = accepted.length + count
      return until(`${count} accepts`, async () => accepted.length >= enough, 240_000)
    },
    async stop() {
      isOver = true
      await callers
    },
  }
}

/** Waits until all messages of a cell are delivered. Returns how many there are, and how many were sent twice. */
async function delivered({ sql }: TestCell) {
  await until(
    'all messages to be delivered',
    async () =>
      (await sql`select from app.messages where status <> 'delivered' limit 1`).length === 0,
    240_000,
  )
  const [row] = await sql`
    select (select count(*)::integer from app.messages) as messages,
      -- A message whose worker was killed during an attempt is attempted again.
      (select count(*)::integer from ${takenBySandbox(sql)} s join app.messages m on m.id = s.message_id
       where s.attempts > 1 and m.attempts < 2) as doubled`
  return row
}

/** How often applying the lists of the other cell failed; the loss of its server counts as well. */
const applyErrors = async ({ sql }: TestCell) => [
  ...(await sql`select errors from ops.cells where not is_this_cell`),
]

const failedChecks = async ({ sql }: TestCell) => [
  ...(await sql`select name from ops.checks where name like 'cell%' and not ok`),
]

t.test('two cells behind HAProxy', { skip: noPostgres || noHaproxy }, async (t) => {
  const first = await startRunningCell(1)
  const second = await startRunningCell(2)
  const pair = [first, second]
  const [ours, theirs] = [first, second].map((cell) => cell.organisations[0]) as [
    TestOrganisation,
    TestOrganisation,
  ]
  t.match(await first.run('join', second.url), { code: 0 })
  t.match(await second.run('join', first.url), { code: 0 })
  await first.start()
  let service = await second.start()
  const router = await startRouter([first.port, second.port])

  t.test(
    'one cell killed and back: the other has no error, each accept is sent once',
    async (t) => {
      const [callers, others] = [startCallers(t, router, first), startCallers(t, router, second)]
      await Promise.all([callers.more(ORGANISATIONS), others.more(ORGANISATIONS)])
      t.same(others.refusals, [])
      await Promise.all([service.end('SIGKILL'), second.server.kill()])
      await Promise.all([
        callers.more(2 * ORGANISATIONS),
        until('a refusal by the router', async () => others.refusals.length > 0),
      ])

      await second.server.restart()
      service = await second.start()
      await Promise.all([callers.more(ORGANISATIONS), others.more(ORGANISATIONS)])
      await Promise.all([callers.stop(), others.stop()])
      t.same(callers.refusals, [])
      for (const [cell, { accepted }] of [
        [first, callers],
        [second, others],
      ] as const) {
        t.same(await delivered(cell), { messages: accepted.length, doubled: 0 })
        const stored = await cell.sql<{ id: string }[]>`
        select core.encode_id('em', id) as id from app.messages`
        t.same(stored.map(({ id }) => id).sort(), [...accepted].sort())
      }
      await untilAll(pair, 'in step again', async (cell) => (await failedChecks(cell)).length === 0)
    },
  )

  t.test('keys and ids of the other cell: 401 and 404', async (t) => {
    for (const [cell, own, foreign] of [
      [first, ours, theirs],
      [second, theirs, ours],
    ] as const) {
      const { json } = await post(`${cell.base}/v1/emails`, own.liveKey, anEmail(own.domain))
      const there = cell === first ? second : first
      isRefused(t, await get(`${there.base}/v1/emails/${json.id}`, own.liveKey), 'unauthorized')
      for (const base of [there.base, router]) {
        isRefused(t, await get(`${base}/v1/emails/${json.id}`, foreign.liveKey), 'not_found')
      }
      t.equal((await get(`${router}/v1/emails/${json.id}`, own.liveKey)).status, 200)
      const test = await post(`${router}/v1/emails`, own.testKey, anEmail(own.domain))
      t.equal(test.status, 200, 'the router knows test keys')
    }
    isRefused(t, await get(`${router}/v1/emails`, null), 'unauthorized')
  })

  t.test('idempotency and ledger: each cell has its own', async (t) => {
    const headers = { 'Idempotency-Key': randomUUID() }
    const send = (organisation: TestOrganisation) =>
      post(`${router}/v1/sms`, organisation.liveKey, anSms(), headers)
    const [sent, again, elsewhere] = [await send(ours), await send(ours), await send(theirs)]
    t.same([sent.status, again.status, elsewhere.status], [200, 200, 200])
    t.equal(again.json.id, sent.json.id)
    t.not(elsewhere.json.id, sent.json.id)
    t.equal(elsewhere.headers.get('idempotent-replayed'), null)
    await post(`${router}/v1/sms`, theirs.liveKey, anSms())
    t.match(await moneyOf(first.sql, ours), { smsUsed: 1 })
    t.match(await moneyOf(second.sql, theirs), { smsUsed: 2 })
    for (const { sql } of pair) t.same(await unbalancedLedgers(sql), [])
  })

  t.test(
    'the same address bounces in both cells at once: suppressed without conflict',
    async (t) => {
      const to = 'bounce+both@sandbox.postgram.test'
      const errors = await Promise.all(pair.map(applyErrors))
      // Until both have bounced, neither knows of the other.
      await first.sql`alter subscription postgram_cell_2 disable`
      await second.sql`alter subscription postgram_cell_1 disable`
      for (const { liveKey, domain } of [ours, theirs]) {
        const { status } = await post(`${router}/v1/emails`, liveKey, anEmail(domain, { to }))
        t.equal(status, 200)
      }
      await untilAll(pair, 'suppressed', (cell) => isSuppressed(cell, to))
      await first.sql`alter subscription postgram_cell_2 enable`
      await second.sql`alter subscription postgram_cell_1 enable`
      await untilSame(pair)
      t.same(await Promise.all(pair.map(applyErrors)), errors)
      for (const { sql, organisations } of pair) {
        const rows = await sql`select cell from app.hard_bounces where email = ${to} order by cell`
        t.same([...rows], [{ cell: 1 }, { cell: 2 }])
        const { liveKey, domain } = organisations[1] as TestOrganisation
        const refused = await post(`${router}/v1/emails`, liveKey, anEmail(domain, { to }))
        t.match(refused, { status: 422, json: { error: { code: 'recipient_suppressed' } } })
      }
    },
  )

  t.test('a domain claimed in both cells: the earlier claim is verified', async (t) => {
    const add = ({ liveKey }: TestOrganisation) =>
      post(`${router}/v1/domains`, liveKey, { name: 'shared.example' })
    const verify = ({ liveKey }: TestOrganisation, id: string) =>
      request('POST', `${router}/v1/domains/${id}/verify`, liveKey)
    // Until both have claimed it, neither knows of the other.
    await second.sql`alter subscription postgram_cell_1 disable`
    const [earlier, later] = [await add(ours), await add(theirs)]
    t.same([earlier.status, later.status], [201, 201])
    await second.sql`alter subscription postgram_cell_1 enable`
    await untilSame(pair)
    isRefused(t, await verify(theirs, later.json.id), 'already_exists')
    t.match(await verify(ours, earlier.json.id), { status: 200, json: { status: 'verified' } })
    await untilSame(pair)
    isRefused(t, await add(second.organisations[1] as TestOrganisation), 'already_exists')
  })
})
