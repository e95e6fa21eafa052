import { randomUUID } from 'node:crypto'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { connect, type Sql } from '../../src/db/client.ts'
import { createUnsubscribeLinks } from '../../src/marketing/unsubscribe-link.ts'
import { anEmail, anSms, get, post, request } from '../fixtures/http.ts'
import { freePort } from '../fixtures/network.ts'
import {
  createOrganisation,
  type TestOrganisation,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import {
  noPostgres,
  runPostgres,
  type Server,
  serverFolder,
  startServer,
} from '../fixtures/postgres.ts'
import { runCommand, spawnService } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'
import { createEndpoint, startReceiver } from '../fixtures/webhooks.ts'
import { DATABASE, isSuppressed, startCell, type TestCell, untilAll, untilSame } from './cells.ts'
import { noHaproxy, openRouter } from './router.ts'
import { startTraffic, type Traffic } from './traffic.ts'

const links = createUnsubscribeLinks({
  secrets: createSecrets([Buffer.alloc(32).toString('base64')]),
  publicUrl: 'https://postgram.test',
})

const folder = await serverFolder()

/** A standby of the whole server of a cell, which applies no lists of other cells. */
async function startStandbyOf({ server }: TestCell): Promise<Server> {
  const data = join(folder, 'standby')
  const flags = ['--no-sync', '-R', '-X', 'stream', '-c', 'fast']
  await runPostgres(
    'pg_basebackup',
    '-d',
    server.urlOf('postgres', 'postgres'),
    '-D',
    data,
    ...flags,
  )
  return startServer(data, ['max_logical_replication_workers = 0'])
}

/** A row for each message that the sandbox took, of the messages with these IDs. */
async function takesOf(sql: Sql, ids: string[]): Promise<number> {
  const [row] = await sql<{ takes: number }[]>`
    select count(*)::integer as takes
    from app.sandbox_batches b
    cross join unnest(b.message_ids) i (id)
    where i.id = any (${ids}::text[]::uuid[])`
  return row?.takes ?? 0
}

const messagesOf = async (sql: Sql, { id }: TestOrganisation) =>
  (
    await sql<{ id: string }[]>`
      select m.id from app.messages m where m.organisation_id = core.decode_id('org', ${id})`
  ).map((row) => row.id)

/** The command start, to its end. */
const startOf = ({ url }: TestCell) =>
  runCommand(['start'], { DATABASE_URL: url, SECRET_KEY: Buffer.alloc(32).toString('base64') })

const untilListsAreCopied = (cells: TestCell[]) =>
  untilAll(cells, 'the lists are copied', async ({ sql }) => {
    const left = await sql`select from pg_subscription_rel where srsubstate <> 'r' limit 1`
    return left.length === 0
  })

t.test('a cell under load is divided in two', { skip: noPostgres || noHaproxy }, async (t) => {
  const first = await startCell(1)
  const third = await startCell(3)
  t.match(await first.run('join', third.url), { code: 0 })
  t.match(await third.run('join', first.url), { code: 0 })
  const [port, newPort] = [await freePort(), await freePort()]
  const start = (cell: TestCell, at: number) =>
    spawnService(cell.url, 'all', { PORT: `${at}`, WEBHOOK_ALLOW_PRIVATE: 'true' })
  const service = await start(first, port)
  const stays = await createOrganisation(first.sql, { name: 'Stays' })
  const moves = await createOrganisation(first.sql, { name: 'Moves' })
  const receivers = [await startReceiver(), await startReceiver()]
  for (const [place, one] of [stays, moves].entries()) {
    await createEndpoint(first.sql, one, {
      url: receivers[place]?.url ?? '',
      types: ['email.delivered', 'sms.delivered'],
    })
    await first.sql`select ops.grant_credits(${one.id}, 10000, 'a test')`
  }
  await first.sql`select ops.suppress_globally('gone@acme.example', 'a test')`
  await third.sql`select ops.suppress_globally('gone@third.example', 'a test')`
  await first.sql`select ops.create_template('Moves', 'Welcome', 'Hello {{name}}', null, 'Hello {{name}}')`
  const base = `http://127.0.0.1:${port}`
  const newBase = `http://127.0.0.1:${newPort}`
  const router = await openRouter([port, newPort])

  const halves = new Map<TestOrganisation, TestCell>([
    [stays, first],
    [moves, first],
  ])
  const traffics = [stays, moves].map((organisation, place) =>
    startTraffic((work) => work((halves.get(organisation) as TestCell).sql), {
      base: router.base,
      organisation,
      receiver: receivers[place] as (typeof receivers)[0],
    }),
  ) as [Traffic, Traffic]
  const each = (work: (traffic: Traffic) => Promise<unknown>) => Promise.all(traffics.map(work))
  await each((traffic) => traffic.more(30))
  await each((traffic) => traffic.sendLate())
  const marketing = await post(
    `${router.base}/v1/emails`,
    moves.liveKey,
    anEmail(moves.domain, { class: 'marketing', to: 'delivered+reader@sandbox.postgram.test' }),
  )
  t.equal(marketing.status, 200)
  const sms = await post(`${router.base}/v1/sms`, moves.liveKey, anSms())
  t.equal(sms.status, 200)
  const headers = { 'Idempotency-Key': randomUUID() }
  const before = await post(
    `${router.base}/v1/emails`,
    moves.liveKey,
    anEmail(moves.domain),
    headers,
  )
  t.equal(before.status, 200)

  const standby = await startStandbyOf(first)
  const url = standby.urlOf('postgres', DATABASE)
  const sql = connect(url, { max: 2 })
  t.teardown(() => sql.end())
  const second: TestCell = {
    number: 2,
    server: standby,
    url,
    sql,
    run: (...args) => runCommand(args, { DATABASE_URL: url }),
  }
  await each((traffic) => traffic.more(30))

  const stoppedAt = performance.now()
  const seconds = () => ((performance.now() - stoppedAt) / 1000).toFixed(1)
  t.equal(await service.end('SIGTERM'), 0)
  t.comment(`stopped after ${seconds()} s`)
  await first.sql`select ops.begin_division(2, 'second', ${[moves.id]})`
  t.match(await startOf(first), { code: 1, stderr: /^The cell is being divided/ })
  await t.rejects(sql`select * from ops.divide(2)`, /is a standby; promote it first/)
  await until('the standby to have the division', async () => {
    const rows = await sql`select number from ops.division`
    return rows.length === 1
  })
  t.match([...(await sql`select * from ops.division`)], [{ number: 2, isCopy: null }])
  await sql`select pg_promote()`
  await until('the promotion', async () => {
    const [row] = await sql`select pg_is_in_recovery() as is_going_on`
    return row?.isGoingOn === false
  })
  t.match([...(await sql`select * from ops.division`)], [{ number: 2, isCopy: true }])
  t.match(await startOf(second), { code: 1, stderr: /^The cell is being divided/ })
  await t.rejects(first.sql`select * from ops.divide(1, 'x')`, /the proof is wrong/)
  const begun = performance.now()
  const [other] = await sql`select * from ops.divide(2)`
  const [old] = await first.sql`select * from ops.divide(1, ${other?.proofForOldCell})`
  t.comment(
    `both halves divided after ${seconds()} s, in ${Math.round(performance.now() - begun)} ms`,
  )
  t.match([other, old], [{ keptOrganisations: '1' }, { keptOrganisations: '1' }])
  t.same(
    [...(await sql`select from pg_subscription`), ...(await sql`select from pg_foreign_server`)],
    [],
    'the copy has no subscription and no reports over other cells',
  )

  const takes = [
    await takesOf(first.sql, await messagesOf(sql, moves)),
    await takesOf(sql, await messagesOf(first.sql, stays)),
  ]
  await appendFile(join(standby.data, 'postgresql.conf'), 'max_logical_replication_workers = 4\n')
  await runPostgres(
    'pg_ctl',
    'restart',
    '-w',
    '-m',
    'fast',
    '-D',
    standby.data,
    '-l',
    join(standby.data, 'log'),
  )
  for (const [one, another] of [
    [first, second],
    [second, first],
    [second, third],
    [third, second],
  ] as const) {
    t.match(await one.run('join', another.url), { code: 0 })
  }
  await untilListsAreCopied([first, second, third])
  for (const cell of [first, second, third]) {
    t.equal(await isSuppressed(cell, 'gone@acme.example'), true)
    t.equal(await isSuppressed(cell, 'gone@third.example'), true)
  }
  const lines = await sql<{ line: string }[]>`
    select format('%s %s', key, backend) as line from ops.key_map`
  await router.addToMap(lines.map(({ line }) => line))
  halves.set(moves, second)
  await Promise.all([start(first, port), start(second, newPort)])
  await each((traffic) => traffic.more(30))
  t.comment(
    `seconds without accepts: ${traffics.map((traffic) => traffic.longestGap(stoppedAt).toFixed(1)).join(' and ')}`,
  )

  await t.test('an Idempotency-Key used before is replayed by the right half', async (t) => {
    const again = await post(
      `${router.base}/v1/emails`,
      moves.liveKey,
      anEmail(moves.domain),
      headers,
    )
    t.equal(again.json.id, before.json.id)
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    t.equal((await get(`${base}/v1/emails/${before.json.id}`, moves.liveKey)).status, 401)
    t.equal((await get(`${newBase}/v1/emails/${before.json.id}`, moves.liveKey)).status, 200)
  })

  await t.test('what arrives at the wrong half reaches the right one', async (t) => {
    await until('the marketing and the SMS to be delivered', async () => {
      const answers = await Promise.all([
        get(`${newBase}/v1/emails/${marketing.json.id}`, moves.liveKey),
        get(`${newBase}/v1/sms/${sms.json.id}`, moves.liveKey),
      ])
      return answers.every(({ json }) => json.status === 'delivered')
    })
    const [email] = await sql<{ id: string; org: string }[]>`
      select m.id, m.organisation_id as org from app.messages m
      where m.id = core.decode_id('em', ${marketing.json.id})`
    const reader = 'delivered+reader@sandbox.postgram.test'
    const link = links.url({
      organisationId: email?.org ?? '',
      messageId: email?.id ?? '',
      email: reader,
    })
    const page = await request('POST', base + new URL(link).pathname, null)
    t.equal(page.status, 200)
    t.match(page.text, /Moves/)

    const complaint = {
      message_id: email?.id,
      provider_event_id: randomUUID(),
      type: 'complained',
      occurred_at: new Date().toISOString(),
      recipient: reader,
    }
    await first.sql`select api.finish_poll(${JSON.stringify([complaint])}::text::jsonb)`
    // As if its network had not reported yet.
    const [part] = await sql<{ id: string; networkId: string; phone: string; provider: string }[]>`
      with part as (
        select p.* from app.sms_parts p
        where p.message_id = core.decode_id('sm', ${sms.json.id})
      ),
      event as (
        delete from app.events e using part p where e.message_id = p.message_id and e.type = 'delivered'
      )
      update app.messages m
      set status = 'sent', delivered_at = null
      from part p
      where m.id = p.message_id
      returning m.id, p.network_id, p.phone, p.provider`
    const receipt = {
      provider: part?.provider,
      network_ids: [part?.networkId],
      phone: part?.phone,
      type: 'delivered',
      occurred_at: new Date().toISOString(),
    }
    await first.sql`select api.record_sms_receipts(${JSON.stringify([receipt])}::text::jsonb)`
    await until(
      'the other half to record them',
      async () => {
        const rows = await sql`
          select from app.messages m
          where m.id = ${email?.id ?? ''} and m.status = 'complained'
            and exists (select from app.messages s where s.id = ${part?.id ?? ''} and s.status = 'delivered')
            and exists (
              select from app.suppressions s
              where s.email = ${reader} and s.organisation_id = ${email?.org ?? ''}
                and 'unsubscribe' in (s.reason::text, s.other_reasons[1]::text))`
        return rows.length === 1
      },
      240_000,
    )
    t.same([...(await first.sql`select from app.suppressions where email = ${reader}`)], [])
  })

  await each((traffic) => traffic.stop())
  for (const [place, [one, half, wrong]] of (
    [
      [moves, second, first],
      [stays, first, second],
    ] as const
  ).entries()) {
    const { sent, stored, ambiguous, doubled } = await (
      traffics[one === moves ? 1 : 0] as Traffic
    ).counts()
    // Those that the test itself has sent.
    const more = one === moves ? 3 : 0
    t.same(
      { stored, ambiguous, doubled },
      { stored: sent + more, ambiguous: 0, doubled: 0 },
      `${sent} messages`,
    )
    t.equal(
      await takesOf(wrong.sql, await messagesOf(half.sql, one)),
      takes[place],
      'none sent by the other half',
    )
    t.same(await unbalancedLedgers(half.sql), [])
  }
  await until(
    'the purge',
    async () =>
      (
        await Promise.all(
          [first, second].map(
            (cell) => cell.sql`select from app.moved_organisations where purged_at is null`,
          ),
        )
      ).flat().length === 0,
    240_000,
  )
  t.same(await messagesOf(first.sql, moves), [])
  t.same(await messagesOf(sql, stays), [])
  await untilSame([first, second, third])
  t.match(
    [...(await sql`select cell, name from everywhere.organisations order by cell`)],
    [
      { cell: 1, name: 'Stays' },
      { cell: 2, name: 'Moves' },
    ],
  )
})
