import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, errorOf, isRefused, post } from '../fixtures/http.ts'
import { acceptTogether, createOrganisationAt } from '../fixtures/messages.ts'
import type { TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { atTime } from '../fixtures/time.ts'

// A refusal names addresses that bounced for other organisations. The number is limited: otherwise anyone could
// find out for free which addresses do not exist.

const { url, sql } = await createDatabase()
const time = '2026-03-04T10:15:00Z'
const clock = { 'postgram.now': time }
await atTime(sql, time, (tx) => tx`select api.make_partitions()`)
const { base } = await startTestService(url, { roles: ['api'], clock })
await sql`
  insert into app.hard_bounces (email, cell, created_at)
  select 'gone' || n || '@c.example', 1, now() from generate_series(0, 1999) n`

const WORDS =
  'Refusals name at most 500 addresses an hour that bounced for other senders; retry after 2026-03-04T11:00:00.000Z.'
const limited = { words: WORDS, retryAfter: String(45 * 60) }

const gone = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => `gone${from + n}@c.example`)
const named = (from: number, count: number) =>
  gone(from, count)
    .toSorted()
    .map((email) => `${email}: hard_bounce`)

const emailOf = ({ domain }: TestOrganisation, addresses: string[]) =>
  anEmail(domain, {
    to: addresses.slice(0, 50),
    cc: addresses.slice(50, 100),
    bcc: addresses.slice(100),
  })
const send = (organisation: TestOrganisation, addresses: string[]) =>
  post(`${base}/v1/emails`, organisation.liveKey, emailOf(organisation, addresses))

const countOf = async ({ id }: TestOrganisation) => {
  const [row] = await sql`
    select b.addresses::integer, b.hour, b.exceeded_at from app.named_bounces b
    where b.organisation_id = core.decode_id('org', ${id})`
  return row
}

const isProbed = async () =>
  (await sql`select ok from ops.checks where name = 'address probes'`)[0]?.ok === false

t.test(
  'refusals name 500 bounces of others in an hour, and then none until the next hour',
  async (t) => {
    const organisation = await createOrganisationAt(sql, time)
    for (const from of [0, 150, 300]) {
      isRefused(t, await send(organisation, gone(from, 150)), 'recipient_suppressed', {
        to: named(from, 150),
      })
    }
    isRefused(t, await send(organisation, gone(450, 50)), 'recipient_suppressed', {
      to: named(450, 50),
    })
    t.match(await countOf(organisation), { addresses: 500, exceededAt: null })
    isRefused(t, await send(organisation, gone(500, 1)), 'rate_limited', undefined, limited)
    t.equal((await countOf(organisation))?.addresses, 501)
    t.equal(
      (await send(organisation, ['fine@c.example'])).status,
      200,
      'other addresses are accepted',
    )

    const other = await createOrganisationAt(sql, time)
    isRefused(t, await send(other, gone(500, 1)), 'recipient_suppressed', { to: named(500, 1) })

    await sql`update app.named_bounces set hour = hour - interval '1 hour'`
    isRefused(t, await send(organisation, gone(0, 1)), 'recipient_suppressed', { to: named(0, 1) })
    t.equal((await countOf(organisation))?.addresses, 1)
  },
)

t.test('an own suppression does not count, with or without a bounce of others', async (t) => {
  const organisation = await createOrganisationAt(sql, time)
  await post(`${base}/v1/suppressions`, organisation.liveKey, { email: 'gone0@c.example' })
  await post(`${base}/v1/suppressions`, organisation.liveKey, { email: 'own@c.example' })
  isRefused(
    t,
    await send(organisation, ['gone0@c.example', 'own@c.example']),
    'recipient_suppressed',
    { to: ['gone0@c.example: manual', 'own@c.example: manual'] },
  )
  t.equal(await countOf(organisation), undefined)
})

t.test('over the limit no other refusal reveals whether an address bounced', async (t) => {
  const organisation = await createOrganisationAt(sql, time, { emailsIncluded: 10 })
  await post(`${base}/v1/suppressions`, organisation.liveKey, { email: 'own@c.example' })
  for (const from of [0, 150, 300, 450]) await send(organisation, gone(from, 150))
  const probes = [
    ['own@c.example', 'gone0@c.example'],
    ['own@c.example', 'fine@c.example'],
    [...gone(0, 1), ...Array.from({ length: 20 }, (_, n) => `fine${n}@c.example`)],
    // More than the remaining allowance.
    Array.from({ length: 21 }, (_, n) => `fine${n}@c.example`),
  ]
  for (const addresses of probes) {
    isRefused(t, await send(organisation, addresses), 'rate_limited', undefined, limited)
  }
})

t.test(
  'a batch names bounces of others until the limit, and refuses the items beyond it',
  async (t) => {
    const organisation = await createOrganisationAt(sql, time)
    const emails = [
      ...[0, 150, 300, 450].map((from) => emailOf(organisation, gone(from, 150))),
      anEmail(organisation.domain, { to: 'fine@c.example' }),
      emailOf(organisation, gone(600, 1)),
    ]
    const { json } = await post(`${base}/v1/emails/batch`, organisation.liveKey, { emails })
    t.strictSame(
      json.results.map(
        ({ ok, error }: { ok: boolean; error: { code: string } }) => ok || error.code,
      ),
      [...Array(3).fill('recipient_suppressed'), 'rate_limited', true, 'rate_limited'],
    )
    t.strictSame(json.results[3].error, errorOf('rate_limited', undefined, WORDS))
  },
)

t.test('calls of one transaction share the limit', async (t) => {
  const organisation = await createOrganisationAt(sql, time)
  const responses = await acceptTogether(
    sql,
    [0, 150, 300, 450, 600].map((from) => ({
      organisation,
      key: `k${from}`,
      email: emailOf(organisation, gone(from, 150)),
    })),
  )
  t.strictSame(
    responses.map(({ code }) => code),
    [...Array(3).fill('recipient_suppressed'), ...Array(2).fill('rate_limited')],
  )
})

t.test('a test key gets no information about bounces', async (t) => {
  const organisation = await createOrganisationAt(sql, time)
  const email = emailOf(organisation, gone(0, 150))
  t.equal((await post(`${base}/v1/emails`, organisation.testKey, email)).status, 200)
  t.equal(await countOf(organisation), undefined)
})

t.test('ops shows the organisations over the limit within a day', async (t) => {
  await sql`update app.named_bounces set exceeded_at = null`
  t.notOk(await isProbed())
  const organisation = await createOrganisationAt(sql, time)
  await sql`
    insert into app.named_bounces (organisation_id, hour, addresses, exceeded_at)
    values (core.decode_id('org', ${organisation.id}), now(), 501, now() - interval '23 hours')`
  t.ok(await isProbed())
  const found =
    await sql`select id from ops.organisations where probed_at > now() - interval '1 day'`
  t.same(found, [{ id: organisation.id }])
})
