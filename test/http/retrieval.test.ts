import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { messageFields } from '../fixtures/pages.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

async function send(
  { liveKey, domain }: TestOrganisation,
  fields: Record<string, unknown> = {},
  key = liveKey,
) {
  const { json, text } = await post(`${base}/v1/emails`, key, anEmail(domain, fields))
  if (!json.id) throw new Error(text)
  return json.id as string
}

t.test('GET /v1/emails: shows exactly the fields of the API reference', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await send(organisation, {
    from: `"Acme, Inc." <Billing@${organisation.domain}>`,
    to: ['Jane <Jane@C.example>', 'bob@c.example'],
    cc: 'cc@c.example',
    bcc: 'bcc@c.example',
    replyTo: 'help@c.example',
    subject: 'Grüße "\\" 💌',
    html: '<p>secret</p>',
    headers: { 'X-A': 'b' },
    tags: ['one', 'two'],
  })
  const { status, headers, json } = await get(`${base}/v1/emails/${id}`, organisation.liveKey)
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  t.match(json.createdAt, ISO)
  t.strictSame(json, {
    id,
    channel: 'email',
    class: 'transactional',
    status: 'queued',
    to: 'Jane@c.example, bob@c.example',
    from: `Billing@${organisation.domain}`,
    subject: 'Grüße "\\" 💌',
    tags: ['one', 'two'],
    error: null,
    createdAt: json.createdAt,
    sentAt: null,
    deliveredAt: null,
    events: [{ type: 'queued', occurredAt: json.createdAt, detail: {} }],
  })
})

t.test('GET /v1/emails: shows the fields in the order of the API reference', async (t) => {
  const organisation = await createOrganisation(sql)
  const { json } = await get(`${base}/v1/emails/${await send(organisation)}`, organisation.liveKey)
  const fields = [...(await messageFields('email')), 'events']
  t.strictSame(Object.keys(json), fields, 'src/docs/api.md has the same fields in the same order')
})

t.test('GET /v1/emails: shows the timeline, oldest first', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await send(organisation, { to: ['a@c.example', 'b@c.example'], class: 'marketing' })
  await sql`
    update app.messages
    set status = 'bounced', sent_at = created_at + interval '1 second', provider = 'sandbox',
      attempts = 2, error_code = 'hard_bounce', error_message = 'no such mailbox'
    where id = core.decode_id('em', ${id})`
  await sql`
    insert into app.events (message_id, type, occurred_at, provider_event_id, detail)
    select m.id, e.type::app.event_type, m.created_at + e.after::interval, e.event, e.detail::jsonb
    from app.messages m
    cross join (values
      ('bounced', '3 seconds', 'x2', '{"recipient": "b@c.example", "text": "no such mailbox"}'),
      ('delivered', '2 seconds', 'x1', '{"recipient": "a@c.example"}'),
      ('deferred', '500 milliseconds', null, '{"attempt": 1, "text": "try later"}')
    ) as e (type, after, event, detail)
    where m.id = core.decode_id('em', ${id})`
  const { json } = await get(`${base}/v1/emails/${id}`, organisation.liveKey)
  const after = (ms: number) => new Date(+new Date(json.createdAt) + ms).toISOString()
  t.match(json, {
    class: 'marketing',
    status: 'bounced',
    error: { code: 'hard_bounce', message: 'no such mailbox' },
    sentAt: after(1000),
    deliveredAt: null,
  })
  t.strictSame(json.events, [
    { type: 'queued', occurredAt: after(0), detail: {} },
    { type: 'deferred', occurredAt: after(500), detail: { attempt: 1, text: 'try later' } },
    { type: 'sent', occurredAt: after(1000), detail: { attempt: 2, provider: 'sandbox' } },
    { type: 'delivered', occurredAt: after(2000), detail: { recipient: 'a@c.example' } },
    {
      type: 'bounced',
      occurredAt: after(3000),
      detail: { recipient: 'b@c.example', text: 'no such mailbox' },
    },
  ])
})

t.test('messages of both modes can be read with live and test keys', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, testKey } = organisation
  const live = await send(organisation)
  const test = await send(organisation, {}, testKey)
  for (const [id, status] of [
    [live, 'queued'],
    [test, 'sent'],
  ]) {
    for (const key of [liveKey, testKey]) {
      const response = await get(`${base}/v1/emails/${id}`, key)
      t.strictSame([response.status, response.json.id, response.json.status], [200, id, status])
    }
  }
})

t.test('a message of another organisation does not exist', async (t) => {
  const ours = await createOrganisation(sql)
  const theirs = await createOrganisation(sql)
  const id = await send(theirs)
  isRefused(t, await get(`${base}/v1/emails/${id}`, ours.liveKey), 'not_found')
  isRefused(t, await get(`${base}/v1/emails/${id}`, ours.testKey), 'not_found')
  t.equal((await get(`${base}/v1/emails/${id}`, theirs.liveKey)).status, 200)
})

t.test('a malformed or unknown ID, or one of another kind, is not found', async (t) => {
  const organisation = await createOrganisation(sql)
  const id = await send(organisation)
  const bare = id.slice('em_'.length)
  for (const other of [
    `sm_${bare}`,
    `dom_${bare}`,
    bare,
    `EM_${bare}`,
    `em_${bare.toUpperCase()}`,
    `em-${bare}`,
    `em_${bare}0`,
    `em_${bare.slice(1)}`,
    `em_8${bare.slice(1)}`,
    `em_${'7'.padEnd(26, 'z')}`,
    'em_00000000000000000000000000',
    'em_',
    'em',
    `${id}%20`,
    `${id}%0A`,
    `%20${id}`,
    'batch',
    "em_'%20or%20true",
    '00000000-0000-0000-0000-000000000000',
  ]) {
    isRefused(
      t,
      await get(`${base}/v1/emails/${other}`, organisation.liveKey),
      'not_found',
      undefined,
      { name: other },
    )
  }
  for (const same of [`${id}/`, `${id}?`, id.replace('_', '%5F')]) {
    const { status } = await get(`${base}/v1/emails/${same}`, organisation.liveKey)
    t.equal(status, 200, same)
  }
})

t.test('GET /v1/emails: shows a message of a batch', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const { json } = await post(`${base}/v1/emails/batch`, liveKey, {
    emails: [anEmail(domain, { subject: 'One' }), anEmail(domain, { subject: 'Two' })],
  })
  for (const [index, subject] of ['One', 'Two'].entries()) {
    const message = await get(`${base}/v1/emails/${json.results[index].data.id}`, liveKey)
    t.match(message.json, { id: json.results[index].data.id, subject, status: 'queued', tags: [] })
  }
})
