import t from 'tap'
import { createMailgun } from '../../../src/providers/mailgun/index.ts'
import { createDatabase } from '../../fixtures/database.ts'
import { anEmail, get, isRefused, post, request } from '../../fixtures/http.ts'
import { callbackOf, mailgunEvent, sign, startMailgun } from '../../fixtures/mailgun.ts'
import { messageOf, untilShown } from '../../fixtures/messages.ts'
import { createOrganisation } from '../../fixtures/organisation.ts'
import { startTestService } from '../../fixtures/service.ts'
import { until } from '../../fixtures/time.ts'

const { url, sql } = await createDatabase()
const mailgun = await startMailgun()
const { base } = await startTestService(url, {
  hasSandboxMessages: true,
  createEmailProvider: () =>
    createMailgun({
      ...mailgun.account,
      callbackUrl: 'https://postgram.test/providers/mailgun/events',
    }),
})
const organisation = await createOrganisation(sql)
const { liveKey } = organisation
const DOMAIN = 'shop.example'

const verify = (id: string) => post(`${base}/v1/domains/${id}/verify`, liveKey, {})
const accept = async (overrides: Record<string, unknown>) => {
  const { status, json, text } = await post(
    `${base}/v1/emails`,
    liveKey,
    anEmail(DOMAIN, overrides),
  )
  t.equal(status, 200, text)
  return json.id as string
}
const becomes = (id: string, status: string) => untilShown(base, organisation, id, status)
const report = (event: string, message: string, overrides: Record<string, unknown>) => {
  const body = callbackOf(
    mailgunEvent(event, `${message}@mail.${DOMAIN}`, overrides),
    sign({ key: mailgun.account.signingKey }),
  )
  return post(`${base}/providers/mailgun/events`, null, body)
}

t.test('mailgun: a domain is verified once Mailgun finds its records as well', async (t) => {
  const { status, json } = await post(`${base}/v1/domains`, liveKey, { name: DOMAIN })
  t.equal(status, 201)
  const there = mailgun.domains.all.get(DOMAIN)
  t.same([...(there?.keys.keys() ?? [])], ['pg1', 'pg2'])
  t.equal(there?.mailFrom, `mail.${DOMAIN}`)
  t.equal(there?.webhooks.size, 6)
  t.equal((await verify(json.id)).json.status, 'pending', 'Mailgun has not found the records yet')
  Object.assign(there ?? {}, { isPublished: true })
  t.equal((await verify(json.id)).json.status, 'verified')
})

t.test('mailgun: an email goes from the request to the receipt of its delivery', async (t) => {
  const id = await accept({ to: 'ann@there.example', tags: ['welcome'] })
  await becomes(id, 'sent')
  const [taken] = mailgun.messages.taken.filter(({ form }) =>
    form.get('h:Message-Id')?.[0]?.includes(id),
  )
  t.equal(taken?.domain, DOMAIN)
  t.same(taken?.form.get('to'), ['ann@there.example'])
  t.same(taken?.form.get('o:tag'), ['welcome'])
  t.equal((await report('delivered', id, { recipient: 'ann@there.example' })).status, 200)
  const message = await becomes(id, 'delivered')
  t.same(
    message.events.map(({ type }: { type: string }) => type),
    ['queued', 'sent', 'delivered'],
  )
})

t.test('mailgun: deleting the suppression of a bounce deletes it at Mailgun', async (t) => {
  const id = await accept({ to: 'gone@there.example' })
  await becomes(id, 'sent')
  mailgun.domains.all.get(DOMAIN)?.refused.add('complaints gone@there.example')
  await report('complained', id, { recipient: 'gone@there.example' })
  await becomes(id, 'complained')
  const email = anEmail(DOMAIN, { to: 'gone@there.example' })
  isRefused(t, await post(`${base}/v1/emails`, liveKey, email), 'recipient_suppressed', {
    to: ['gone@there.example: complaint'],
  })
  const { json } = await get(`${base}/v1/suppressions?email=gone@`, liveKey)
  t.match(json.data, [{ reason: 'complaint', messageId: id }])
  await request('DELETE', `${base}/v1/suppressions/${json.data[0].id}`, liveKey)
  await until(
    'Mailgun to forget it',
    async () => mailgun.domains.all.get(DOMAIN)?.refused.size === 0,
  )
  t.equal((await post(`${base}/v1/emails`, liveKey, email)).status, 200)
})

t.test('mailgun: marketing is sent as copies that do not show each other', async (t) => {
  const id = await accept({
    to: ['one@there.example', 'two@there.example'],
    class: 'marketing',
    html: '<a href="{{unsubscribe_url}}">leave</a>',
  })
  await becomes(id, 'sent')
  const copies = mailgun.messages.taken.filter(({ form }) =>
    form.get('h:Message-Id')?.[0]?.includes(`${id}.`),
  )
  t.same(copies.map(({ form }) => form.get('to')).sort(), [
    ['one@there.example'],
    ['two@there.example'],
  ])
  const links = copies.map(({ form }) => form.get('h:List-Unsubscribe')?.[0]?.slice(1, -1) ?? '')
  t.equal(new Set(links).size, 2)
  for (const [place, { form }] of copies.entries()) {
    t.same(form.get('h:List-Unsubscribe-Post'), ['List-Unsubscribe=One-Click'])
    t.match(form.get('html')?.[0], `href="${links[place]}"`)
    t.same(form.get('o:tracking'), ['no'])
  }
})

t.test('mailgun: a sandbox message is not sent to Mailgun', async (t) => {
  const before = mailgun.messages.taken.length
  const id = await accept({ to: 'delivered@sandbox.postgram.test' })
  await becomes(id, 'delivered')
  t.match(await messageOf(sql, id), { provider: 'sandbox' })
  t.equal(mailgun.messages.taken.length, before)
})

t.test('mailgun: no domain is added or removed while Mailgun does not respond', async (t) => {
  const list = async () => (await get(`${base}/v1/domains`, liveKey)).json.data
  const before = await list()
  const trouble = { isCarriedOut: true, answer: { status: 503, body: 'try later' } }
  for (const asked of [/^POST \/v4\/domains$/, /^PUT .*tracking/, /^POST .*webhooks/]) {
    mailgun.expectTrouble(asked, trouble)
    const answer = await post(`${base}/v1/domains`, liveKey, { name: 'half.example' })
    isRefused(t, answer, 'email_provider_unavailable')
    t.strictSame(await list(), before)
  }
  const added = await post(`${base}/v1/domains`, liveKey, { name: 'half.example' })
  t.equal(added.status, 201, 'the next call completes the creation')

  mailgun.expectTrouble(/^DELETE \/v3\/domains/, trouble)
  const path = `${base}/v1/domains/${added.json.id}`
  isRefused(t, await request('DELETE', path, liveKey), 'email_provider_unavailable')
  t.strictSame((await get(path, liveKey)).json, added.json)
  t.equal((await request('DELETE', path, liveKey)).status, 200)
  t.notOk(mailgun.domains.all.has('half.example'))
})

t.test('mailgun: DKIM keys rotate at Mailgun', async (t) => {
  await sql`select ops.rotate_dkim(${DOMAIN})`
  const there = mailgun.domains.all.get(DOMAIN)
  await until('the rotation', async () => {
    const rows = await sql`
      select from app.dkim_keys k join app.domains d on d.id = k.domain_id
      where d.name = ${DOMAIN} and k.selector = 'pg2' and k.state = 'active'`
    return rows.length === 1
  })
  const active = [...(there?.keys ?? [])].filter(([, { isActive }]) => isActive)
  t.same(
    active.map(([selector]) => selector),
    ['pg2'],
  )
  const [zone] = await sql`select value from ops.dns_zone where name like 'pg3.%'`
  t.equal(zone?.value, there?.keys.get('pg3')?.value)
})
