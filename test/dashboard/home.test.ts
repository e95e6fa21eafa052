import t from 'tap'
import { signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { createEndpoint } from '../fixtures/webhooks.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

/** Writes the sums of a day, as the clock does from the changes of status. */
const addDay = (organisation: string, daysAgo: number, sums: Record<string, number>) => sql`
  insert into app.daily_volume (day, organisation_id, channel, class, tag, accepted, sent, delivered, bounced, complained,
    failed, expired, rejected)
  values ((now() at time zone 'UTC')::date - ${daysAgo}::integer, core.decode_id('org', ${organisation}), 'email',
    'transactional', null, ${sums.accepted ?? 0}, ${sums.sent ?? 0}, ${sums.delivered ?? 0}, ${sums.bounced ?? 0},
    ${sums.complained ?? 0}, 0, 0, 0)`

t.test('Home of a new organisation: shows the first request and what is missing', async (t) => {
  const { id } = await createOrganisation(sql)
  const { text } = await (await signInAs(sql, base, { organisation: id, role: 'viewer' })).get(
    `/dashboard/${id}`,
  )
  t.match(text, 'Send the first message')
  t.match(text, 'curl -s https://postgram.test/v1/emails')
  t.match(text, 'A domain is verified.')
  t.notMatch(text, 'Needs attention')
})

t.test('Home: shows outcomes, rates and usage of the last 30 days', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id } = organisation
  await sql`select ops.create_plan('hundred', 'Hundred', 0, 100, 100, 10)`
  await sql`select ops.set_plan(${id}, 'hundred')`
  await sql`
    update app.allowances set emails_used = 85 where organisation_id = core.decode_id('org', ${id})`
  await sql`
    insert into app.messages (id, organisation_id, channel, mode, class, status, from_address, to_address, subject, tags,
      recipients, created_at)
    values (core.new_id(now()), core.decode_id('org', ${id}), 'email', 'live', 'transactional', 'delivered', 'a@b.example',
      'c@d.example', 'Hello', '{}', 1, now())`
  await addDay(id, 1, { accepted: 1000, sent: 1000, delivered: 900, bounced: 50, complained: 2 })
  await addDay(id, 29, { accepted: 1000, sent: 1000, delivered: 1000 })
  await addDay(id, 30, { accepted: 7777, sent: 7777 })
  const browser = await signInAs(sql, base, { organisation: id, role: 'viewer' })
  const { text, html } = await browser.get(`/dashboard/${id}`)
  t.match(text, 'Accepted 2 000')
  t.match(text, 'Delivered 1 900')
  t.match(text, 'Bounce rate 2.50 %')
  t.match(text, 'Complaint rate 0.10 %')
  t.match(text, '0.1 %: from three complaints on, the service pauses sending')
  t.match(text, '85 of 100 emails of the plan are used.')
  t.match(html, '<svg')
})

t.test('Home: counts messages once, before and after the clock sums them', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id } = organisation
  const browser = await signInAs(sql, base, { organisation: id, role: 'viewer' })
  await send(base, await createOrganisation(sql))
  await send(base, organisation)
  t.match((await browser.get(`/dashboard/${id}`)).text, 'Accepted 1 Delivered 0')
  await sql`select api.sum_status_changes()`
  t.match((await browser.get(`/dashboard/${id}`)).text, 'Accepted 1 Delivered 0')
  await send(base, organisation)
  t.match((await browser.get(`/dashboard/${id}`)).text, 'Accepted 2 Delivered 0')
})

t.test('Home: says that test messages are not counted', async (t) => {
  const organisation = await createOrganisation(sql)
  const browser = await signInAs(sql, base, { organisation: organisation.id, role: 'viewer' })
  await send(base, { ...organisation, liveKey: organisation.testKey })
  const { text } = await browser.get(`/dashboard/${organisation.id}`)
  t.match(text, /Messages of test keys are not counted\. .*Accepted 0/)
})

t.test('Home: problems come first, each with a link to its page', async (t) => {
  const organisation = await createOrganisation(sql)
  const { id } = organisation
  await sql`select ops.pause(${id}, 'under review')`
  const endpoint = await createEndpoint(sql, organisation)
  await sql`select ops.disable_webhook_endpoint(${endpoint.id}, 'a test')`
  await sql`
    insert into app.domains (id, organisation_id, name, records)
    values (core.new_id(now()), core.decode_id('org', ${id}), '"quoted".example',
      '[{"type": "TXT", "name": "<b>", "required": true, "status": "missing"}]')`
  const browser = await signInAs(sql, base, { organisation: id, role: 'viewer' })
  const { text, html } = await browser.get(`/dashboard/${id}`)
  t.match(text, 'Sending is paused. under review')
  t.match(text, 'The domain "quoted".example is pending: TXT <b>: missing')
  t.match(text, /The webhook endpoint \S+ is disabled since/)
  for (const page of ['domains', 'webhooks', 'messages?status=complained']) {
    t.match(html, `href="/dashboard/${id}/${page}"`)
  }
})
