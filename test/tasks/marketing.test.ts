import t from 'tap'
import type { OutgoingEmail } from '../../src/providers/email.ts'
import { createSandbox } from '../../src/providers/sandbox/email.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, post, request } from '../fixtures/http.ts'
import { send, type TimelineEvent, untilShown } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const emails: OutgoingEmail[] = []
// Without PUBLIC_URL the links have the port that the API listens on.
const { base } = await startTestService(url, {
  roles: ['api', 'worker'],
  publicUrl: null,
  createEmailProvider(call) {
    const sandbox = createSandbox(call)
    return {
      ...sandbox,
      send(email) {
        emails.push(email)
        return sandbox.send(email)
      },
    }
  },
})
const organisation = await createOrganisation(sql)

const to = ['ann', 'bob', 'cy'].map((name) => `delivered+${name}@sandbox.postgram.test`)

t.test('three recipients get a copy each, whose link unsubscribes that one alone', async (t) => {
  const id = await send(base, organisation, {
    class: 'marketing',
    to: to.map((address, place) => `Reader ${place} <${address}>`),
    html: '<p>News. <a href="{{unsubscribe_url}}">Unsubscribe</a></p>',
    text: 'News. Unsubscribe: {{ unsubscribe_url }}',
  })
  const message = await untilShown(base, organisation, id, 'delivered')
  t.same(
    message.events.map(({ type }: TimelineEvent) => type),
    ['queued', 'sent', 'delivered', 'delivered', 'delivered'],
  )
  t.same(
    message.events
      .slice(2)
      .map(({ detail }: TimelineEvent) => detail.recipient)
      .sort(),
    to,
  )
  t.equal(message.to, to.join(', '))

  t.same(
    emails.map((email) => [email.copy, email.to]),
    to.map((address, place) => [place + 1, [`Reader ${place} <${address}>`]]),
  )
  const linksIn = emails.map(({ html, text, headers }) => {
    const [, inHtml] = /<a href="([^"]+)">/.exec(html ?? '') ?? []
    const [, inText] = /Unsubscribe: (\S+)$/.exec(text ?? '') ?? []
    const { 'List-Unsubscribe': inHeader, 'List-Unsubscribe-Post': how } = headers as Record<
      string,
      string
    >
    t.equal(inText, inHtml)
    t.equal(inHeader, `<${inHtml}>`)
    t.equal(how, 'List-Unsubscribe=One-Click')
    return inHtml ?? ''
  })
  t.equal(new Set(linksIn).size, 3)

  const [, second = ''] = linksIn
  t.ok(second.startsWith(`${base}/u/`))
  t.match(await get(second, null), { status: 200, text: to[1] })
  t.match(await request('POST', second, null, 'List-Unsubscribe=One-Click'), { status: 200 })
  const statuses = await Promise.all(
    to.map(async (address) => {
      const email = anEmail(organisation.domain, { to: address, class: 'marketing' })
      return (await post(`${base}/v1/emails`, organisation.liveKey, email)).status
    }),
  )
  t.same(statuses, [200, 422, 200])
  const { json } = await get(`${base}/v1/emails/${id}`, organisation.liveKey)
  t.match(json, { status: 'delivered', events: { length: 6 } })
  t.match(json.events.at(-1), { type: 'opted_out', detail: { recipient: to[1] } })
})

t.test('each copy has its own receipts', async (t) => {
  const bounce = 'bounce+copy@sandbox.postgram.test'
  const id = await send(base, organisation, {
    class: 'marketing',
    to: ['delivered+dee@sandbox.postgram.test', bounce],
  })
  const message = await until('the bounce and the delivery', async () => {
    const { json } = await get(`${base}/v1/emails/${id}`, organisation.liveKey)
    return json.status === 'bounced' && json.events.length === 4 && json
  })
  t.match(message.error, { code: 'hard_bounce' })
  const taken = await sql`
    select copy, attempts from ${takenBySandbox(sql)} s
    where message_id = core.decode_id('em', ${id}) order by copy`
  t.same(taken, [
    { copy: 1, attempts: 1 },
    { copy: 2, attempts: 1 },
  ])
})
