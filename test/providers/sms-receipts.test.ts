import fc from 'fast-check'
import t from 'tap'
import type { TakenPart } from '../../src/db/api.gen.ts'
import type { SmsReceipt } from '../../src/providers/sms.ts'
import { createDatabase, serviceCall, type Tx } from '../fixtures/database.ts'
import { anyJson, backlogOf, messageOf, sendSmsBatch, timelineOf } from '../fixtures/messages.ts'
import { createPayer, smsOf } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

// Only the API runs: the test is the worker and the network.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createPayer(sql, { included: 1_000_000 })
const call = serviceCall(url)

const PHONE = '+27821234567'
const STARTED_AT = Date.now()

const stock = new Map(
  await Promise.all(
    [1, 3].map(async (segments) => {
      const messages = Array.from({ length: 600 }, () => smsOf(segments, { to: PHONE }))
      return [segments, await sendSmsBatch(base, organisation, messages)] as const
    }),
  ),
)

/** A queued SMS of that many segments. */
function anSms(segments = 1): string {
  const id = stock.get(segments)?.pop()
  if (!id) throw new Error('the stock of messages is used up')
  return id
}

const uuidOf = async (id: string) => (await messageOf(sql, id)).id

let idsMade = 0
/** Network IDs of that many parts. */
function networkIds(count: number): string[] {
  return Array.from({ length: count }, () => {
    idsMade += 1
    return String(1_000_000 + idsMade)
  })
}

const start = async (id: string) => call('start_sms', { ids: [await uuidOf(id)] })

const resultOf = async (id: string, ids: string[], outcome: string, provider: string) => {
  const parts = ids.map((network_id, place): TakenPart => ({ part: place + 1, network_id }))
  return anyJson([{ id: await uuidOf(id), provider, outcome, parts }])
}

const finish = async (id: string, ids: string[], outcome = 'sent', provider = 'smsc') =>
  call('finish_messages', { results: await resultOf(id, ids, outcome, provider) })

const record = (receipts: SmsReceipt[]) =>
  call('record_sms_receipts', { receipts: anyJson(receipts) })

const receipt = (
  network_id: string,
  type: SmsReceipt['type'] = 'delivered',
  more: Partial<SmsReceipt> = {},
): SmsReceipt => ({
  provider: 'smsc',
  network_ids: [network_id],
  phone: PHONE,
  type,
  occurred_at: new Date(STARTED_AT).toISOString(),
  ...more,
})

/** An SMS that the network accepted, with the IDs of its parts. */
async function taken(segments = 1) {
  const id = anSms(segments)
  const ids = networkIds(segments)
  await start(id)
  await finish(id, ids)
  return { id, ids, first: ids[0] ?? '' }
}

const earlyReceipts = async () => (await sql`select from app.early_receipts`).length

/** Everything that receipts decide, without times that the database sets. */
async function stateOf(id: string) {
  const { status, deliveredAt, errorCode, errorMessage, sentAt } = await messageOf(sql, id)
  const timeline = (await timelineOf(sql, id)).map((event) =>
    ['queued', 'sent'].includes(event.type) ? event.type : event,
  )
  return { status, deliveredAt, errorCode, errorMessage, isSent: sentAt !== null, timeline }
}

/** The receipts of one SMS: at most one of each type for each part. */
const aHistory = fc.constantFrom(1, 3).chain((segments) =>
  fc
    .uniqueArray(
      fc.record({
        part: fc.integer({ min: 1, max: segments }),
        type: fc.constantFrom('delivered', 'deferred', 'failed', 'expired'),
        // Few values, so that some are equal; some before the message, because clocks differ.
        seconds: fc.constantFrom(-3600, 1, 2, 3),
        code: fc.constantFrom('DELIVRD', 'UNDELIV'),
        hasPhone: fc.boolean(),
        spelling: fc.constantFrom('decimal', 'hex', 'both'),
      }),
      {
        minLength: 1,
        maxLength: 7,
        selector: ({ part, type, code }) => `${part} ${type} ${type === 'deferred' ? code : ''}`,
      },
    )
    .chain((receipts) =>
      fc.record({
        segments: fc.constant(segments),
        receipts: fc.constant(receipts),
        arrivals: fc
          .shuffledSubarray([...receipts, ...receipts.slice(0, 3)], { minLength: 0 })
          .map((some) => [...some, ...receipts.filter((one) => !some.includes(one))]),
        cuts: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 12, maxLength: 12 }),
        /** The call before which the response is recorded. */
        finishBefore: fc.integer({ min: 0, max: 11 }),
      }),
    ),
)

const RANK = ['queued', 'sent', 'delivered', 'expired', 'failed']

t.test('record_sms_receipts: order and repetition do not change the result', async (t) => {
  await fc.assert(
    fc.asyncProperty(aHistory, async ({ segments, receipts, arrivals, cuts, finishBefore }) => {
      const [inOrder, shuffled] = [
        await taken(segments),
        { id: anSms(segments), ids: networkIds(segments) },
      ]
      const named = (some: typeof receipts, ids: string[]) =>
        some.map(({ part, type, seconds, code, hasPhone, spelling }) => {
          const decimal = ids[part - 1] ?? ''
          const hex = Number(decimal).toString(16)
          const network_ids =
            spelling === 'both'
              ? [hex, decimal]
              : spelling === 'hex'
                ? [`0${hex}`, decimal]
                : [decimal]
          const occurred_at = new Date(STARTED_AT + seconds * 1000).toISOString()
          const { phone, ...rest } = receipt(decimal, type as SmsReceipt['type'], {
            code,
            occurred_at,
            network_ids,
          })
          return hasPhone ? { ...rest, phone: PHONE } : rest
        })
      await record(named(receipts, inOrder.ids))

      await start(shuffled.id)
      const statuses = []
      let rest = named(arrivals, shuffled.ids)
      for (const [place, cut] of cuts.entries()) {
        if (place === finishBefore) await finish(shuffled.id, shuffled.ids)
        if (rest.length > 0) await record(rest.slice(0, cut))
        rest = rest.slice(cut)
        statuses.push((await messageOf(sql, shuffled.id)).status)
      }
      const expected = await stateOf(inOrder.id)
      const actual = await stateOf(shuffled.id)
      const places = statuses.map((status) => RANK.indexOf(status))
      if (places.some((place, step) => place < (places[step - 1] ?? 0))) {
        throw new Error(`went back: ${statuses.join(', ')}`)
      }
      if (JSON.stringify(actual) !== JSON.stringify(expected)) {
        throw new Error(`${JSON.stringify(actual)}\nis not\n${JSON.stringify(expected)}`)
      }
    }),
    { numRuns: 150 },
  )
  t.equal(await earlyReceipts(), 0, 'each found its part')
  const [queued] =
    await sql`select count(*)::integer as n from app.messages where status = 'queued'`
  t.equal(await backlogOf(sql, organisation), queued?.n, 'each attempt was counted once')
})

t.test('record_sms_receipts: an SMS is delivered with its last part', async (t) => {
  const { id, ids } = await taken(3)
  for (const [place, one] of ids.entries()) {
    t.equal((await messageOf(sql, id)).status, 'sent')
    const occurred_at = new Date(STARTED_AT + place * 1000).toISOString()
    await record([receipt(one, 'delivered', { occurred_at })])
    await record([receipt(one, 'delivered', { occurred_at })])
  }
  t.match(await messageOf(sql, id), {
    status: 'delivered',
    deliveredAt: new Date(STARTED_AT + 2000),
    errorCode: null,
  })
  t.match(await timelineOf(sql, id), [
    { type: 'queued' },
    { type: 'sent' },
    ...[1, 2, 3].map((part) => ({ type: 'delivered', detail: { part } })),
  ])
})

t.test('record_sms_receipts: an SMS fails or expires with its first part that does', async (t) => {
  for (const [type, errorCode] of [
    ['failed', 'network_rejected'],
    ['expired', 'expired'],
  ] as const) {
    const { id, ids } = await taken(3)
    await record([receipt(ids[0] ?? ''), receipt(ids[1] ?? '', type, { text: 'gone' })])
    const ended = await messageOf(sql, id)
    t.match(ended, { status: type, errorCode, errorMessage: 'gone', deliveredAt: null })
    await record([receipt(ids[2] ?? '')])
    t.same(await messageOf(sql, id), ended)
    const refunds = await sql`
      select from app.credit_ledger where kind = 'refund' and message_id = ${ended.id}`
    t.equal(refunds.length, 0, 'a sent SMS is not refunded')
  }
})

t.test('record_sms_receipts: a receipt finds its part by any spelling', async (t) => {
  const [one, other] = [anSms(), anSms()]
  for (const [id, networkId] of [
    [one, '16'],
    [other, '10'],
  ] as const) {
    await start(id)
    await finish(id, [networkId])
  }
  t.equal(await record([receipt('', 'delivered', { network_ids: ['f', '10', '16'] })]), 1)
  t.equal((await messageOf(sql, other)).status, 'delivered')
  t.equal((await messageOf(sql, one)).status, 'sent')
})

t.test('record_sms_receipts: the phone decides between parts with the same id', async (t) => {
  const [first, second] = [anSms(), anSms()]
  const [theirs = ''] = await sendSmsBatch(base, organisation, [{ to: '+27829999999' }])
  const [networkId = ''] = networkIds(1)
  for (const id of [first, second, theirs]) {
    await start(id)
    await finish(id, [networkId])
  }
  await record([receipt(networkId)])
  t.equal((await messageOf(sql, second)).status, 'delivered')
  const { phone, ...nameless } = receipt(networkId, 'expired')
  await record([nameless])
  t.equal((await messageOf(sql, theirs)).status, 'expired')
  t.equal((await messageOf(sql, first)).status, 'sent')
  await record([receipt(networkId, 'failed', { phone: '+27820000000' })])
  t.equal(await earlyReceipts(), 1, 'a receipt for another phone matches no part')
  await sql`delete from app.early_receipts`
})

t.test('record_sms_receipts: ids of one provider do not match parts of another', async (t) => {
  const { id, first } = await taken()
  await record([receipt(first, 'failed', { provider: 'another' })])
  t.equal((await messageOf(sql, id)).status, 'sent')
  t.equal(await earlyReceipts(), 1)
  await sql`delete from app.early_receipts`
})

t.test('record_sms_receipts: a repeated receipt is stored once', async (t) => {
  const { first } = await taken()
  t.equal(await record([receipt(first), receipt(first)]), 1)
  t.equal(await record([receipt(first)]), 0)
  const stored = await Promise.all(
    Array.from({ length: 8 }, () => record([receipt(first, 'failed')])),
  )
  t.equal(
    stored.reduce((sum, count) => sum + count, 0),
    1,
  )
  const deferred = (code: string) => record([receipt(first, 'deferred', { code })])
  t.same([await deferred('A'), await deferred('B'), await deferred('A')], [1, 1, 0])

  const [unknown = ''] = networkIds(1)
  t.equal(await record([receipt(unknown), receipt(unknown)]), 1)
  t.equal(await record([receipt(unknown)]), 0)
  await sql`delete from app.early_receipts`
})

t.test('record_sms_receipts: an early receipt is applied when its attempt ends', async (t) => {
  const before = await backlogOf(sql, organisation)
  const id = anSms(3)
  const ids = networkIds(3)
  await start(id)
  await record(ids.map((one) => receipt(one, 'delivered', { network_ids: ['0', one] })))
  t.equal((await messageOf(sql, id)).status, 'queued')
  await finish(id, ids)
  t.match(await messageOf(sql, id), { status: 'delivered', deliveredAt: new Date(STARTED_AT) })
  t.same(
    (await timelineOf(sql, id)).map(({ type }) => type),
    ['queued', 'sent', 'delivered', 'delivered', 'delivered'],
  )
  t.equal(await earlyReceipts(), 0)
  t.equal(await backlogOf(sql, organisation), before - 1)
})

t.test('record_sms_receipts: a failed part ends an SMS with parts not sent yet', async (t) => {
  const before = await backlogOf(sql, organisation)
  const id = anSms(3)
  const [first = ''] = networkIds(1)
  await start(id)
  await record([receipt(first, 'failed', { text: 'No such number.' })])
  await finish(id, [first], 'deferred')
  t.match(await messageOf(sql, id), { status: 'failed', errorCode: 'network_rejected' })
  t.same(await start(id), [], 'they are not sent')
  t.equal(await backlogOf(sql, organisation), before - 1)
})

t.test('record_sms_receipts: an unmatched receipt is deleted after a day', async (t) => {
  const [kept = '', old = ''] = networkIds(2)
  await record([receipt(kept), receipt(old)])
  await sql`
    update app.early_receipts set received_at = now() - interval '25 hours'
    where network_ids = ${[old]}`
  t.equal(await call('delete_old_early_receipts', {}), 1)
  t.match(await sql`select network_ids from app.early_receipts`, [{ networkIds: [kept] }])
  await sql`delete from app.early_receipts`
})

t.test('record_sms_receipts: a receipt during the end of its attempt is applied', async (t) => {
  const waitForLock = () =>
    until('the other transaction to wait', async () => {
      const [row] = await sql`
        select count(*)::integer as count from pg_locks l
        join pg_database d on d.oid = l.database and d.datname = current_database()
        where l.locktype = 'advisory' and not l.granted`
      return row?.count === 1
    })
  /** Runs the first call and keeps its transaction open until the second one waits for it. */
  const meet = async (one: (tx: Tx) => Promise<unknown>, other: () => Promise<unknown>) => {
    const { late } = await sql.begin(async (tx) => {
      await one(tx)
      const late = other()
      late.catch(() => undefined)
      await waitForLock()
      // In an object, because begin() waits for a promise that its function returns.
      return { late }
    })
    await late
  }

  t.test('the attempt ends first', async (t) => {
    const id = anSms()
    const ids = networkIds(1)
    await start(id)
    const results = await resultOf(id, ids, 'sent', 'smsc')
    await meet(
      (tx) => tx`select api.finish_messages(${results}::text::jsonb)`,
      () => record([receipt(ids[0] ?? '')]),
    )
    t.match(await messageOf(sql, id), { status: 'delivered' })
    t.equal(await earlyReceipts(), 0)
  })

  t.test('the receipt comes first', async (t) => {
    const id = anSms()
    const ids = networkIds(1)
    await start(id)
    const receipts = JSON.stringify([receipt(ids[0] ?? '')])
    await meet(
      (tx) => tx`select api.record_sms_receipts(${receipts}::text::jsonb)`,
      () => finish(id, ids),
    )
    t.match(await messageOf(sql, id), { status: 'delivered' })
    t.equal(await earlyReceipts(), 0)
  })

  t.test('many at the same time', async (t) => {
    const messages = Array.from({ length: 40 }, () => ({ id: anSms(3), ids: networkIds(3) }))
    await Promise.all(messages.map(({ id }) => start(id)))
    await Promise.all(
      messages.flatMap(({ id, ids }) => [
        record(ids.map((one) => receipt(one))),
        finish(id, ids),
        record(ids.toReversed().map((one) => receipt(one, 'deferred', { code: 'ENROUTE' }))),
      ]),
    )
    for (const { id } of messages) {
      t.equal((await messageOf(sql, id)).status, 'delivered')
      t.equal((await timelineOf(sql, id)).length, 2 + 6)
    }
    t.equal(await earlyReceipts(), 0)
  })
})
