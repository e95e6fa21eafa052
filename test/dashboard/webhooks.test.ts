import t from 'tap'
import { enums } from '../../src/db/api.gen.ts'
import { ageSignIn, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import {
  createEndpoint,
  noteAttempt,
  recordEvents,
  startReceiver,
  stateOf,
  waitingEventsAt,
} from '../fixtures/webhooks.ts'

const { sql, url } = await createDatabase()
/** Delivers nothing, so that what waits goes on waiting. */
const { base } = await startTestService(url, { roles: ['api'] })

const HOOK = 'https://hooks.example/one'

/** An organisation with an endpoint and the path of its page. */
async function setUp(target = HOOK) {
  const organisation = await createOrganisation(sql)
  const endpoint = await createEndpoint(sql, organisation, { url: target })
  const list = `/dashboard/${organisation.id}/webhooks`
  return { organisation, endpoint, list, path: `${list}/${endpoint.id}` }
}

const signIn = (organisation: TestOrganisation, role: 'owner' | 'member' | 'viewer') =>
  signInAs(sql, base, { organisation: organisation.id, role })

const record = async (organisation: TestOrganisation, times: Date[]) =>
  recordEvents(sql, organisation, 'email.delivered', times)

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)

/** As the browser's field for a time sends it. */
const input = (at: Date) => at.toISOString().slice(0, 16)

const auditOf = async (action: string, target: string) => {
  const [row] =
    await sql`select actor, after from ops.audit where action = ${action} and target = ${target}`
  return { ...row }
}

t.test('webhooks: an owner adds an endpoint and sees its secret once', async (t) => {
  const organisation = await createOrganisation(sql)
  const list = `/dashboard/${organisation.id}/webhooks`
  const owner = await signIn(organisation, 'owner')
  t.match((await owner.get(list)).text, 'There is no webhook endpoint')
  const made = await owner.post(`${list}/create`, { url: HOOK, types: ['email.sent', 'sms.sent'] })
  const [secret = ''] = /whsec_[0-9a-f]{64}/.exec(made.text) ?? []
  const [row] = await sql`
    select core.encode_id('we', id) as id, secret, event_types from app.webhook_endpoints
    where organisation_id = core.decode_id('org', ${organisation.id})`
  t.match(row, { secret, eventTypes: ['email.sent', 'sms.sent'] })
  for (const page of [list, `${list}/${row?.id}`]) {
    const { html, status } = await owner.get(page)
    t.equal(status, 200)
    t.notMatch(html, secret)
  }
  t.match((await owner.get(list)).text, `${HOOK} enabled no attempts 0 email.sent, sms.sent`)
  t.match(await auditOf('create_webhook_endpoint', row?.id), {
    actor: `owner-${organisation.id}@example.com`,
  })
})

t.test('webhooks: a refused endpoint is shown again with what was typed', async (t) => {
  const organisation = await createOrganisation(sql)
  const list = `/dashboard/${organisation.id}/webhooks`
  const owner = await signIn(organisation, 'owner')
  const evil = '"><script>alert(1)</script>'
  for (const [form, problem] of [
    [{ url: evil, types: ['email.sent'] }, 'The URL'],
    [{ url: HOOK }, 'The event types must be one or more of'],
    [{ url: '', types: ['email.sent'] }, 'is required'],
    [{ url: HOOK, types: ['other'] }, 'Correct the marked fields.'],
  ] as const) {
    const refused = await owner.post(`${list}/create`, form)
    t.match(refused, { status: 422 }, problem)
    t.match(refused.text, problem)
    t.notMatch(refused.html, '<script>alert')
  }
  const typed = await owner.post(`${list}/create`, { url: 'ftp://a', types: ['sms.sent'] })
  t.match(typed.html, 'value="ftp://a"')
  t.match(typed.html, /value="sms.sent" checked/)
  t.notMatch(typed.html, /value="email.sent" checked/)
})

t.test('webhooks: the 24 h success rate counts attempts once, as they are recorded', async (t) => {
  const { organisation, endpoint, list, path } = await setUp()
  const events = await record(organisation, [1, 2, 3].map(minutesAgo))
  await sql`
    insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
    select core.decode_id('we', ${endpoint.id}), core.decode_id('evt', e), now() from unnest(${events}::text[]) e`
  const results = JSON.stringify(
    await Promise.all(
      events.map(async (event, place) => {
        const [ids] = await sql`
          select core.decode_id('we', ${endpoint.id}) as endpoint_id, core.decode_id('evt', ${event}) as event_id`
        return {
          ...{ endpoint_id: ids?.endpointId, event_id: ids?.eventId, attempt: 1 },
          ...{ started_at: new Date(), duration_ms: 5, response: 'x' },
          ...(place === 0 ? { status: 500, error: 'responded 500' } : { status: 200, error: null }),
        }
      }),
    ),
  )
  // The response to the first call was lost.
  await sql`select api.finish_deliveries(${results}::text::jsonb)`
  await sql`select api.finish_deliveries(${results}::text::jsonb)`
  const viewer = await signIn(organisation, 'viewer')
  t.match((await viewer.get(list)).text, `${HOOK} enabled 66.6 % of 3 1 all`)
  t.match((await viewer.get(path)).text, '24 h success 66.6 % of 3')
  await sql`update app.webhook_endpoints set counted_hour = counted_hour - interval '2 hours'`
  const inNextHour = { ...JSON.parse(results)[1], started_at: new Date() }
  await sql`select api.finish_deliveries(${JSON.stringify([inNextHour])}::text::jsonb)`
  t.match((await viewer.get(path)).text, /24 h success 75(\.0)? % of 4/, 'an earlier hour counts')
  t.same(
    [...(await sql`select attempts, succeeded from app.webhook_hours`)],
    [{ attempts: 3, succeeded: 2 }],
  )
  await sql`update app.webhook_hours set hour = hour - interval '25 hours'`
  await sql`update app.webhook_endpoints set counted_hour = counted_hour - interval '25 hours'`
  t.match((await viewer.get(list)).text, `${HOOK} enabled no attempts`)
})

t.test('webhooks: an event shows its attempts and both bodies', async (t) => {
  const { organisation, endpoint, list, path } = await setUp()
  const [event = ''] = await record(organisation, [minutesAgo(5)])
  await noteAttempt(sql, endpoint.id, event, { error: 'responded 500', at: minutesAgo(4) })
  await noteAttempt(sql, endpoint.id, event, { attempt: 2, at: minutesAgo(3) })
  const evil = '</pre><script>alert(1)</script>\u202eאב'
  await sql`update app.webhook_attempts set response = ${evil} where error is null`
  const viewer = await signIn(organisation, 'viewer')
  t.match(
    (await viewer.get(path)).text,
    /email\.delivered [\d-]+ [\d:]+ delivered [\d-]+ [\d:]+ 200/,
  )
  const shown = await viewer.get(`${list}/events/${event}`)
  t.match(
    shown.text,
    /delivered .* 2 [\d-]+ [\d:]+ 12 ms 200 .* 1 [\d-]+ [\d:]+ 12 ms 500 responded 500 broken/,
  )
  const [row] =
    await sql`select body from app.webhook_events where id = core.decode_id('evt', ${event})`
  t.match(shown.text, String(row?.body).replace(/\s+/g, ' '))
  t.match(shown.html, '&lt;script>alert(1)&lt;/script>\u202eאב')
  t.notMatch(shown.html, '<script>alert')
  t.match(shown.html, `/messages/em_`)
})

t.test('webhooks: each state of a delivery is shown', async (t) => {
  const { organisation, endpoint, list, path } = await setUp()
  const [queued = '', deferred = '', failed = '', replayed = ''] = await record(
    organisation,
    [4, 3, 2, 1].map(minutesAgo),
  )
  for (const event of [deferred, failed, replayed]) {
    await noteAttempt(sql, endpoint.id, event, { error: 'timed out' })
  }
  await sql`
    insert into app.webhook_deliveries (endpoint_id, event_id, due_at, attempts) values
      (core.decode_id('we', ${endpoint.id}), core.decode_id('evt', ${queued}), now(), 0),
      (core.decode_id('we', ${endpoint.id}), core.decode_id('evt', ${deferred}), now() + interval '1 hour', 1),
      (core.decode_id('we', ${endpoint.id}), core.decode_id('evt', ${replayed}), now(), 0)`
  const viewer = await signIn(organisation, 'viewer')
  const states = (text: string) =>
    [...text.matchAll(/ (queued|deferred|failed|delivered) /g)].map(([, state]) => state)
  t.same(states((await viewer.get(path)).text), ['queued', 'failed', 'deferred', 'queued'])
  t.match((await viewer.get(`${list}/events/${deferred}`)).text, 'deferred next attempt')
  t.match((await viewer.get(`${list}/events/${queued}`)).html, 'data-refresh')
  t.notMatch((await viewer.get(`${list}/events/${failed}`)).html, 'data-refresh')
  const [skipped = ''] = await record(organisation, [minutesAgo(9)])
  t.match(
    (await viewer.get(`${list}/events/${skipped}`)).text,
    'It was not posted to this endpoint.',
  )
})

t.test('webhooks: a test event is sent and shown', async (t) => {
  const { organisation, endpoint, path } = await setUp()
  const member = await signIn(organisation, 'member')
  const sent = await member.post(`${path}/test`, { type: 'sms.opted_out' })
  t.match(sent.text, /The test event is sent\..* a test event/)
  t.match(sent.text, 'sms.opted_out')
  const [waiting] = await waitingEventsAt(sql, endpoint.id)
  t.match(sent.text, waiting?.event)
  t.match(await auditOf('send_test_event', endpoint.id), {
    actor: `member-${organisation.id}@example.com`,
  })
  t.match(await member.post(`${path}/test`, { type: 'x' }), { status: 422 })
})

t.test('webhooks: one event is replayed at one endpoint', async (t) => {
  const { organisation, endpoint, list } = await setUp()
  const other = await createEndpoint(sql, organisation)
  const [event = ''] = await record(organisation, [minutesAgo(5)])
  const member = await signIn(organisation, 'member')
  const replayed = await member.post(`${list}/events/${event}/replay`, { endpoint: endpoint.id })
  t.match(replayed.text, 'The event is replayed.')
  t.match(await waitingEventsAt(sql, endpoint.id), [{ event }])
  t.same([...(await waitingEventsAt(sql, other.id))], [])
  t.match(await auditOf('replay_event', event), { actor: `member-${organisation.id}@example.com` })
})

t.test('webhooks: a range is replayed, and the page shows how many are left', async (t) => {
  const { organisation, endpoint, path } = await setUp()
  const [before = '', first = '', second = ''] = await record(
    organisation,
    [90, 60, 30].map(minutesAgo),
  )
  await noteAttempt(sql, endpoint.id, first)
  const member = await signIn(organisation, 'member')
  const period = { since: input(minutesAgo(70)), until: input(minutesAgo(-1)) }
  const missed = await member.post(`${path}/replay`, { ...period, only_missed: 'yes' })
  t.match(missed.text, '1 event of the period replayed; 1 left. Refresh')
  t.match(await waitingEventsAt(sql, endpoint.id), [{ event: second }])

  const all = await member.post(`${path}/replay`, period)
  t.match(all.text, '2 events of the period replayed; 2 left.')
  t.match(all.html, /id="replay"[^>]* data-refresh/)
  const [, refresh = ''] = /<a href="([^"]*)">Refresh/.exec(all.html) ?? []
  const progress = async () => member.get(refresh.replaceAll('&amp;', '&'))
  await sql`delete from app.webhook_deliveries where event_id = core.decode_id('evt', ${first})`
  await sql`update app.webhook_deliveries set attempts = 1 where event_id = core.decode_id('evt', ${second})`
  // A delivery outside the period does not count.
  await sql`
    insert into app.webhook_deliveries (endpoint_id, event_id, due_at)
    values (core.decode_id('we', ${endpoint.id}), core.decode_id('evt', ${before}), now())`
  t.match((await progress()).text, '2 events of the period replayed; 1 left. 1 of them failed')
  await sql`delete from app.webhook_deliveries where event_id = core.decode_id('evt', ${second})`
  const done = await progress()
  t.match(done.text, '2 events of the period replayed; none is left.')
  t.notMatch(done.html, 'data-refresh')
  const [audit] = await sql`
    select actor, after from ops.audit where action = 'replay_events' and target = ${endpoint.id} order by id desc`
  t.match(audit, { actor: `member-${organisation.id}@example.com`, after: { deliveries: 2 } })
})

t.test('webhooks: a range that is no period is refused with what was typed', async (t) => {
  const { organisation, path } = await setUp()
  const member = await signIn(organisation, 'member')
  const since = input(minutesAgo(1))
  for (const [form, problem] of [
    [{ since, until: 'x' }, 'must be a time such as'],
    [{ since, until: '2026-13-31T09:30' }, 'must be a time such as'],
    [{ since, until: since }, 'Since must be before until.'],
    [
      { since: '2025-01-01T00:00', until: '2025-01-02T00:00' },
      'Events can be replayed for 30 days',
    ],
  ] as const) {
    const refused = await member.post(`${path}/replay`, form)
    t.match(refused, { status: 422 }, problem)
    t.match(refused.text, problem)
    t.match(refused.html, `value="${form.since}"`)
  }
  for (const query of [
    'since=x&until=y&replayed=1',
    'since=2026-01-01T00:00&until=9999&replayed=-1',
  ]) {
    t.match(await member.get(`${path}?${query}`), { status: 200 }, query)
  }
})

t.test('webhooks: more than 50 000 events are not replayed in one request', async (t) => {
  const { organisation, endpoint, path } = await setUp()
  await sql`
    insert into app.webhook_events (id, organisation_id, type, message_id, occurred_at, body)
    select core.new_id(now()), core.decode_id('org', ${organisation.id}), 'email.sent', gen_random_uuid(), now(), '{}'
    from generate_series(1, 50001)`
  const member = await signIn(organisation, 'member')
  const form = { since: input(minutesAgo(5)), until: input(minutesAgo(-5)) }
  const refused = await member.post(`${path}/replay`, form)
  t.match(refused, { status: 422, text: /more than 50000 events; choose a shorter one/ })
  t.same([...(await waitingEventsAt(sql, endpoint.id))], [])
  await sql`delete from app.webhook_events where organisation_id = core.decode_id('org', ${organisation.id})`
})

t.test('webhooks: an owner rotates the secret and sees the new one once', async (t) => {
  const { organisation, endpoint, path } = await setUp()
  const owner = await signIn(organisation, 'owner')
  const rotated = await owner.post(`${path}/rotate`)
  const [secret = ''] = /whsec_[0-9a-f]{64}/.exec(rotated.text) ?? []
  t.match(secret, /^whsec_/)
  t.not(secret, endpoint.secret)
  const page = await owner.get(path)
  t.notMatch(page.html, 'whsec_')
  t.match(page.text, 'Old secret signs as well until')
  t.match(await auditOf('rotate_webhook_secret', endpoint.id), {
    actor: `owner-${organisation.id}@example.com`,
  })
})

t.test('webhooks: secrets need a sign-in within the last 10 minutes', async (t) => {
  const { organisation, endpoint, list, path } = await setUp()
  const owner = await signIn(organisation, 'owner')
  await ageSignIn(sql, `owner-${organisation.id}@example.com`)
  t.match((await owner.post(`${path}/rotate`)).text, 'Sign in again')
  t.match(
    (await owner.post(`${list}/create`, { url: HOOK, types: enums.webhook_event_type })).text,
    'Sign in again',
  )
  const rows = await sql`
    select secret, old_secret from app.webhook_endpoints
    where organisation_id = core.decode_id('org', ${organisation.id})`
  t.match([...rows], [{ secret: endpoint.secret, oldSecret: null }])
  t.equal(rows.length, 1)
})

t.test('webhooks: an endpoint is disabled, enabled and told what it missed', async (t) => {
  const { organisation, endpoint, path } = await setUp()
  const member = await signIn(organisation, 'member')
  const refused = await member.post(`${path}/disable`, { reason: '' })
  t.match(refused, { status: 422, text: /is required/ })
  t.match(refused.html, /value="sms.sent" checked/, 'other forms of the page are as before')
  const reason = 'moves <b>now</b>'
  const disabled = await member.post(`${path}/disable`, { reason })
  t.match(disabled.text, `State disabled Disabled`)
  t.match(disabled.text, reason)
  t.notMatch(disabled.text, 'Send test event')
  await record(organisation, [new Date()])
  const enabled = await member.post(`${path}/enable`)
  t.match(enabled.text, 'The endpoint is enabled. It missed 1 of its events')
  t.match(await stateOf(sql, endpoint), { disabledAt: null })
  for (const action of ['disable_webhook_endpoint', 'enable_webhook_endpoint']) {
    t.match(await auditOf(action, endpoint.id), { actor: `member-${organisation.id}@example.com` })
  }
})

t.test('webhooks: URL and events are changed, and an endpoint is deleted', async (t) => {
  const { organisation, endpoint, path } = await setUp()
  const member = await signIn(organisation, 'member')
  const changed = await member.post(`${path}/change`, { url: `${HOOK}?two`, types: ['sms.sent'] })
  t.match(changed.text, `URL ${HOOK}?two`)
  t.match(changed.text, 'Events sms.sent')
  const refused = await member.post(`${path}/change`, { url: 'gopher://x', types: ['sms.sent'] })
  t.match(refused, { status: 422, text: /The URL/ })
  t.match(refused.html, 'value="gopher://x"')
  const deleted = await member.post(`${path}/delete`)
  t.match(deleted.text, 'The endpoint is deleted. There is no webhook endpoint')
  t.match(await member.get(path), { status: 404 })
  for (const action of ['set_webhook_endpoint', 'delete_webhook_endpoint']) {
    t.match(await auditOf(action, endpoint.id), { actor: `member-${organisation.id}@example.com` })
  }
})

/** Every action with the role that it needs. */
const actionsOf = (list: string, endpoint: string, event: string) =>
  [
    ['owner', `${list}/create`, { url: HOOK, types: ['sms.sent'] }],
    ['owner', `${list}/${endpoint}/rotate`, {}],
    ['member', `${list}/${endpoint}/change`, { url: `${HOOK}?changed`, types: ['sms.sent'] }],
    ['member', `${list}/${endpoint}/test`, { type: 'sms.sent' }],
    ['member', `${list}/${endpoint}/enable`, {}],
    ['member', `${list}/${endpoint}/disable`, { reason: 'a test' }],
    [
      'member',
      `${list}/${endpoint}/replay`,
      { since: input(minutesAgo(60)), until: input(minutesAgo(-5)) },
    ],
    ['member', `${list}/events/${event}/replay`, { endpoint }],
    ['member', `${list}/${endpoint}/delete`, {}],
  ] as const

/** Everything that an action could change. */
const everything = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select (select jsonb_agg(to_jsonb(p) order by p.id) from app.webhook_endpoints p where p.organisation_id = o.id) as endpoints,
      (select jsonb_agg(to_jsonb(e) order by e.id) from app.webhook_events e where e.organisation_id = o.id) as events,
      (select count(*) from app.webhook_deliveries d join app.webhook_endpoints p on p.id = d.endpoint_id
        where p.organisation_id = o.id) as deliveries
    from app.organisations o where o.id = core.decode_id('org', ${id})`
  return JSON.stringify(row)
}

t.test('webhooks: viewers change nothing, and members neither add nor see secrets', async (t) => {
  const { organisation, endpoint, list, path } = await setUp()
  const [event = ''] = await record(organisation, [minutesAgo(5)])
  const before = await everything(organisation)
  const actions = actionsOf(list, endpoint.id, event)
  const viewer = await signIn(organisation, 'viewer')
  for (const page of [list, path, `${list}/events/${event}`]) {
    const { status, html } = await viewer.get(page)
    t.equal(status, 200)
    t.notMatch(html.replace(/action="\/logout"/, ''), 'action="/', page)
  }
  for (const [role, action, form] of actions) {
    const refused = await viewer.post(action, form)
    t.match(refused, { status: 403, text: new RegExp(`needs the role ${role}`) }, action)
  }
  const member = await signIn(organisation, 'member')
  for (const page of [list, path]) t.notMatch((await member.get(page)).text, /Add endpoint|Rotate/)
  for (const [, action, form] of actions.filter(([role]) => role === 'owner')) {
    t.match(await member.post(action, form), { status: 403 }, action)
  }
  t.equal(await everything(organisation), before)
})

t.test('webhooks: those of another organisation are neither shown nor changed', async (t) => {
  const theirs = await setUp('https://hooks.example/theirs')
  const [theirEvent = ''] = await record(theirs.organisation, [minutesAgo(5)])
  const ours = await setUp()
  const [ourEvent = ''] = await record(ours.organisation, [minutesAgo(5)])
  const before = await everything(theirs.organisation)
  const owner = await signIn(ours.organisation, 'owner')
  const { list } = ours
  const actions = [
    ...actionsOf(theirs.list, theirs.endpoint.id, theirEvent),
    ...actionsOf(list, theirs.endpoint.id, theirEvent).filter(
      ([, action]) => action !== `${list}/create`,
    ),
    ['member', `${list}/events/${ourEvent}/replay`, { endpoint: theirs.endpoint.id }],
    ['member', `${list}/events/${theirEvent}/replay`, { endpoint: ours.endpoint.id }],
  ] as const
  for (const [, action, form] of actions) {
    t.match(await owner.post(action, form), { status: 404 }, action)
  }
  for (const page of [
    theirs.list,
    theirs.path,
    `${list}/${theirs.endpoint.id}`,
    `${list}/events/${theirEvent}`,
  ]) {
    const { status, html } = await owner.get(page)
    t.equal(status, 404)
    t.notMatch(html, 'hooks.example/theirs')
  }
  t.equal(await everything(theirs.organisation), before)
})

t.test('webhooks: more than 50 events of an endpoint are listed in pages', async (t) => {
  const { organisation, endpoint, path } = await setUp()
  const times = Array.from({ length: 51 }, (_, n) => minutesAgo(n + 1))
  const events = await record(organisation, times)
  for (const [place, event] of events.entries()) {
    await noteAttempt(sql, endpoint.id, event, { at: minutesAgo(place), error: 'one' })
    await noteAttempt(sql, endpoint.id, event, { at: minutesAgo(place - 1), attempt: 2 })
  }
  const viewer = await signIn(organisation, 'viewer')
  const first = await viewer.get(path)
  const shown = (html: string) => [...html.matchAll(/events\/(evt_\w+)"/g)].map(([, id]) => id)
  t.same(shown(first.html), events.slice(0, 50))
  const [, next = ''] = /rel="next" href="([^"]*)"/.exec(first.html) ?? []
  t.same(shown((await viewer.get(next)).html), events.slice(50))
})

t.test(
  'webhooks: a test event that arrives is shown with the response of its receiver',
  async (t) => {
    const receiver = await startReceiver((response) => {
      response.statusCode = 202
      response.end('taken <b>')
    })
    const { organisation, endpoint, list, path } = await setUp(receiver.url)
    await startTestService(url, { roles: ['worker'] })
    const member = await signIn(organisation, 'member')
    await member.post(`${path}/test`, { type: 'email.sent' })
    await until('it is delivered', async () => (await stateOf(sql, endpoint)).waiting === 0)
    const [received] = receiver.received
    const body = received?.body.toString() ?? ''
    const { id } = JSON.parse(body)
    const shown = await member.get(`${list}/events/${id}`)
    t.match(shown.text, '202')
    t.match(shown.text, 'taken <b>')
    t.match(shown.text, body.replace(/\s+/g, ' '))
    t.match((await member.get(list)).text, `enabled 100 % of 1`)
  },
)
