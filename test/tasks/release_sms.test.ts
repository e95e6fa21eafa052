import t, { type Test } from 'tap'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { anSms, post } from '../fixtures/http.ts'
import {
  backlogOf,
  createOrganisationAt,
  finishSmsAt,
  jobsOf,
  messageOf,
  movementsOf,
  PROMOTION,
  sendSms,
  startSmsAt,
  sweepAt,
  timelineOf,
} from '../fixtures/messages.ts'
import { type TestOrganisation, unbalancedLedgers } from '../fixtures/organisation.ts'
import { startApiAt } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

// A leap day, a Tuesday; times are South African.
const NOW = '2028-02-29T10:00:00+02:00'
const at = (time: string, day = '2028-02-29') => `${day}T${time}+02:00`
const { base } = await startApiAt(sql, url, NOW)

const PHONE = '+27821234567'
const promotion = { class: 'marketing', body: PROMOTION, to: PHONE }

const consent = ({ id }: TestOrganisation, phone = PHONE) =>
  sql`select ops.record_consent(${id}, ${phone}, 'the form on the web site')`

async function anAgreed(): Promise<TestOrganisation> {
  const organisation = await createOrganisationAt(sql, NOW)
  await consent(organisation)
  return organisation
}

/** Asserts that a message was rejected with this error and refunded. */
async function isRejected(t: Test, id: string, code: string, text: string | RegExp) {
  t.match(
    await messageOf(sql, id),
    { status: 'rejected', errorCode: code, errorMessage: text, sentAt: null, attempts: 0 },
    `rejected for ${code}`,
  )
  t.match((await timelineOf(sql, id)).at(-1), { type: 'rejected', detail: { code, text } })
  t.same(await movementsOf(sql, id), ['sms -1', 'refund 1'], 'and refunded')
}

t.test('start_sms: marketing within the rules is sent', async (t) => {
  const organisation = await anAgreed()
  const id = await sendSms(base, organisation, promotion)
  t.equal(await backlogOf(sql, organisation), 1)
  t.same(await startSmsAt(sql, NOW, id), [id])
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 1, errorCode: null })
  await finishSmsAt(sql, NOW, id, { outcome: 'sent', parts: [{ part: 1, network_id: 'one' }] })
  t.match(await messageOf(sql, id), { status: 'sent' })
  t.same(await movementsOf(sql, id), ['sms -1'])
  t.equal(await backlogOf(sql, organisation), 0)
})

t.test(
  'start_sms: marketing against the rules is rejected with the reason and refunded',
  async (t) => {
    const block = (phone: string) => sql`select ops.block_number(${phone})`
    const withdraw = ({ id }: TestOrganisation) => sql`select ops.withdraw_consent(${id}, ${PHONE})`
    const cases: {
      name: string
      code: string
      text: RegExp
      sms?: Record<string, unknown>
      time?: string
      /** Runs before the release, instead of recording consent. */
      prepare?(organisation: TestOrganisation): Promise<unknown>
    }[] = [
      {
        name: 'nobody recorded consent',
        code: 'consent_missing',
        text: /no record/,
        prepare: async () => undefined,
      },
      {
        name: 'another organisation has the consent',
        code: 'consent_missing',
        text: /no record/,
        prepare: async () => consent(await createOrganisationAt(sql, NOW)),
      },
      {
        name: 'another number consented',
        code: 'consent_missing',
        text: /no record/,
        prepare: (organisation) => consent(organisation, `${PHONE}0`),
      },
      {
        name: 'consent was withdrawn after it was accepted',
        code: 'opted_out',
        text: /has opted out/,
        prepare: async (organisation) => {
          await consent(organisation)
          await withdraw(organisation)
        },
      },
      {
        name: 'a number without consent opted out',
        code: 'opted_out',
        text: /has opted out/,
        prepare: withdraw,
      },
      {
        name: 'the number is on the national registry',
        code: 'opted_out',
        text: /national opt-out registry/,
        sms: { to: '+27830000000' },
        prepare: async (organisation) => {
          await consent(organisation, '+27830000000')
          await block('+27830000000')
        },
      },
      {
        name: 'the number is on the registry and has no consent',
        code: 'consent_missing',
        text: /no record/,
        sms: { to: '+27830000000' },
        prepare: async () => undefined,
      },
      {
        name: 'it does not say how to opt out',
        code: 'opt_out_footer_missing',
        text: /does not say how to opt out/,
        sms: { body: "Don't stop the party" },
      },
      {
        name: 'it does not say how to opt out, and it is night',
        code: 'opt_out_footer_missing',
        text: /does not say how to opt out/,
        sms: { body: "Don't stop the party" },
        time: at('23:00:00'),
      },
      {
        name: 'it was accepted within the hours and is released after them',
        code: 'outside_sending_hours',
        text: /^Marketing is sent from 08:00 to 20:00 South African time, not on Sundays\.$/,
        time: at('20:00:00'),
      },
      {
        name: 'it is released before them',
        code: 'outside_sending_hours',
        text: /08:00 to 20:00/,
        time: at('07:59:59', '2028-03-01'),
      },
      {
        name: 'it is released on a Sunday',
        code: 'outside_sending_hours',
        text: /08:00 to 20:00/,
        time: at('12:00:00', '2028-03-05'),
      },
    ]
    for (const { name, code, text, sms, time = NOW, prepare = consent } of cases) {
      await t.test(name, async (t) => {
        const organisation = await createOrganisationAt(sql, NOW)
        const id = await sendSms(base, organisation, { ...promotion, ...sms })
        await prepare(organisation)
        t.same(await startSmsAt(sql, time, id), [])
        await isRejected(t, id, code, text)
        t.equal(await backlogOf(sql, organisation), 0)
        t.same(await startSmsAt(sql, NOW, id), [], 'for good')
        t.same(await movementsOf(sql, id), ['sms -1', 'refund 1'], 'refunded once')
      })
    }
  },
)

t.test('start_sms: a rejection by statutory hours names them', async (t) => {
  const organisation = await anAgreed()
  await sql`select ops.set_marketing_hours('statutory')`
  const [saturday, holiday, fine] = [
    await sendSms(base, organisation, promotion),
    await sendSms(base, organisation, promotion),
    await sendSms(base, organisation, promotion),
  ]
  t.same(await startSmsAt(sql, at('13:00:00', '2028-03-04'), saturday), [])
  t.same(await startSmsAt(sql, at('12:00:00', '2028-03-21'), holiday), [])
  t.same(await startSmsAt(sql, at('12:59:59', '2028-03-04'), fine), [fine])
  for (const id of [saturday, holiday])
    await isRejected(t, id, 'outside_sending_hours', /09:00 to 13:00, not on Sundays and public/)
  await sql`select ops.set_marketing_hours('interface')`
})

t.test(
  'start_sms: transactional SMS are sent at any hour, without consent and footer',
  async (t) => {
    const organisation = await createOrganisationAt(sql, NOW)
    const id = await sendSms(base, organisation, { to: PHONE })
    t.same(await startSmsAt(sql, at('03:00:00', '2028-03-05'), id), [id])
  },
)

t.test('start_sms: an unblocked number that consents again gets marketing again', async (t) => {
  const organisation = await anAgreed()
  await sql`select ops.block_number(${PHONE})`
  const blocked = await sendSms(base, organisation, promotion)
  t.same(await startSmsAt(sql, NOW, blocked), [])
  await sql`select ops.unblock_number(${PHONE})`
  await sql`select ops.withdraw_consent(${organisation.id}, ${PHONE})`
  const optedOut = await sendSms(base, organisation, promotion)
  t.same(await startSmsAt(sql, NOW, optedOut), [])
  await consent(organisation)
  const id = await sendSms(base, organisation, promotion)
  t.same(await startSmsAt(sql, NOW, id), [id])
})

t.test('start_sms: sandbox messages follow the rules and cost nothing', async (t) => {
  const sandboxApi = await startApiAt(sql, url, NOW, true)
  const organisation = await createOrganisationAt(sql, NOW)
  const id = await sendSms(sandboxApi.base, organisation, { ...promotion, to: '+447700900000' })
  t.match(await messageOf(sql, id), { isSandbox: true })
  t.same(await startSmsAt(sql, NOW, id), [])
  t.match(await messageOf(sql, id), { status: 'rejected', errorCode: 'consent_missing' })
  t.same(await movementsOf(sql, id), [])
  await consent(organisation, '+447700900000')
  const agreed = await sendSms(sandboxApi.base, organisation, { ...promotion, to: '+447700900000' })
  t.same(await startSmsAt(sql, NOW, agreed), [agreed])
})

t.test('test key: the marketing rules apply when the SMS is accepted', async (t) => {
  const organisation = await createOrganisationAt(sql, NOW)
  const send = async (overrides: Record<string, unknown>) => {
    const sms = anSms({ ...promotion, ...overrides })
    const { json } = await post(`${base}/v1/sms`, organisation.testKey, sms)
    const { status, errorCode } = await messageOf(sql, json.id)
    const timeline = (await timelineOf(sql, json.id)).map(({ type }) => type)
    return { responseStatus: json.status, status, errorCode, timeline }
  }
  const rejected = { status: 'rejected', timeline: ['queued', 'rejected'] }
  t.match(await send({}), { ...rejected, responseStatus: 'queued', errorCode: 'consent_missing' })
  await consent(organisation)
  t.match(await send({}), {
    responseStatus: 'queued',
    status: 'sent',
    timeline: ['queued', 'sent'],
  })
  t.match(await send({ body: 'Sale!' }), { ...rejected, errorCode: 'opt_out_footer_missing' })
  const outside = { ...rejected, responseStatus: 'scheduled', errorCode: 'outside_sending_hours' }
  t.match(await send({ scheduledAt: at('20:00:00') }), outside)
  t.match(await send({ scheduledAt: at('19:59:59') }), {
    responseStatus: 'scheduled',
    status: 'sent',
    timeline: ['queued', 'sent'],
  })
})

t.test('start_sms: an SMS with an accepted part continues, whatever the rules', async (t) => {
  const organisation = await anAgreed()
  const id = await sendSms(base, organisation, { ...promotion, body: PROMOTION.repeat(6) })
  t.same(await startSmsAt(sql, NOW, id), [id])
  const taken = { outcome: 'deferred', parts: [{ part: 1, network_id: 'taken' }] }
  await finishSmsAt(sql, NOW, id, taken)
  await sql`select ops.withdraw_consent(${organisation.id}, ${PHONE})`
  t.same(await startSmsAt(sql, at('20:00:00'), id), [id])
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 2 })
})

t.test('start_sms: a deferred SMS without an accepted part is checked again', async (t) => {
  const organisation = await anAgreed()
  const id = await sendSms(base, organisation, promotion)
  t.same(await startSmsAt(sql, NOW, id), [id])
  await finishSmsAt(sql, NOW, id, { outcome: 'deferred', text: 'Slow down.' })
  t.same(await startSmsAt(sql, at('20:00:00'), id), [])
  t.match(await messageOf(sql, id), { status: 'rejected', errorCode: 'outside_sending_hours' })
  t.same(await movementsOf(sql, id), ['sms -1', 'refund 1'])
})

t.test(
  'start_sms: after an attempt that was cut off, transactional SMS start again and marketing fails',
  async (t) => {
    const organisation = await anAgreed()
    const code = await sendSms(base, organisation, { to: PHONE })
    const marketing = await sendSms(base, organisation, promotion)
    t.same(await startSmsAt(sql, NOW, code, marketing), [code, marketing])
    t.same(await startSmsAt(sql, at('10:00:05'), code, marketing), [code])
    t.match(await messageOf(sql, code), { status: 'queued', attempts: 2 })
    t.match(await messageOf(sql, marketing), {
      status: 'failed',
      attempts: 1,
      errorCode: 'provider_unavailable',
      errorMessage: /marketing is not sent twice/,
    })
    t.match(await timelineOf(sql, marketing), [
      { type: 'queued' },
      { type: 'failed', detail: { code: 'provider_unavailable' } },
    ])
    t.same(await movementsOf(sql, marketing), ['sms -1'], 'it may have been sent')
    t.equal(await backlogOf(sql, organisation), 1)
  },
)

t.test('start_sms: waiting SMS of a suspended organisation are rejected', async (t) => {
  const organisation = await createOrganisationAt(sql, NOW)
  const id = await sendSms(base, organisation)
  const begun = await sendSms(base, organisation)
  t.same(await startSmsAt(sql, NOW, begun), [begun])
  await sql`select ops.suspend(${organisation.id}, 'a test')`
  t.same(await startSmsAt(sql, NOW, id, begun), [])
  await isRejected(t, id, 'org_suspended', 'The organisation is suspended.')
  t.match(await messageOf(sql, begun), { status: 'failed', errorCode: 'org_suspended' })
  t.same(
    await movementsOf(sql, begun),
    ['sms -1'],
    'an SMS that may have been sent is not refunded',
  )
  t.equal(await backlogOf(sql, organisation), 0)
})

t.test('start_sms: waiting SMS of a paused organisation are held', async (t) => {
  const organisation = await anAgreed()
  const [id, marketing] = [
    await sendSms(base, organisation),
    await sendSms(base, organisation, promotion),
  ]
  await sql`delete from graphile_worker._private_jobs`
  await sql`select ops.pause(${organisation.id}, 'a test')`
  t.same(await startSmsAt(sql, NOW, id, marketing), [])
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 0 })
  t.equal(await sweepAt(sql, at('10:00:00', '2028-03-09')), 0, 'without a time limit')
  t.match(await sql`select ops.resume(${organisation.id}) as released`, [{ released: 2 }])
  t.equal((await jobsOf(sql, id)).length, 1)
  t.same(await startSmsAt(sql, at('21:00:00'), id, marketing), [id])
  await isRejected(t, marketing, 'outside_sending_hours', /08:00 to 20:00/)
})

t.test('start_sms: one call handles active, paused and suspended organisations', async (t) => {
  const [active, paused, suspended] = [await anAgreed(), await anAgreed(), await anAgreed()]
  const ids = await Promise.all(
    [active, paused, suspended].flatMap((organisation) => [
      sendSms(base, organisation),
      sendSms(base, organisation, promotion),
      sendSms(base, organisation, { ...promotion, body: 'No footer' }),
    ]),
  )
  await sql`select ops.pause(${paused.id}, 'a test')`
  await sql`select ops.suspend(${suspended.id}, 'a test')`
  const started = await startSmsAt(sql, NOW, ...ids)
  t.same(started, ids.slice(0, 2))
  const results = await Promise.all(ids.map(async (id) => messageOf(sql, id)))
  t.same(
    results.map(({ status, errorCode }) => errorCode ?? status),
    [
      ...['queued', 'queued', 'opt_out_footer_missing'],
      ...['queued', 'queued', 'queued'],
      ...['org_suspended', 'org_suspended', 'org_suspended'],
    ],
  )
  t.same(
    await Promise.all([active, paused, suspended].map((one) => backlogOf(sql, one))),
    [2, 3, 0],
  )
  t.same(await unbalancedLedgers(sql), [])
})

t.test('start_sms: test messages are not started', async (t) => {
  const organisation = await createOrganisationAt(sql, NOW)
  const { json } = await post(`${base}/v1/sms`, organisation.testKey, anSms())
  await sql`update app.messages set status = 'queued' where id = core.decode_id('sm', ${json.id})`
  t.same(await startSmsAt(sql, NOW, json.id), [])
  await atTime(
    sql,
    NOW,
    (tx) => tx`delete from app.messages where id = core.decode_id('sm', ${json.id})`,
  )
})

t.test(
  'start_sms: of two workers that start a marketing SMS one sends it, without a refund',
  async (t) => {
    const id = await sendSms(base, await anAgreed(), promotion)
    const { id: uuid } = await messageOf(sql, id)
    const { second } = await atTime(sql, NOW, async (tx) => {
      const first = await tx`select * from api.start_sms(array[${uuid}::uuid])`
      t.equal(first.length, 1)
      const second = startSmsAt(sql, NOW, id)
      second.catch(() => undefined)
      await untilLocked(sql)
      return { second }
    })
    t.same(await second, [])
    t.match(await messageOf(sql, id), { status: 'failed', errorCode: 'provider_unavailable' })
    t.same(await movementsOf(sql, id), ['sms -1'])
  },
)
