import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, errorAs, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const ours = await createOrganisation(sql)
const theirs = await createOrganisation(sql)
await sql`select ops.verify_domain(${ours.id}, 'acme.example')`
await sql`select ops.verify_domain(${ours.id}, 'mail.deep.example')`
await sql`select ops.verify_domain(${ours.id}, 'xn--bcher-kva.example')`
await sql`select ops.verify_domain(${theirs.id}, 'theirs.example')`
await sql`select ops.verify_domain(${theirs.id}, 'sub.acme.example')`
for (const [name, status] of [
  ['pending.example', 'pending'],
  ['failed.example', 'failed'],
] as const) {
  await sql`
    insert into app.domains (id, organisation_id, name, status)
    values (gen_random_uuid(), core.decode_id('org', ${ours.id}), ${name}, ${status})`
}

const ALLOWED = [
  'hello@acme.example',
  'hello@ACME.Example',
  'Acme <hello@acme.example>',
  '"Acme, Inc." <hello@Mail.ACME.example>',
  'hello@mail.acme.example',
  'hello@a.b.c.d.acme.example',
  // Below a verified domain of this organisation, although another organisation may hold it.
  'hello@sub.acme.example',
  'hello@mail.deep.example',
  'hello@more.mail.deep.example',
  'hello@bücher.example',
  'hello@BÜCHER.example',
  'hello@xn--bcher-kva.example',
  'hello@XN--BCHER-KVA.example',
  'hello@laden.bücher.example',
]

const REFUSED = [
  'hello@notacme.example',
  'hello@acme.example.evil.example',
  'hello@acme.exampl',
  'hello@acme-example.example',
  'hello@cme.example',
  'hello@example.com',
  'acme.example@elsewhere.example',
  '"hello@acme.example" <hello@elsewhere.example>',
  'hello@deep.example',
  'hello@notmail.deep.example',
  'hello@pending.example',
  'hello@sub.pending.example',
  'hello@failed.example',
  'hello@theirs.example',
  'hello@sub.theirs.example',
  'hello@bucher.example',
  'hello@büchеr.example',
]

t.test('live email: from may be on a verified domain or below one', async (t) => {
  for (const from of ALLOWED) {
    const response = await post(`${base}/v1/emails`, ours.liveKey, anEmail('', { from }))
    t.equal(response.status, 200, from)
  }
})

t.test('live email: from on any other domain is refused', async (t) => {
  const before = await traces(sql)
  for (const from of REFUSED) {
    const response = await post(`${base}/v1/emails`, ours.liveKey, anEmail('', { from }))
    isRefused(t, response, 'domain_not_verified', undefined, { name: from })
  }
  t.strictSame(await traces(sql), before, 'nothing is stored')
})

t.test('batch: the domain of each item is checked', async (t) => {
  const froms = [...ALLOWED, ...REFUSED]
  const { json } = await post(`${base}/v1/emails/batch`, ours.liveKey, {
    emails: froms.map((from) => anEmail('', { from })),
  })
  for (const [index, from] of froms.entries()) {
    const result = json.results[index]
    if (index < ALLOWED.length) t.equal(result.ok, true, from)
    else {
      const error = errorAs('domain_not_verified', result.error)
      t.strictSame(result, { index, ok: false, error }, from)
    }
  }
})

t.test('replyTo may be on any domain', async (t) => {
  const body = anEmail('acme.example', { replyTo: 'help@elsewhere.example' })
  t.equal((await post(`${base}/v1/emails`, ours.liveKey, body)).status, 200)
})

t.test('a domain that is deleted or no longer verified is refused at the next send', async (t) => {
  const { id, liveKey, domain } = await createOrganisation(sql)
  const send = () => post(`${base}/v1/emails`, liveKey, anEmail(domain))
  t.equal((await send()).status, 200)
  await sql`update app.domains set status = 'failed' where name = ${domain}`
  isRefused(t, await send(), 'domain_not_verified')
  await sql`select ops.verify_domain(${id}, ${domain})`
  t.equal((await send()).status, 200)
  await sql`delete from app.domains where name = ${domain}`
  isRefused(t, await send(), 'domain_not_verified')
})
