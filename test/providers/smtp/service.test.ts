import t from 'tap'
import { createDatabase } from '../../fixtures/database.ts'
import { anEmail, get, post, request } from '../../fixtures/http.ts'
import { createOrganisation } from '../../fixtures/organisation.ts'
import { startTestService } from '../../fixtures/service.ts'
import {
  headerOf,
  type Mail,
  noMailReader,
  noSmtpServer,
  readMails,
  secrets,
  smtpTo,
  startSmtpServer,
} from '../../fixtures/smtp.ts'
import { until } from '../../fixtures/time.ts'

const skip = noSmtpServer || noMailReader

t.test('smtp: an organisation sends through a relay from its own domain', { skip }, async (t) => {
  const { url, sql } = await createDatabase()
  const server = await startSmtpServer(t)
  const { base } = await startTestService(url, {
    createEmailProvider: () => smtpTo(server.address),
    secrets,
  })
  const { liveKey } = await createOrganisation(sql)
  const added = await post(`${base}/v1/domains`, liveKey, { name: 'shop.example' })
  t.match(added, { status: 201, json: { status: 'pending' } })
  t.match(added.json.records.slice(3, 5), [
    { type: 'MX', name: 'mail.shop.example', value: '10 relay.example' },
    { type: 'TXT', name: 'mail.shop.example', value: 'v=spf1 a:relay.example ~all' },
  ])
  const verified = await request('POST', `${base}/v1/domains/${added.json.id}/verify`, liveKey)
  t.match(verified, { status: 200, json: { status: 'verified' } })

  const accept = async (overrides: Record<string, unknown>) => {
    const answer = await post(
      `${base}/v1/emails`,
      liveKey,
      anEmail('shop.example', { html: '<p>Grüße</p>', text: 'Grüße', ...overrides }),
    )
    t.equal(answer.status, 200)
    return answer.json.id as string
  }
  /** The mails of these emails, once the relay has all; their signatures are checked against the published keys. */
  const arrived = async (ids: string[], count: number): Promise<Mail[]> => {
    const mails = await until('the mails', async () => {
      const raw = (await server.mails()).filter((mail) => ids.some((id) => mail.includes(id)))
      return raw.length === count && raw
    })
    const keys = await sql<{ selector: string; value: string; privateKey: string | null }[]>`
      select k.selector, k.value, k.private_key
      from app.dkim_keys k join app.domains d on d.id = k.domain_id and d.name = 'shop.example'`
    t.notOk(keys.some(({ privateKey }) => !privateKey || privateKey.includes('PRIVATE')))
    const published = keys.map(({ selector, value }) => [
      `${selector}._domainkey.shop.example`,
      value,
    ])
    return readMails(mails, Object.fromEntries(published))
  }

  const toTwo = await accept({ to: ['ann@there.example', 'refused@there.example'] })
  const toMany = await accept({
    to: ['bob@there.example', 'carol@there.example'],
    class: 'marketing',
    html: '<a href="{{unsubscribe_url}}">No more</a>',
    text: 'No more: {{unsubscribe_url}}',
  })
  const mails = await arrived([toTwo, toMany], 3)
  for (const mail of mails) {
    t.match(mail.dkim, { isValid: true, domain: 'shop.example', selector: 'pg1' })
    t.equal(headerOf(mail, 'return-path'), '<bounces@mail.shop.example>')
    t.same(
      mail.parts.map(({ type }) => type),
      ['text/plain', 'text/html'],
    )
  }

  const copies = mails.filter((mail) => mail.raw.includes(toMany))
  t.equal(copies.length, 2)
  const links = new Set<string>()
  for (const copy of copies) {
    t.equal(headerOf(copy, 'to'), headerOf(copy, 'envelope-to'), 'it names no other recipient')
    t.equal(headerOf(copy, 'list-unsubscribe-post'), 'List-Unsubscribe=One-Click')
    const [, link = ''] = /^<(https:.*)>$/.exec(headerOf(copy, 'list-unsubscribe') ?? '') ?? []
    for (const { text } of copy.parts) t.ok(text.includes(link))
    t.ok(copy.dkim?.signed.includes('list-unsubscribe'))
    t.ok(copy.dkim?.signed.includes('list-unsubscribe-post'))
    links.add(link)
  }
  t.equal(links.size, 2)

  const message = await until('the refusal to be recorded', async () => {
    const { json } = await get(`${base}/v1/emails/${toTwo}`, liveKey)
    return json.events.some(({ type }: { type: string }) => type === 'failed') && json
  })
  t.match(message.events.at(-1).detail, { recipient: 'refused@there.example', code: '550 5.1.1' })

  const later = await accept({ to: 'later@there.example' })
  const deferred = await until('a deferral', async () => {
    const { json } = await get(`${base}/v1/emails/${later}`, liveKey)
    return json.events.find(({ type }: { type: string }) => type === 'deferred')
  })
  t.match(deferred.detail, { provider: 'smtp', code: '451 4.2.0', text: 'Not now' })
  const [seen] = await sql<{ why: string; ok: boolean }[]>`
    select ops.why(${later}) as why, c.ok from ops.checks c where c.name = 'provider'`
  t.match(seen, { why: /the last attempt was deferred: Not now\.$/, ok: true })
  t.same(
    [...(await sql`select * from ops.failing_providers`)],
    [],
    'one refused recipient is no failure of the provider',
  )

  await sql`select ops.rotate_dkim('shop.example')`
  await until('the next key to sign', async () => {
    const [row] = await sql<{ selector: string }[]>`
      select k.selector from app.dkim_keys k join app.domains d on d.id = k.domain_id
      where d.name = 'shop.example' and k.state = 'active'`
    return row?.selector === 'pg2'
  })
  const [rotated] = await arrived([await accept({ to: 'dave@there.example' })], 1)
  t.match(rotated?.dkim, { isValid: true, selector: 'pg2' })

  // As if the domain had been created with another relay.
  await sql`
    update app.domains set provider = 'smtp old.example',
      records = replace(records::text, 'relay.example', 'old.example')::jsonb
    where name = 'shop.example'`
  const moved = await request('POST', `${base}/v1/domains/${added.json.id}/verify`, liveKey)
  t.match(moved.json.records.slice(3, 5), [
    { value: '10 relay.example' },
    { value: 'v=spf1 a:relay.example ~all' },
  ])
  const [last] = await arrived([await accept({ to: 'erin@there.example' })], 1)
  t.match(last?.dkim, { isValid: true, selector: 'pg1' }, 'with its own keys')
})

t.test('smtp: the first emails of a manually verified domain are signed', { skip }, async (t) => {
  const { url, sql } = await createDatabase()
  const server = await startSmtpServer(t)
  // Without a clock, which would check the domain.
  const { base } = await startTestService(url, {
    roles: ['api', 'worker'],
    createEmailProvider: () => smtpTo(server.address),
    secrets,
    systemFrom: 'Postgram <postgram@system.example>',
  })
  const organisation = await createOrganisation(sql)
  const { id, liveKey, domain } = organisation
  await sql`select ops.verify_domain(${id}, 'system.example')`
  const emails = Array.from({ length: 8 }, (_, n) => anEmail(domain, { to: `a${n}@there.example` }))
  const answer = await post(`${base}/v1/emails/batch`, liveKey, { emails })
  const ids = answer.json.results.map(({ data }: { data: { id: string } }) => data.id)
  await sql`
    select core.notify_owner(core.decode_id('org', ${id}), 'domain_not_found', '{"domain": "x.example", "records": []}')`
  const raw = await until('the mails', async () => {
    const all = await server.mails()
    return all.length === ids.length + 1 && all
  })
  const keys = await sql<{ name: string; selector: string; value: string }[]>`
    select d.name, k.selector, k.value from app.dkim_keys k join app.domains d on d.id = k.domain_id`
  t.equal(keys.length, 4, 'two keys for each domain, made once')
  const published = keys.map(({ name, selector, value }) => [
    `${selector}._domainkey.${name}`,
    value,
  ])
  const mails = await readMails(raw, Object.fromEntries(published))
  for (const { dkim } of mails) t.match(dkim, { isValid: true, selector: 'pg1' })
  t.same(
    [...new Set(mails.map(({ dkim }) => dkim?.domain))].sort(),
    [domain, 'system.example'].sort(),
  )

  const [row] = await sql<{ id: string }[]>`
    select core.encode_id('dom', id) as id from app.domains where name = ${domain}`
  const checked = await request('POST', `${base}/v1/domains/${row?.id}/verify`, liveKey)
  t.equal(checked.json.records.length, 6)
  t.same(
    await sql`select d.name, k.selector, k.value from app.dkim_keys k join app.domains d on d.id = k.domain_id`,
    keys,
    'a check keeps the keys that have signed',
  )
})
