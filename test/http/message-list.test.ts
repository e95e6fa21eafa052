import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { type Answer, anEmail, anSms, get, isRefused, post } from '../fixtures/http.ts'
import { indexMessages, send, sendSms } from '../fixtures/messages.ts'
import { createOrganisation, liftRate, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

type Query = Record<string, string>

const list = ({ liveKey }: TestOrganisation, query: Query = {}, path = 'emails') =>
  get(`${base}/v1/${path}?${new URLSearchParams(query)}`, liveKey)

const idsOf = ({ json }: Answer): string[] => json.data.map(({ id }: { id: string }) => id)

/** Returns the IDs on all pages. */
async function walk(organisation: TestOrganisation, query: Query) {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const page: Answer = await list(organisation, cursor ? { ...query, cursor } : query)
    ids.push(...idsOf(page))
    cursor = page.json.nextCursor
  } while (cursor)
  return ids
}

t.test('GET /v1/emails: an organisation without messages has one empty page', async (t) => {
  const organisation = await createOrganisation(sql)
  for (const path of ['emails', 'sms']) {
    const { status, text } = await list(organisation, {}, path)
    t.strictSame([status, text], [200, '{"data":[],"nextCursor":null}'])
  }
})

t.test(
  'GET /v1/emails and GET /v1/sms: list the objects of retrieval without events',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const email = await send(base, organisation, {
      tags: ['one'],
      to: ['A@c.example', 'b@c.example'],
    })
    const sms = await sendSms(base, organisation)
    for (const [path, id] of [
      ['emails', email],
      ['sms', sms],
    ] as const) {
      const { json } = await get(`${base}/v1/${path}/${id}`, organisation.liveKey)
      const { events, ...message } = json
      t.ok(events)
      const page = await list(organisation, {}, path)
      t.equal(page.text, JSON.stringify({ data: [message], nextCursor: null }))
    }
  },
)

t.test('GET /v1/emails: lists messages of the organisation alone, of both modes', async (t) => {
  const ours = await createOrganisation(sql)
  const theirs = await createOrganisation(sql)
  await send(base, theirs)
  const live = await send(base, ours)
  const { json } = await post(`${base}/v1/emails`, ours.testKey, anEmail(ours.domain))
  for (const key of [ours.liveKey, ours.testKey]) {
    t.strictSame(idsOf(await get(`${base}/v1/emails`, key)), [json.id, live])
    t.strictSame(idsOf(await get(`${base}/v1/emails?mode=live`, key)), [live])
    t.strictSame(idsOf(await get(`${base}/v1/emails?mode=test`, key)), [json.id])
  }
})

t.test(
  'GET /v1/emails: the pages are the list, newest first, while messages are accepted',
  async (t) => {
    const organisation = await createOrganisation(sql)
    await liftRate(sql, organisation)
    const { liveKey, domain } = organisation
    const emails = Array.from({ length: 25 }, () => anEmail(domain))
    const { json } = await post(`${base}/v1/emails/batch`, liveKey, { emails })
    const ids = json.results.map(({ data }: { data: { id: string } }) => data.id)
    const newestFirst = ids.toSorted().reverse()
    for (const limit of ['1', '7', '24', '25', '200']) {
      t.strictSame(await walk(organisation, { limit }), newestFirst, limit)
    }
    const first = await list(organisation, { limit: '10' })
    await send(base, organisation)
    const second = await list(organisation, { limit: '15', cursor: first.json.nextCursor })
    t.strictSame([...idsOf(first), ...idsOf(second)], newestFirst)
    t.equal(second.json.nextCursor, null, 'the last page has no cursor, also when it is full')
  },
)

t.test('GET /v1/emails: limit defaults to 50', async (t) => {
  const organisation = await createOrganisation(sql)
  const emails = Array.from({ length: 51 }, () => anEmail(organisation.domain))
  await post(`${base}/v1/emails/batch`, organisation.liveKey, { emails })
  t.equal(idsOf(await list(organisation)).length, 50)
  t.equal(idsOf(await list(organisation, { limit: '200' })).length, 51)
})

t.test('lists: each filter finds what it names, before and after it is indexed', async (t) => {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  const { domain } = organisation
  const plain = await send(base, organisation)
  const tagged = await send(base, organisation, { tags: ['Receipt', 'x y'] })
  const marketing = await send(base, organisation, { class: 'marketing' })
  const named = await send(base, organisation, {
    from: `Shop <Shop@${domain}>`,
    to: ['Jane <Jane@BÜCHER.example>', 'joe@c.example'],
    cc: 'cc@c.example',
    bcc: 'BCC@c.example',
  })
  const bounced = await send(base, organisation)
  await sql`update app.messages set status = 'bounced' where id = core.decode_id('em', ${bounced})`
  await sql`
    insert into app.status_changes (message_ids, change, occurred_at)
    values (array[core.decode_id('em', ${bounced})], 'bounced', now())`
  const sms = await sendSms(base, organisation, { to: '+27821234599', tags: ['Receipt'] })
  const later = { scheduledAt: new Date(Date.now() + 3_600_000).toISOString() }
  const scheduled = await sendSms(base, organisation, later)
  const [row] = await sql<{ from: string }[]>`
    select from_address as "from" from app.messages where id = core.decode_id('sm', ${sms})`
  const all = [bounced, named, marketing, tagged, plain]
  const { json } = await get(`${base}/v1/emails/${named}`, organisation.liveKey)
  const created = new Date(json.createdAt)
  const after = new Date(+created + 1).toISOString()
  const cases: [path: string, query: Query, ids: string[]][] = [
    ['emails', {}, all],
    ['emails', { tag: 'Receipt' }, [tagged]],
    ['emails', { tag: 'x y' }, [tagged]],
    ['emails', { tag: 'receipt' }, []],
    ['emails', { tag: 'Rec' }, []],
    ['emails', { class: 'marketing' }, [marketing]],
    ['emails', { class: 'transactional' }, all.filter((id) => id !== marketing)],
    ['emails', { mode: 'test' }, []],
    ['emails', { status: 'bounced' }, [bounced]],
    ['emails', { status: 'queued' }, all.filter((id) => id !== bounced)],
    ['emails', { status: 'delivered' }, []],
    ['emails', { to: 'jane@xn--bcher-kva.example' }, [named]],
    ['emails', { to: 'JANE@bücher.example' }, [named]],
    ['emails', { to: 'cc@c.example' }, [named]],
    ['emails', { to: 'bcc@c.example' }, [named]],
    ['emails', { to: 'jane@c.example' }, []],
    ['emails', { from: `shop@${domain.toUpperCase()}` }, [named]],
    ['emails', { from: domain }, []],
    ['emails', { to: 'cc@c.example', from: `shop@${domain}`, status: 'queued' }, [named]],
    ['emails', { to: 'cc@c.example', tag: 'Receipt' }, []],
    ['emails', { since: json.createdAt }, all.slice(0, all.indexOf(named) + 1)],
    ['emails', { since: json.createdAt, until: after }, [named]],
    ['emails', { since: after, until: json.createdAt }, []],
    ['emails', { until: '2020-01-01' }, []],
    ['emails', { since: '0001-01-01', until: '9999-12-31' }, all],
    ['sms', {}, [scheduled, sms]],
    ['sms', { to: '+27821234599' }, [sms]],
    ['sms', { tag: 'Receipt' }, [sms]],
    ['sms', { status: 'scheduled' }, [scheduled]],
    ['sms', { from: String(row?.from).toLowerCase() }, [scheduled, sms]],
  ]
  const check = async (when: string) => {
    for (const [path, query, ids] of cases) {
      const page = await list(organisation, query, path)
      t.strictSame(
        [idsOf(page), page.json.nextCursor],
        [ids, null],
        `${when}: ${JSON.stringify(query)}`,
      )
    }
  }
  await check('before')
  await indexMessages(sql)
  await check('after')
})

t.test('GET /v1/emails: a message of a test key is found by its recipients in to', async (t) => {
  const organisation = await createOrganisation(sql)
  const body = anEmail(organisation.domain, { to: ['One@c.example', 'two@c.example'] })
  const { json } = await post(`${base}/v1/emails`, organisation.testKey, body)
  await indexMessages(sql)
  for (const to of ['one@c.example', 'two@c.example']) {
    t.strictSame(idsOf(await list(organisation, { to })), [json.id])
  }
})

t.test('GET /v1/emails: a cursor continues although its message is gone', async (t) => {
  const organisation = await createOrganisation(sql)
  const [oldest, gone] = [await send(base, organisation), await send(base, organisation)]
  const first = await list(organisation, { limit: '1' })
  t.strictSame(idsOf(first), [gone])
  await sql`delete from app.messages where id = core.decode_id('em', ${String(gone)})`
  t.strictSame(idsOf(await list(organisation, { cursor: first.json.nextCursor })), [oldest])
})

t.test('lists: report all wrong, unknown and repeated parameters', async (t) => {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  const once = ['must be given once']
  const unknown = ['unknown field']
  const timestamp = ['must be an ISO 8601 timestamp, as 2026-07-01T09:00:00+02:00']
  const email = 'queued, sent, delivered, bounced, complained, failed, rejected'
  const sms = 'scheduled, queued, sent, delivered, failed, expired, rejected'
  const phone = ['must be a phone number in E.164, as +27821234567']
  const wrong: [path: string, query: string, fields: Record<string, string[]>][] = [
    ['emails', 'status=scheduled', { status: [`must be one of ${email}`] }],
    ['emails', 'status=Sent', { status: [`must be one of ${email}`] }],
    ['sms', 'status=bounced', { status: [`must be one of ${sms}`] }],
    ['emails', 'status=sent&status=queued', { status: once }],
    ['emails', 'class=other', { class: ['must be transactional or marketing'] }],
    ['emails', 'mode=LIVE', { mode: ['must be one of live, test'] }],
    ['emails', 'tag=', { tag: ['must not be empty'] }],
    ['emails', `tag=${'x'.repeat(65)}`, { tag: ['must be at most 64 characters but has 65'] }],
    ['emails', 'tag=%00', { tag: ['must not contain control characters'] }],
    ['emails', 'from=a&from=b', { from: once }],
    ['emails', 'since=yesterday', { since: timestamp }],
    ['emails', 'until=2026-02-30', { until: ['must be a date that exists'] }],
    ['sms', 'to=27821234567', { to: phone }],
    ['sms', 'to=+27821234567', { to: phone }],
    ['emails', 'limit=0', { limit: ['must be a number from 1 to 200'] }],
    ['emails', 'cursor=em_1', { cursor: ['must be the nextCursor of an earlier page'] }],
    ['emails', 'channel=sms&q=x', { channel: unknown, q: unknown }],
  ]
  for (const [path, query, fields] of wrong) {
    const response = await get(`${base}/v1/${path}?${query}`, organisation.liveKey)
    isRefused(t, response, 'validation_error', fields, { name: query.slice(0, 80) })
  }
  const malformed = await get(`${base}/v1/emails?to=jane`, organisation.liveKey)
  t.equal(malformed.status, 422)
  t.ok(malformed.json.error.fields.to)
  const { status } = await post(`${base}/v1/emails?tag=x`, organisation.liveKey, anSms())
  t.equal(status, 422, 'a send takes no parameters')
})
