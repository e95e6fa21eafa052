import t from 'tap'
import { ProviderUnavailable } from '../../src/providers/email.ts'
import { signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { get, post } from '../fixtures/http.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { createStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
let isProviderDown = false
const basic = createStandIn()
const provider = createStandIn({
  async createDomain(domain) {
    if (isProviderDown) throw new ProviderUnavailable('it cannot be reached')
    return basic.createDomain(domain)
  },
})
const { base } = await startTestService(url, {
  roles: ['api'],
  createEmailProvider: () => provider,
})
const organisation = await createOrganisation(sql)
const path = `/dashboard/${organisation.id}/domains`
const owner = await signInAs(sql, base, { organisation: organisation.id, role: 'owner' })
const member = await signInAs(sql, base, { organisation: organisation.id, role: 'member' })
const viewer = await signInAs(sql, base, { organisation: organisation.id, role: 'viewer' })
const ofMember = `member-${organisation.id}@example.com`

const addByApi = async ({ liveKey }: TestOrganisation, name: string): Promise<string> =>
  (await post(`${base}/v1/domains`, liveKey, { name })).json.id
const namesOf = async ({ liveKey }: TestOrganisation): Promise<string[]> =>
  (await get(`${base}/v1/domains`, liveKey)).json.data.map(({ name }: { name: string }) => name)
const auditOf = async (target: string) => [
  ...(await sql`
    select action, actor, organisation, before, after from ops.audit where target = ${target} order by at`),
]

t.test('a domain that a member adds is shown with its records and is in the audit', async (t) => {
  const page = await member.post(`${path}/add`, { name: ' Shop.Example. ' })
  t.equal(page.status, 200)
  t.match(page.text, 'shop.example is added. Publish its records, then check it.')
  const [domain] = (await get(`${base}/v1/domains`, organisation.liveKey)).json.data
  t.equal(domain.name, 'shop.example')
  for (const { name, value } of domain.records) {
    t.match(page.html, `<code class="copyable" data-copy="true">${name}</code>`)
    t.match(page.html, `<code class="copyable" data-copy="true">${value}</code>`)
  }
  t.match(page.text, /DMARC \(recommended\) TXT _dmarc\.shop\.example .* not checked yet pending/)
  t.match(page.text, /Publish the records below\. The domain fails at \d{4}-\d\d-\d\d \d\d:\d\d/)
  t.match(await auditOf('shop.example'), [
    {
      action: 'add_domain',
      actor: ofMember,
      organisation: organisation.id,
      before: null,
      after: { status: 'pending' },
    },
  ])

  const again = await member.post(`${path}/add`, { name: 'shop.example' })
  t.match(again.text, 'The organisation already has shop.example.')
  t.equal((await auditOf('shop.example')).length, 1, 'nothing changed')
})

t.test('a check by a member verifies a domain, and the audit names the member', async (t) => {
  const id = await addByApi(organisation, 'checked.example')
  const page = await member.post(`${path}/check`, { id })
  t.match(
    page.text,
    'checked.example was checked: all required records are correct. It is verified.',
  )
  t.match(page.text, /checked\.example verified Verified \d{4}/)
  t.match(await auditOf('checked.example'), [
    { action: 'evaluate_domain', actor: ofMember, after: { status: 'verified' } },
  ])
})

t.test('a wrong record is shown with what was found beside what is wanted', async (t) => {
  const id = await addByApi(organisation, 'wrong.example')
  const page = await member.post(`${path}/check`, { id })
  t.match(page.text, 'wrong.example was checked: 5 of its required records are not correct.')
  t.match(
    page.text,
    /pg1\._domainkey\.wrong\.example pg1\.\w+\.dkim\.postgram\.test elsewhere\.example mismatch/,
  )
  const missing = await addByApi(organisation, 'missing.example')
  t.match(
    (await member.post(`${path}/check`, { id: missing })).text,
    /_dmarc\.missing\.example v=DMARC1; p=none; nothing missing/,
  )
})

t.test('a verified domain with wrong records shows since when and when it fails', async (t) => {
  const id = await addByApi(organisation, 'wrong-later.example')
  await sql`
    update app.domains set status = 'verified', verified_at = now(), wrong_since = '2026-01-02T03:04:05Z'
    where id = core.decode_id('dom', ${id})`
  const { text } = await viewer.get(path)
  t.match(
    text,
    'Required records are wrong since 2026-01-02 03:04 . If they stay wrong, the domain fails at 2026-01-05 03:04',
  )
  await sql`update app.domains set is_manually_verified = true where id = core.decode_id('dom', ${id})`
  t.match((await viewer.get(path)).text, /so it does not fail/)
})

t.test('a domain that a member removes is gone, and the audit names the member', async (t) => {
  const id = await addByApi(organisation, 'removed.example')
  const page = await member.post(`${path}/remove`, { id })
  t.match(page.text, 'The domain is removed.')
  t.notOk((await namesOf(organisation)).includes('removed.example'))
  t.match(await auditOf('removed.example'), [
    { action: 'remove_domain', actor: ofMember, before: { status: 'pending' }, after: null },
  ])
})

t.test('domains that the API adds and removes are not in the audit', async (t) => {
  const id = await addByApi(organisation, 'by-api.example')
  await fetch(`${base}/v1/domains/${id}`, {
    method: 'DELETE',
    headers: { Authorization: `Bearer ${organisation.liveKey}` },
  })
  t.notOk((await namesOf(organisation)).includes('by-api.example'))
  t.same(await auditOf('by-api.example'), [])
})

t.test('a refused name is shown again, escaped, with its problem beside it', async (t) => {
  for (const name of ['<script>alert("1")</script>', `"'> \u202eelpmaxe`, 'nodot']) {
    const page = await member.post(`${path}/add`, { name })
    t.equal(page.status, 422)
    t.match(page.text, 'must be a domain name, as example.com')
    t.match(page.html, /<details open>\s*<summary>Add a domain/)
    const shown = name.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
    t.match(page.html, `value="${shown}"`)
    t.notMatch(page.html, '<script>alert')
  }
})

t.test(
  'a domain of another organisation and a provider that is down are refused with words',
  async (t) => {
    const other = await createOrganisation(sql)
    const taken = await member.post(`${path}/add`, { name: other.domain })
    t.match(taken, { status: 409, text: /already belongs to another organisation/ })
    isProviderDown = true
    t.teardown(() => {
      isProviderDown = false
    })
    const down = await member.post(`${path}/add`, { name: 'down.example' })
    t.match(down, { status: 503, text: /The email provider cannot be reached; nothing changed/ })
    t.match(down.html, 'value="down.example"')
    t.same(await auditOf('down.example'), [])
  },
)

t.test('viewers see domains but neither add, check nor remove one; owners may', async (t) => {
  const id = await addByApi(organisation, 'kept.example')
  const page = await viewer.get(path)
  t.match(page.text, 'kept.example')
  t.notMatch(page.html, '/domains/add')
  t.notMatch(page.html, '/domains/check')
  t.notMatch(page.html, '/domains/remove')
  for (const [action, form] of [
    ['add', { name: 'viewer.example' }],
    ['check', { id }],
    ['remove', { id }],
  ] as const) {
    const refused = await viewer.post(`${path}/${action}`, form)
    t.match(refused, { status: 403, text: /this needs the role member/ }, action)
  }
  const [domain] = await sql`select status from ops.domains where id = ${id}`
  t.match(domain, { status: 'pending' }, 'not checked')
  t.notOk((await namesOf(organisation)).includes('viewer.example'))
  t.match((await owner.post(`${path}/remove`, { id })).text, 'The domain is removed.')
})

t.test("another organisation's domains are neither shown, checked nor removed", async (t) => {
  const other = await createOrganisation(sql)
  const id = await addByApi(other, 'theirs.example')
  const theirs = await owner.get(`/dashboard/${other.id}/domains`)
  t.equal(theirs.status, 404)
  t.notMatch(theirs.html, 'theirs.example')
  t.notMatch((await owner.get(path)).html, 'theirs.example')
  for (const action of ['check', 'remove']) {
    t.match(await owner.post(`${path}/${action}`, { id }), { status: 404 }, action)
    const inTheirs = await owner.post(`/dashboard/${other.id}/domains/${action}`, { id })
    t.match(inTheirs, { status: 404 }, action)
  }
  t.equal(
    (await owner.post(`/dashboard/${other.id}/domains/add`, { name: 'x.example' })).status,
    404,
  )
  t.same(await namesOf(other), ['theirs.example', other.domain])
  const [domain] = await sql`select status from ops.domains where id = ${id}`
  t.match(domain, { status: 'pending' }, 'not checked')
})

t.test('more than 20 domains are on several pages, each once', async (t) => {
  const many = await createOrganisation(sql)
  const browser = await signInAs(sql, base, { organisation: many.id, role: 'viewer' })
  for (let n = 0; n < 22; n++)
    await sql`select ops.verify_domain(${many.id}, ${`d${n}.many.example`})`
  const first = await browser.get(`/dashboard/${many.id}/domains`)
  t.match(first.text, '23 of the 100 domains that the plan includes.')
  const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first.html) ?? []
  const second = await browser.get(next)
  t.notMatch(second.html, 'rel="next"')
  const shown = (html: string) =>
    [...html.matchAll(/<h2 id="dom_\w+">(\S+)/g)].map(([, name]) => name)
  t.equal(shown(first.html).length, 20)
  t.same([...shown(first.html), ...shown(second.html)], await namesOf(many))
})

t.test('an organisation without a domain is told to add one', async (t) => {
  const empty = await createOrganisation(sql)
  await sql`delete from app.domains where organisation_id = core.decode_id('org', ${empty.id})`
  const browser = await signInAs(sql, base, { organisation: empty.id, role: 'member' })
  t.match((await browser.get(`/dashboard/${empty.id}/domains`)).text, 'There is no domain. Add')
})
