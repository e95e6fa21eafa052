import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, anSms, get, isRefused, post } from '../fixtures/http.ts'
import { backlogOf, jobsOf } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const ID = /^sm_[0-9a-hjkmnp-tv-z]{26}$/
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const send = ({ liveKey }: TestOrganisation, fields: Record<string, unknown> = {}) =>
  post(`${base}/v1/sms`, liveKey, anSms(fields))

const show = ({ liveKey }: TestOrganisation, id: string) => get(`${base}/v1/sms/${id}`, liveKey)

t.test('POST /v1/sms: returns id, status, segments, credits and mode', async (t) => {
  const organisation = await createOrganisation(sql)
  const { status, headers, json } = await send(organisation)
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  t.match(json.id, ID)
  t.strictSame(json, { id: json.id, status: 'queued', segments: 1, credits: 0, mode: 'live' })
  t.strictSame(Object.keys(json), ['id', 'status', 'segments', 'credits', 'mode'])
})

t.test('GET /v1/sms: shows exactly the fields of the API reference', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 1 })
  await sql`select ops.grant_credits(${organisation.id}, 10, 'paid')`
  await sql`
    insert into app.senders (organisation_id, sender, approved_at)
    values (core.decode_id('org', ${organisation.id}), 'Acme Shop', now())`
  const body = `Grüße "\\" 💌 ${'x'.repeat(70)}`
  const tags = ['one', 'two']
  const sent = await send(organisation, { senderId: 'Acme Shop', body, tags })
  t.match(sent.json, { segments: 2, credits: 1 })
  const { status, json } = await show(organisation, sent.json.id)
  t.equal(status, 200)
  t.match(json.createdAt, ISO)
  t.strictSame(json, {
    id: sent.json.id,
    channel: 'sms',
    class: 'transactional',
    status: 'queued',
    to: '+447700900000',
    from: 'Acme Shop',
    subject: null,
    tags,
    error: null,
    createdAt: json.createdAt,
    sentAt: null,
    deliveredAt: null,
    segments: 2,
    credits: 1,
    scheduledAt: null,
    events: [{ type: 'queued', occurredAt: json.createdAt, detail: {} }],
  })
  const [stored] = await sql`
    select b.sender, b."to", b.cc, b.bcc, b.recipients, b.html, b.text
    from app.bodies b where b.message_id = core.decode_id('sm', ${sent.json.id})`
  const to = ['+447700900000']
  t.strictSame(
    { ...stored },
    { sender: 'Acme Shop', to, cc: [], bcc: [], recipients: to, html: null, text: body },
  )
})

t.test(
  'POST /v1/sms: marketing without an opt-out footer gets a warning, other SMS none',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const warning = {
      code: 'opt_out_footer_missing',
      message: 'The text does not say how to opt out by STOP, as in "Reply STOP to opt out".',
    }
    const scheduledAt = new Date(Date.now() + 3_600_000).toISOString()
    for (const [sms, expected] of [
      [{ class: 'marketing', body: 'Big sale' }, warning],
      [{ class: 'marketing', body: 'Big sale', scheduledAt }, warning],
      [{ class: 'marketing', body: 'Big sale. Reply STOP to opt out' }, undefined],
      [{ class: 'transactional', body: 'Your code' }, undefined],
    ] as const) {
      const { status, json } = await send(organisation, sms)
      t.equal(status, 200)
      t.strictSame(json.warning, expected)
      const batch = await post(`${base}/v1/sms/batch`, organisation.testKey, {
        messages: [anSms(sms)],
      })
      t.strictSame(batch.json.results[0].data.warning, expected)
    }
  },
)

t.test('GET /v1/sms: shows the timeline, oldest first', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id } = (await send(organisation)).json
  await sql`
    update app.messages
    set status = 'delivered', sent_at = created_at + interval '1 second', provider = 'sandbox', attempts = 1,
      delivered_at = created_at + interval '2 seconds'
    where id = core.decode_id('sm', ${id})`
  await sql`
    insert into app.events (message_id, type, occurred_at, provider_event_id, detail)
    select m.id, 'delivered', m.created_at + interval '2 seconds', 'x', '{"code": "000"}'
    from app.messages m where m.id = core.decode_id('sm', ${id})`
  const { json } = await show(organisation, id)
  t.match(json, { status: 'delivered', sentAt: ISO, deliveredAt: ISO, error: null })
  t.strictSame(json.events, [
    { type: 'queued', occurredAt: json.createdAt, detail: {} },
    { type: 'sent', occurredAt: json.sentAt, detail: { attempt: 1, provider: 'sandbox' } },
    { type: 'delivered', occurredAt: json.deliveredAt, detail: { code: '000' } },
  ])
})

t.test('GET /v1/sms: an SMS of another organisation or an email ID is not found', async (t) => {
  const organisation = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  const { id } = (await send(organisation)).json
  const { domain, liveKey, testKey } = organisation
  const email = (await post(`${base}/v1/emails`, liveKey, anEmail(domain))).json.id
  const ids = [email, id.replace('sm_', 'em_'), email.replace('em_', 'sm_'), 'sm_', id.slice(0, -1)]
  for (const unknown of [...ids, `${id}0`, id.toUpperCase(), id.slice(3), '%00', "'", '..%2f']) {
    isRefused(t, await show(organisation, unknown), 'not_found', undefined, { name: unknown })
  }
  isRefused(t, await show(other, id), 'not_found')
  isRefused(t, await get(`${base}/v1/emails/${id}`, liveKey), 'not_found')
  t.equal(
    (await get(`${base}/v1/sms/${id}`, testKey)).status,
    200,
    'a test key reads live messages',
  )
})

t.test('POST /v1/sms: reports all problems at once and stores nothing', async (t) => {
  const organisation = await createOrganisation(sql)
  const before = await traces(sql)
  const response = await post(`${base}/v1/sms`, organisation.liveKey, {
    to: '082 123 4567',
    body: 'x'.repeat(1531),
    senderId: '0123',
    scheduledAt: '2026-07-01T09:00:00',
    tags: ['fine', ''],
    text: 'Hello',
  })
  isRefused(t, response, 'validation_error', {
    to: ['must be a phone number in E.164, as +27821234567'],
    body: ['must be at most 10 segments but has 11'],
    class: ['is required'],
    senderId: [
      'must be 1 to 11 letters, digits and spaces with at least one letter, or a phone number in E.164',
    ],
    scheduledAt: ['must have an offset from UTC, as 2026-07-01T09:00:00+02:00'],
    'tags.1': ['must not be empty'],
    text: ['unknown field'],
  })
  t.strictSame(await traces(sql), before)
})

t.test(
  'POST /v1/sms: senderId is an approved sender, an own number or the shared sender',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const other = await createOrganisation(sql)
    const number = `+2782${String(process.pid).padStart(7, '0')}`
    await sql`
    insert into app.senders (organisation_id, sender, approved_at)
    select core.decode_id('org', ${organisation.id}), sender, now()
    from unnest(${['Acme', number]}::text[]) sender`
    const [settings] = await sql`select shared_sender from app.sms_settings`
    const shared = settings?.sharedSender
    for (const [senderId, from] of [
      [undefined, shared],
      [shared, shared],
      ['Acme', 'Acme'],
      [number, number],
    ]) {
      const { json } = await send(organisation, { senderId })
      t.equal((await show(organisation, json.id)).json.from, from, senderId ?? 'none')
    }
    const before = await traces(sql)
    for (const [sender, senderId] of [
      [organisation, 'ACME'],
      [organisation, 'Acme '],
      [organisation, 'Another'],
      [organisation, '+27820000000'],
      [other, 'Acme'],
      [other, number],
    ] as const) {
      isRefused(
        t,
        await send(sender, { senderId }),
        'validation_error',
        { senderId: ['is not an approved sender of this organisation'] },
        { name: senderId },
      )
    }
    t.strictSame(await traces(sql), before, 'nothing is stored')
  },
)

t.test('POST /v1/sms: a paused organisation gets org_paused, after validation_error', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id, liveKey, testKey } = organisation
  const sent = await send(organisation)
  await sql`select ops.pause(${id}, 'complaints')`
  const before = await traces(sql)
  isRefused(t, await send(organisation), 'org_paused')
  isRefused(t, await send(organisation, { senderId: 'Unknown' }), 'validation_error', {
    senderId: ['is not an approved sender of this organisation'],
  })
  const batch = { messages: [anSms()] }
  isRefused(t, await post(`${base}/v1/sms/batch`, liveKey, batch), 'org_paused')
  t.strictSame(await traces(sql), before, 'nothing is stored')
  t.equal((await show(organisation, sent.json.id)).status, 200)
  t.equal((await post(`${base}/v1/sms`, testKey, anSms())).status, 200)
  await sql`select ops.resume(${id})`
  t.equal((await send(organisation)).status, 200)
})

t.test('SMS: a suspended organisation is refused with live and test keys', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id, liveKey, testKey } = organisation
  const sent = await send(organisation)
  await sql`select ops.suspend(${id}, 'unpaid')`
  const before = await traces(sql)
  for (const key of [liveKey, testKey]) {
    isRefused(t, await post(`${base}/v1/sms`, key, anSms()), 'org_suspended')
    const batch = { messages: [anSms()] }
    isRefused(t, await post(`${base}/v1/sms/batch`, key, batch), 'org_suspended')
    isRefused(t, await get(`${base}/v1/sms/${sent.json.id}`, key), 'org_suspended')
  }
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('both channels share a backlog, in which marketing has a lower priority', async (t) => {
  const organisation = await createOrganisation(sql)
  const sms = await send(organisation)
  const marketing = await send(organisation, { class: 'marketing', body: 'Reply STOP to opt out' })
  await post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain))
  t.equal(await backlogOf(sql, organisation), 3)
  const priorities = [sms, marketing].map(async ({ json }) =>
    (await jobsOf(sql, json.id)).map(({ priority }) => priority),
  )
  t.strictSame(await Promise.all(priorities), [[0], [1]])
})
