import t from 'tap'
import { ageSignIn, signInAs, signInAsOperator } from '../fixtures/dashboard.ts'
import { createDatabase, serviceCall, untilLocked } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { sendHeartbeat, startTestService } from '../fixtures/service.ts'
import { createEndpoint, createEndpoints } from '../fixtures/webhooks.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const operator = await signInAsOperator(sql, base)

const PAGES = [
  '/operator',
  '/operator/stuck',
  '/operator/organisations',
  '/operator/plans',
  '/operator/domains',
  '/operator/endpoints',
  '/operator/ledger',
  '/operator/people',
]

const stateOf = async (id: string) =>
  (await sql<{ state: string }[]>`select state from ops.organisations where id = ${id}`)[0]?.state

const lastActor = async (action: string) =>
  (
    await sql<{ actor: string }[]>`
      select actor from ops.audit where action = ${action} order by at desc limit 1`
  )[0]?.actor

t.test('operator pages: an operator sees each, other users get 404', async (t) => {
  const organisation = await createOrganisation(sql)
  const owner = await signInAs(sql, base, { organisation: organisation.id, role: 'owner' })
  for (const path of [...PAGES, `/operator/organisations/${organisation.id}`]) {
    t.equal((await operator.get(path)).status, 200, path)
    const theirs = await owner.get(path)
    t.equal(theirs.status, 404, path)
    t.notMatch(theirs.text, 'Processes')
  }
  t.equal((await operator.get('/operator/organisations/org_none')).status, 404)
  const refused = await owner.post(`/operator/organisations/${organisation.id}/pause`, {
    note: 'x',
  })
  t.equal(refused.status, 404)
  t.equal(await stateOf(organisation.id), 'active')
})

t.test(
  'Ledger check: shows an organisation whose credits differ from its newest balance',
  async (t) => {
    const { id } = await createOrganisation(sql)
    await sql`select ops.grant_credits(${id}, 500, 'invoice 17')`
    t.match((await operator.get('/operator/ledger')).text, 'The credits of each organisation equal')
    await sql`update app.allowances set sms_credits = 400 where organisation_id = core.decode_id('org', ${id})`
    t.match((await operator.get('/operator/ledger')).text, `${id} 400 500`)
    await sql`update app.allowances set sms_credits = 500 where organisation_id = core.decode_id('org', ${id})`
  },
)

t.test(
  'Ledger check: the check of the whole ledger shows a wrong balance in its midst',
  async (t) => {
    const { id } = await createOrganisation(sql)
    for (const credits of [500, 300])
      await sql`select ops.grant_credits(${id}, ${credits}, 'invoice')`
    const whole = () => operator.post('/operator/ledger/check')
    t.match((await whole()).text, 'The whole ledger agrees')
    const change = (balance: number) => sql`
    update app.credit_ledger l set balance = ${balance}
    where l.organisation_id = core.decode_id('org', ${id}) and l.credits = 500`
    await change(501)
    t.match((await whole()).text, `${id} 800 800 0 0 1 0`)
    t.notMatch((await operator.get('/operator/ledger')).text, id)
    await change(500)
    const owner = await signInAs(sql, base, { organisation: id, role: 'owner' })
    t.equal((await owner.post('/operator/ledger/check')).status, 404)
  },
)

t.test('Now: shows checks with hints, processes and the queue', async (t) => {
  const { text } = await operator.get('/operator')
  t.match(text, 'no worker is running; start one')
  t.match(text, /api [\w.-]+, process \d+/)
  t.match(text, 'webhook_deliveries')
  t.notMatch(text, 'rows of the audit were changed')
  await sql`update app.audit_chain set verified_at = now(), is_complete = false`
  t.match((await operator.get('/operator')).text, 'rows of the audit were changed or removed')
  await sql`select api.verify_audit()`
  t.notMatch((await operator.get('/operator')).text, 'rows of the audit were changed')
})

t.test(
  'an organisation is created, paused, suspended and given a plan, as ops does it',
  async (t) => {
    await sql`select ops.create_plan('growth', 'Growth', 499, 50000, 1000, 10)`
    const created = await operator.post('/operator/organisations/create', {
      name: '"Ärzte" <script>alert(1)</script>',
      owner_email: 'new@example.com',
      plan: 'starter',
    })
    t.match(created.text, 'The organisation is created.')
    t.match(created.html, '&lt;script>alert(1)&lt;/script>')
    const [{ id }] = await sql<[{ id: string }]>`
    select id from ops.organisations where owner_email = 'new@example.com'`
    const path = `/operator/organisations/${id}`
    t.equal(await lastActor('create_organisation'), 'operator@example.com')

    await operator.post(`${path}/pause`, { note: 'under review' })
    t.equal(await stateOf(id), 'paused')
    t.match((await operator.get(path)).text, 'under review')
    await operator.post(`${path}/resume`)
    await operator.post(`${path}/suspend`, { note: 'unpaid' })
    t.equal(await stateOf(id), 'suspended')
    await operator.post(`${path}/reinstate`)
    t.equal(await stateOf(id), 'active')
    await operator.post(`${path}/set-plan`, { plan: 'growth' })
    await operator.post(`${path}/grant-credits`, { credits: '500', note: 'invoice 17' })
    const page = await operator.get(path)
    t.match(page.text, '500 credits')
    t.match(page.text, 'invoice 17')
    t.equal(await lastActor('grant_credits'), 'operator@example.com')

    const refused = await operator.post(`${path}/grant-credits`, {
      credits: 'many',
      note: 'a note',
    })
    t.match(refused, { status: 422, text: /must be a whole number/ })
    t.match(refused.html, 'value="a note"')
    t.match(await operator.post(`${path}/pause`, { note: '' }), {
      status: 422,
      text: /The reason must be/,
    })

    t.match((await operator.get('/operator/organisations?q=NEW@example')).text, 'growth')
    t.match(
      (await operator.get('/operator/organisations?q=nothing-like-it')).text,
      'No organisation matches',
    )
  },
)

t.test('a key is made and revoked with a fresh sign-in only', async (t) => {
  const organisation = await createOrganisation(sql)
  const path = `/operator/organisations/${organisation.id}`
  const email = 'keys-operator@example.com'
  const fresh = await signInAsOperator(sql, base, email)
  const made = await fresh.post(`${path}/create-key`, { mode: 'live' })
  const [key = ''] = /sk_live_[0-9a-f]{64}/.exec(made.text) ?? []
  t.match(await get(`${base}/v1/usage`, key), { status: 200 })
  await fresh.post(`${path}/revoke-key`, { prefix: key.slice(0, 16) })
  t.match(await get(`${base}/v1/usage`, key), { status: 401 })
  await ageSignIn(sql, email)
  t.match((await fresh.post(`${path}/create-key`, { mode: 'live' })).text, 'Sign in again')
})

t.test(
  'an operator views an organisation, may change nothing there, and is in its audit',
  async (t) => {
    const organisation = await createOrganisation(sql)
    t.equal((await operator.get(`/dashboard/${organisation.id}`)).status, 404)
    const home = await operator.post(`/operator/organisations/${organisation.id}/view`)
    t.match(home, { status: 200, text: /You view this organisation as an operator/ })
    const refused = await operator.post(`/dashboard/${organisation.id}/keys/create`, {
      mode: 'live',
      scopes: ['read'],
    })
    t.equal(refused.status, 403)
    t.match(
      await sql`select actor, organisation from ops.audit where action = 'view_organisation'`,
      [{ actor: 'operator@example.com', organisation: organisation.id }],
    )
  },
)

t.test(
  'a user who is an operator no longer views no organisation, in a session from before',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const email = 'former-operator@example.com'
    const former = await signInAsOperator(sql, base, email)
    const home = await former.post(`/operator/organisations/${organisation.id}/view`)
    t.match(home, { status: 200, text: /You view this organisation as an operator/ })
    // A user without any role would be deleted.
    const { id: other } = await createOrganisation(sql)
    await sql`select ops.invite(${other}, ${email}, 'viewer')`
    await sql`select ops.make_operator(${email}, false)`
    t.equal((await former.get(`/dashboard/${organisation.id}/messages`)).status, 404)
  },
)

t.test('Stuck: messages are grouped by reason and retried', async (t) => {
  const organisation = await createOrganisation(sql)
  await post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain))
  await post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain))
  await sql`
    update app.messages set created_at = created_at - interval '2 minutes'
    where organisation_id = core.decode_id('org', ${organisation.id})`
  const { text, html } = await operator.get('/operator/stuck')
  t.match(text, '2 × ')
  const [, messages = ''] = /name="messages" value="(em_\w+ em_\w+)"/.exec(html) ?? []
  t.match((await operator.post('/operator/stuck/retry', { messages })).text, 'Retried: 2.')
  t.equal(await lastActor('retry_message'), 'operator@example.com')
})

t.test('Stuck: in a long queue, a sentence does without the place of its message', async (t) => {
  const organisation = await createOrganisation(sql)
  await sendHeartbeat(serviceCall(url))
  await sql`
    insert into graphile_worker._private_jobs (task_id, payload)
    select id, '{}' from graphile_worker._private_tasks, generate_series(1, 1001)
    where identifier = 'send_email'`
  t.teardown(() => sql`delete from graphile_worker._private_jobs where payload::text = '{}'`)
  await post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain))
  await sql`
    update app.messages set created_at = created_at - interval '2 minutes'
    where organisation_id = core.decode_id('org', ${organisation.id})`
  t.match((await operator.get('/operator/stuck')).text, 'a queue of more than 1 000 messages')
})

t.test('Stuck: the messages to retry are locked in the order of their IDs', async (t) => {
  const organisation = await createOrganisation(sql)
  const accepted = []
  for (const _ of [1, 2]) {
    accepted.push(
      await post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain)),
    )
  }
  const [first = '', second = ''] = accepted.map(({ json }) => String(json.id))
  const { retried } = await sql.begin(async (tx) => {
    await tx`select from app.messages where id = core.decode_id('em', ${first}) for update`
    const retried = operator.post('/operator/stuck/retry', { messages: `${second} ${first}` })
    await untilLocked(sql, 1, 'dashboard_retry_stuck')
    // It would fail if the second were locked before the first.
    await tx`select from app.messages where id = core.decode_id('em', ${second}) for update nowait`
    return { retried }
  })
  t.match((await retried).text, 'Retried: 2.')
})

t.test('Plans: a plan is created and changed; a wrong number stays in its field', async (t) => {
  const terms = {
    plan: 'small',
    name: 'Small',
    price_rand: '99',
    emails_included: '1000',
    sms_included: '10',
    domains_included: '1',
    test_messages_daily: '100',
  }
  t.match((await operator.post('/operator/plans/create', terms)).text, 'The plan is created.')
  const refused = await operator.post('/operator/plans/change', { ...terms, price_rand: 'free' })
  t.match(refused, { status: 422, text: /must be a whole number/, html: /value="free"/ })
  await operator.post('/operator/plans/change', { ...terms, price_rand: '149' })
  t.match(await sql`select price_rand from ops.plans where id = 'small'`, [{ priceRand: 149 }])
})

t.test('Endpoints failing: a disabled endpoint is enabled', async (t) => {
  const organisation = await createOrganisation(sql)
  const endpoint = await createEndpoint(sql, organisation)
  await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
  t.match((await operator.get('/operator/endpoints')).text, 'disabled')
  const enabled = await operator.post('/operator/endpoints/enable', { endpoint: endpoint.id })
  t.match(enabled.text, 'The endpoint is enabled.')
  t.equal(await lastActor('enable_webhook_endpoint'), 'operator@example.com')
})

t.test('Endpoints failing: the events that an endpoint missed are counted up to 100', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id } = await createEndpoint(sql, organisation)
  await sql`select ops.disable_webhook_endpoint(${id}, 'a test')`
  await sql`
    insert into app.webhook_events (id, organisation_id, type, message_id, body, occurred_at)
    select core.new_id(now()), core.decode_id('org', ${organisation.id}), 'email.sent', gen_random_uuid(), '{}', now()
    from generate_series(1, 101)`
  const shown = async () =>
    (await operator.get('/operator/endpoints')).text.match(
      `${organisation.id} disabled – ([^–]*) now`,
    )
  t.match(await shown(), { 1: 'more than 100' })
  await sql`
    insert into app.webhook_attempts (endpoint_id, event_id, attempt, status, duration_ms, started_at)
    select core.decode_id('we', ${id}), e.id, 1, 200, 1, now()
    from app.webhook_events e
    where e.organisation_id = core.decode_id('org', ${organisation.id})
    limit 2`
  t.match(await shown(), { 1: '99' })
  await sql`delete from app.webhook_endpoints where id = core.decode_id('we', ${id})`
})

t.test('Endpoints failing: more than 50 endpoints are shown on several pages', async (t) => {
  const endpoints = await createEndpoints(sql, 51, () => 'https://hooks.example/')
  const ids = endpoints.map(({ id }) => id)
  await sql`
    update app.webhook_endpoints set disabled_at = now()
    where id in (select core.decode_id('we', unnest(${ids}::text[])))`
  const idsOn = (html: string) => [...new Set(html.match(/(?<=value=")we_\w{26}/g))]
  const first = await operator.get('/operator/endpoints')
  const [, next = ''] = /href="([^"]*[?]after=we_\w+)"/.exec(first.html) ?? []
  const second = await operator.get(next)
  t.equal(idsOn(first.html).length, 50)
  t.same(ids.sort(), [...idsOn(first.html), ...idsOn(second.html)].sort())
  t.notMatch(second.text, 'More endpoints')
})

t.test(
  'a refused form of an organisation shows what was typed in its own fields only',
  async (t) => {
    const { id } = await createOrganisation(sql)
    const path = `/operator/organisations/${id}`
    const form = { credits: 'many', note: 'invoice 7' }
    const refused = await operator.post(`${path}/grant-credits`, form)
    t.equal(refused.status, 422)
    t.same(
      [...refused.html.matchAll(/id="(field-[\w-]*note)"[^>]* value="([^"]+)"/g)].map(
        ([, field, value]) => [field, value],
      ),
      [['field-grant-credits-note', 'invoice 7']],
    )
  },
)

t.test(
  'People: an export shows the records, the clock makes an erasure confirmed by the address',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const to = 'jane@example.org'
    await post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain, { to }))
    const shown = await operator.post('/operator/people/export', { person: to })
    t.match(shown.text, `records of ${to}`)
    t.match(shown.text, organisation.id)
    const refused = await operator.post('/operator/people/erase', {
      person: to,
      again: 'john@example.org',
    })
    t.match(refused, { status: 422, text: /is not the same/ })
    t.match((await operator.post('/operator/people/export', { person: to })).text, organisation.id)
    const erase = () =>
      operator.post('/operator/people/erase', { person: 'Jane@example.org', again: to })
    t.match(
      (await erase()).text,
      /The erasure is requested\..* jane@example\.org .* waits for the clock/,
    )
    await erase()
    t.match(await operator.post('/operator/people/erase', { person: 'jane', again: 'jane' }), {
      status: 422,
      text: /neither an email address nor a number/,
    })
    const clock = serviceCall(url)
    t.equal(await clock('erase_people', {}), 1)
    t.equal(await clock('erase_people', {}), 0, 'the second request is the same')
    const { text } = await operator.get('/operator/people')
    t.match(text, /\(erased\) .* operator@example\.com .* erased from \d+ rows/)
    t.notMatch(text, to)
    t.equal(await lastActor('erase_person'), 'operator@example.com')
    t.notMatch(
      (await operator.post('/operator/people/export', { person: to })).text,
      organisation.id,
    )
  },
)
