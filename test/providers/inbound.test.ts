import { pino } from 'pino'
import t from 'tap'
import type { SmsReceipt } from '../../src/providers/sms.ts'
import { createSmsListener } from '../../src/providers/sms-listener.ts'
import { segmentsOf } from '../../src/sms/segments.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { get } from '../fixtures/http.ts'
import { anyJson, backlogOf, jobsOf, messageOf, sendSms, timelineOf } from '../fixtures/messages.ts'
import { createPayer, type TestOrganisation } from '../fixtures/organisation.ts'
import { createSmsStandIn } from '../fixtures/providers.ts'
import { anSmsWorker, startTestService } from '../fixtures/service.ts'

// Only the API runs: the test is the worker and the network.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const call = serviceCall(url)
const worker = anSmsWorker(sql, call, createSmsStandIn())

let numbersMade = 0
const aNumber = () => {
  numbersMade += 1
  return `+2782${String(1_000_000 + numbersMade)}`
}

type Keyword = { from: string; to: string; keyword?: string; word?: string; received_at?: string }

/** Records keywords in one call; returns how many changed something. */
const say = async (...messages: Keyword[]) => {
  const outcomes = await call('record_keywords', {
    messages: anyJson(
      messages.map(({ keyword = 'stop', word = keyword.toUpperCase(), ...rest }) => ({
        provider: 'smsc',
        received_at: new Date().toISOString(),
        ...rest,
        keyword,
        word,
      })),
    ),
  })
  return outcomes.filter((outcome) => outcome === 'changed').length
}

/** An organisation with its own number. */
async function withNumber() {
  const organisation = await createPayer(sql, { included: 1000 })
  const number = aNumber()
  await approve(organisation, number)
  return { organisation, number }
}

const approve = ({ id }: TestOrganisation, sender: string) =>
  sql`select ops.approve_sender(${id}, ${sender})`

/** An SMS after its attempt. */
async function sent(organisation: TestOrganisation, overrides: Record<string, unknown>) {
  const id = await sendSms(base, organisation, overrides)
  await worker.attemptSend(id)
  return id
}

const consent = ({ id }: TestOrganisation, phone: string) =>
  sql`select ops.record_consent(${id}, ${phone}, 'a form')`

async function optOutOf({ id }: TestOrganisation, phone: string) {
  const [row] = await sql<{ optedOutAt: Date | null; optedOutBy: string | null; source: string }[]>`
    select opted_out_at, opted_out_by, source from app.consents
    where organisation_id = core.decode_id('org', ${id}) and phone = ${phone}`
  return row && { ...row }
}

const confirmationsTo = (phone: string) => sql<
  { id: string; uuid: string; organisation: string; from: string; body: string }[]
>`
  select core.encode_id('sm', m.id) as id, m.from_address as "from", b.text as body,
    core.encode_id('org', m.organisation_id) as organisation, m.credits, m.segments, m.class, m.mode, m.status,
    m.is_sandbox
  from app.messages m join app.bodies b on b.message_id = m.id
  where m.to_address = ${phone} and 'opt-out-confirmation' = any (m.tags)`

const optOutsIn = async (id: string) =>
  (await timelineOf(sql, id)).filter(({ type }) => type === 'opted_out')

t.test("STOP to the organisation's number opts out and is confirmed once", async (t) => {
  const { organisation, number } = await withNumber()
  const phone = aNumber()
  await consent(organisation, phone)
  await sent(organisation, { to: phone, senderId: number })
  const last = await sent(organisation, { to: phone })
  await sendSms(base, organisation, { to: aNumber() })
  const before = await backlogOf(sql, organisation)
  const ledgerOf = () => sql`select count(*), sum(credits), sum(included) from app.credit_ledger`
  const ledgerBefore = await ledgerOf()

  const received_at = '2026-03-01T10:00:00.000Z'
  t.equal(await say({ from: phone, to: number, word: 'STOP ALL', received_at }), 1)
  t.same(await optOutOf(organisation, phone), {
    optedOutAt: new Date(received_at),
    optedOutBy: 'STOP ALL',
    source: 'a form',
  })
  t.match(await optOutsIn(last), [{ occurredAt: received_at, detail: { word: 'STOP ALL' } }])
  t.match(await messageOf(sql, last), { status: 'sent', errorCode: null })

  const [confirmation, ...more] = await confirmationsTo(phone)
  t.same(more, [])
  t.match(confirmation, {
    organisation: organisation.id,
    from: number,
    credits: 0,
    segments: 1,
    class: 'transactional',
    mode: 'live',
    status: 'queued',
    isSandbox: false,
  })
  const { encoding, parts } = segmentsOf(confirmation?.body ?? '')
  t.same([encoding, parts.length], ['gsm7', 1])
  t.same(await ledgerOf(), ledgerBefore, 'it costs nothing')
  t.equal(await backlogOf(sql, organisation), before + 1)
  t.equal((await jobsOf(sql, confirmation?.id ?? '')).length, 1)
  await worker.attemptSend(confirmation?.id ?? '')
  const { json } = await get(`${base}/v1/sms/${confirmation?.id}`, organisation.liveKey)
  t.match(json, { status: 'sent', from: number, to: phone, credits: 0 })
  t.equal(await backlogOf(sql, organisation), before)

  for (const word of ['STOP', 'END']) {
    t.equal(await say({ from: phone, to: number, word }, { from: phone, to: number, word }), 0)
  }
  t.match(await optOutOf(organisation, phone), { optedOutBy: 'STOP ALL' })
  t.equal((await optOutsIn(last)).length, 1)
  t.equal((await confirmationsTo(phone)).length, 1)
  t.same(await sql`select from app.suppressions`, [], 'email suppressions do not change')
})

t.test('STOP sent several times at once is recorded once for each phone', async (t) => {
  const { organisation, number } = await withNumber()
  const phones = Array.from({ length: 5 }, aNumber)
  const ids = await Promise.all(phones.map((to) => sent(organisation, { to, senderId: number })))
  const changed = await Promise.all(
    Array.from({ length: 8 }, (_, place) => {
      const messages = phones.map((from) => ({ from, to: number }))
      return say(...(place % 2 ? messages : messages.toReversed()))
    }),
  )
  t.equal(
    changed.reduce((sum, count) => sum + count, 0),
    phones.length,
  )
  for (const [place, phone] of phones.entries()) {
    t.equal((await confirmationsTo(phone)).length, 1)
    t.equal((await optOutsIn(ids[place] ?? '')).length, 1)
  }
})

t.test('STOP from a phone without messages is recorded and confirmed', async (t) => {
  const { organisation, number } = await withNumber()
  const phone = aNumber()
  t.equal(await say({ from: phone, to: number }), 1)
  t.match(await optOutOf(organisation, phone), { optedOutBy: 'STOP', source: null })
  t.equal((await confirmationsTo(phone)).length, 1)
})

t.test('STOP to the shared sender opts out of its last organisation', async (t) => {
  const shared = aNumber()
  await sql`select ops.set_shared_sender(${shared})`
  const [first, last] = [
    await createPayer(sql, { included: 1000 }),
    await createPayer(sql, { included: 1000 }),
  ]
  const { organisation: other, number } = await withNumber()
  const phone = aNumber()
  await sent(first, { to: phone })
  const id = await sent(last, { to: phone })
  await sent(other, { to: phone, senderId: number })
  // None of these reached the phone.
  await sendSms(base, first, { to: phone })
  await sendSms(base, { ...first, liveKey: first.testKey }, { to: phone })
  t.equal(await say({ from: phone, to: shared }), 1)
  t.match(await optOutOf(last, phone), { optedOutBy: 'STOP' })
  t.same([await optOutOf(first, phone), await optOutOf(other, phone)], [undefined, undefined])
  t.equal((await optOutsIn(id)).length, 1)
  t.match(await confirmationsTo(phone), [{ organisation: last.id, from: shared }])
  await sql`select ops.set_shared_sender('Postgram')`
})

t.test('STOP to an alphanumeric sender ID is recorded and not confirmed', async (t) => {
  const organisation = await createPayer(sql, { included: 1000 })
  await approve(organisation, 'Acme')
  const phone = aNumber()
  await sent(organisation, { to: phone, senderId: 'Acme' })
  t.equal(await say({ from: phone, to: 'Acme' }), 1)
  t.match(await optOutOf(organisation, phone), { optedOutBy: 'STOP' })
  t.same(await confirmationsTo(phone), [])
})

t.test('STOP to a number of the network opts out of the last sender by name', async (t) => {
  const { organisation: numbered, number } = await withNumber()
  const organisation = await createPayer(sql, { included: 1000 })
  const phone = aNumber()
  await sent(organisation, { to: phone })
  await sent(numbered, { to: phone, senderId: number })
  t.equal(await say({ from: phone, to: '12345' }), 1)
  t.match(await optOutOf(organisation, phone), { optedOutBy: 'STOP' })
  t.same(await confirmationsTo(phone), [], 'Postgram cannot send from a number of the network')
  t.equal(await say({ from: phone, to: 'Postgram' }), 0)
})

t.test('STOP matches an SMS of the last 90 days only', async (t) => {
  const organisation = await createPayer(sql, { included: 1000 })
  // Partitions of earlier months do not exist by default.
  await sql.begin(async (tx) => {
    await tx`select set_config('postgram.shift', '-90 days', true)`
    await tx`select api.make_partitions()`
  })
  for (const [age, changed] of [
    ['90 days 1 minute', 0],
    ['89 days 23 hours', 1],
  ] as const) {
    const phone = aNumber()
    const id = await sent(organisation, { to: phone })
    await sql`
      update app.messages set id = core.new_id(now() - ${age}::interval)
      where id = core.decode_id('sm', ${id})`
    t.equal(await say({ from: phone, to: 'Postgram' }), changed)
  }
})

t.test('STOP from an invalid number or to an unknown sender changes nothing', async (t) => {
  const { number } = await withNumber()
  t.equal(await say({ from: aNumber(), to: 'Postgram' }), 0, 'the phone never got an SMS')
  for (const from of ['12345', 'Acme', '', '+0123456789', "'; drop table"]) {
    t.equal(await say({ from, to: number }), 0, `from ${from}`)
  }
  t.equal(await say(), 0)
})

t.test('START restores an earlier consent and gives none to others', async (t) => {
  const { organisation, number } = await withNumber()
  const [agreed, never] = [aNumber(), aNumber()]
  await consent(organisation, agreed)
  const start = (from: string) => say({ from, to: number, keyword: 'start' })
  t.equal(await start(agreed), 0, 'there is no opt-out to restore')
  await say({ from: agreed, to: number }, { from: never, to: number })
  t.equal(await start(agreed), 1)
  t.same(await optOutOf(organisation, agreed), {
    optedOutAt: null,
    optedOutBy: null,
    source: 'a form',
  })
  t.equal(await start(agreed), 0)
  t.equal(await start(never), 0)
  t.match(await optOutOf(organisation, never), { optedOutBy: 'STOP' })
  t.equal(await start(aNumber()), 0)

  t.equal(await say({ from: agreed, to: number }), 1, 'and can opt out again')
  t.equal((await confirmationsTo(agreed)).length, 2)
})

t.test('keywords of one call apply in their order', async (t) => {
  const { organisation, number } = await withNumber()
  const phone = aNumber()
  await consent(organisation, phone)
  const [stop, start] = ['stop', 'start'].map((keyword) => ({ from: phone, to: number, keyword }))
  if (!stop || !start) throw new Error('no keywords')
  t.equal(await say(stop, start), 2)
  t.match(await optOutOf(organisation, phone), { optedOutAt: null })
  t.equal(await say(start, stop, stop), 1)
  t.match(await optOutOf(organisation, phone), { optedOutBy: 'STOP' })
})

t.test('STOP to a sandbox message is confirmed as a sandbox message', async (t) => {
  const { organisation, number } = await withNumber()
  const phone = '+447700900006'
  const id = await sent(organisation, { to: phone, senderId: number })
  await sql`update app.messages set is_sandbox = true where id = core.decode_id('sm', ${id})`
  await say({ from: phone, to: number })
  t.match(await confirmationsTo(phone), [{ isSandbox: true }])
})

t.test('createSmsListener(): records keywords and receipts', async (t) => {
  const { organisation, number } = await withNumber()
  const phone = aNumber()
  const id = await sent(organisation, { to: phone, senderId: number })
  const counted: [string, string][] = []
  const metrics = {
    receipt: (channel: string, type: string) => counted.push([channel, type]),
  }
  const listener = createSmsListener(call, { metrics, log: pino({ level: 'silent' }) })
  const inbound = {
    provider: 'smsc',
    from: phone,
    to: number,
    received_at: new Date().toISOString(),
  }
  await listener.onInbound({ ...inbound, body: 'please stop calling me at the bus stop' })
  t.equal(await optOutOf(organisation, phone), undefined)
  await Promise.all(['Stop!', ' stop '].map((body) => listener.onInbound({ ...inbound, body })))
  t.match(await optOutOf(organisation, phone), { optedOutBy: 'STOP' })
  t.equal((await confirmationsTo(phone)).length, 1)

  const { id: uuid } = await messageOf(sql, id)
  await listener.onReceipt({
    provider: 'stand-in',
    network_ids: [`${uuid}.1`],
    type: 'delivered',
    occurred_at: new Date().toISOString(),
  })
  t.match(await messageOf(sql, id), { status: 'delivered' })
  t.same(counted, [['sms', 'delivered']])
})

t.test('createSmsListener(): logs an ignored keyword with its reason once a minute', async (t) => {
  const warnings: Record<string, unknown>[] = []
  const log = pino({ level: 'warn' }, { write: (line) => warnings.push(JSON.parse(line)) })
  const listener = createSmsListener(call, { metrics: { receipt: () => undefined }, log })
  const { organisation, number } = await withNumber()
  const phone = aNumber()
  const stop = { provider: 'smsc', body: 'Stop', received_at: new Date().toISOString() }
  const stranger = aNumber()
  for (const body of ['Stop', 'STOP', 'Hello']) {
    await listener.onInbound({ ...stop, from: stranger, to: 'Postgram', body })
  }
  const foreign = { provider: 'smsc', from: '0821234567', to: number, reason: 'no country' }
  listener.onIgnored({ ...foreign, body: 'stop' })
  listener.onIgnored({ ...foreign, body: 'Hello' })
  await sent(organisation, { to: phone, senderId: number })
  for (const _ of [1, 2]) await listener.onInbound({ ...stop, from: phone, to: number })
  t.match(await optOutOf(organisation, phone), { optedOutBy: 'STOP' })
  t.match(warnings, [
    {
      provider: 'smsc',
      keyword: 'stop',
      from: `+27…${stranger.slice(-3)}`,
      to: 'Postgram',
      reason: /^no organisation owns this sender ID, and none has sent from it/,
      messages: 1,
      msg: 'keyword SMS ignored',
    },
    { keyword: 'stop', from: '082…567', to: number, reason: 'no country', messages: 1 },
  ])
  t.equal(warnings.length, 2)
})

t.test('flush(): logs the ignored keywords that are not logged yet, with the count', async (t) => {
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line)) })
  const message = { provider: 'stand-in', from: '0821234567', to: 'Postgram', body: 'STOP' }
  const foreign = { ...message, reason: 'no country' }
  const { stop } = await startTestService(url, {
    roles: ['worker'],
    log,
    createSmsProvider: (_, listener) => {
      for (const _ of [1, 2]) listener.onIgnored(foreign)
      // The network still delivers this while the link closes.
      return createSmsStandIn({ close: async () => listener.onIgnored(foreign) })
    },
  })
  const counts = () =>
    lines.filter(({ msg }) => msg === 'keyword SMS ignored').map(({ messages }) => messages)
  t.same(counts(), [1])
  await stop()
  t.same(counts(), [1, 2])
})

t.test('createSmsListener(): rejects if the database did not record', async (t) => {
  const metrics = { receipt: () => t.fail('it is not recorded') }
  const listener = createSmsListener(() => Promise.reject(new Error('the database is away')), {
    metrics,
    log: pino({ level: 'silent' }),
  })
  const at = new Date().toISOString()
  const receipt: SmsReceipt = {
    provider: 'smsc',
    network_ids: ['1'],
    type: 'delivered',
    occurred_at: at,
  }
  await t.rejects(listener.onReceipt(receipt), { message: 'the database is away' })
  const inbound = {
    provider: 'smsc',
    from: aNumber(),
    to: aNumber(),
    body: 'STOP',
    received_at: at,
  }
  await t.rejects(listener.onInbound(inbound), { message: 'the database is away' })
  await t.resolves(listener.onInbound({ ...inbound, body: 'Hello' }))
})
