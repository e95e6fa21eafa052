import t from 'tap'
import { signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { post } from '../fixtures/http.ts'
import { createOrganisation, suppress, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const CONTENT = {
  name: 'Welcome',
  subject: 'Hello {{name}}',
  html: '<b>Hi {{name}}</b> & {{shop}}',
  text: 'Hi {{name}} from {{shop}}',
}

/** An organisation with a template and the path of its page. */
async function setUp(content: Partial<typeof CONTENT> = {}) {
  const organisation = await createOrganisation(sql)
  const given = { ...CONTENT, ...content }
  const [row] = await sql<{ id: string }[]>`
    select ops.create_template(${organisation.id}, ${given.name}, ${given.subject}, ${given.html}, ${given.text}) as id`
  const template = row?.id ?? ''
  const list = `/dashboard/${organisation.id}/templates`
  return { organisation, template, list, path: `${list}/${template}` }
}

const signIn = (organisation: TestOrganisation, role: 'owner' | 'member' | 'viewer') =>
  signInAs(sql, base, { organisation: organisation.id, role })

const contentOf = async (template: string) => {
  const [row] = await sql`
    select t.name, t.subject, t.html, t.text, t.version, t.changed_by
    from app.templates t where t.id = core.decode_id('tpl', ${template})`
  return { ...row }
}

const bodiesOf = (organisation: TestOrganisation) => sql`
  select m.subject, m.to_address as "to", m.from_address as "from", m.tags, b.html, b.text
  from app.messages m join app.bodies b on b.message_id = m.id
  where m.organisation_id = core.decode_id('org', ${organisation.id})`

/** The text that stands in the HTML body of a preview. */
const srcdocOf = (page: string) =>
  (/srcdoc="([^"]*)"/.exec(page)?.[1] ?? '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')

t.test('templates: a member adds one, and requests can use it', async (t) => {
  const organisation = await createOrganisation(sql)
  const list = `/dashboard/${organisation.id}/templates`
  const member = await signIn(organisation, 'member')
  t.match((await member.get(list)).text, 'There is no template')
  const added = await member.post(`${list}/new/create`, CONTENT)
  t.match(added.text, 'The template is added.')
  const [id = ''] = /tpl_[0-9a-z]{26}/.exec(added.text) ?? []
  t.match((await member.get(list)).text, `Welcome ${id} Hello {{name}} 1`)
  const sent = await post(`${base}/v1/emails`, organisation.liveKey, {
    from: `a@${organisation.domain}`,
    to: 'b@c.example',
    templateId: id,
    variables: { name: 'Ann', shop: 'Acme' },
  })
  t.equal(sent.status, 200)
  const [row] =
    await sql`select actor from ops.audit where action = 'create_template' and target = ${id}`
  t.match(row, { actor: `member-${organisation.id}@example.com` })
})

t.test('templates: a change keeps the version before with who made it and when', async (t) => {
  const { organisation, template, path } = await setUp()
  const member = await signIn(organisation, 'member')
  const saved = await member.post(`${path}/change`, { ...CONTENT, subject: 'Bye', version: '1' })
  t.match(saved.text, 'The template is saved.')
  const actor = `member-${organisation.id}@example.com`
  t.match(await contentOf(template), { subject: 'Bye', version: 2, changedBy: actor })
  t.match(saved.text, new RegExp(`2 \\(present\\) Welcome Bye [\\d-]+ [\\d:]+ by ${actor}`))
  const former = await member.get(`${path}?version=1`)
  t.match(former.text, 'Hello {{name}}')
  t.match(former.text, 'Restore version 1')
  const rows = await sql`
    select version, is_present, subject, changed_by from ops.template_versions
    where template = ${template} order by version`
  t.match(rows, [
    { version: 1, isPresent: false, subject: CONTENT.subject },
    { version: 2, isPresent: true, subject: 'Bye', changedBy: actor },
  ])
})

t.test('templates: a change without a difference makes no version', async (t) => {
  const { organisation, template, path } = await setUp()
  const member = await signIn(organisation, 'member')
  await member.post(`${path}/change`, { ...CONTENT, version: '1' })
  t.match(await contentOf(template), { version: 1 })
})

t.test('templates: restoring a version makes a new one with its content', async (t) => {
  const { organisation, template, path } = await setUp()
  const member = await signIn(organisation, 'member')
  await member.post(`${path}/change`, { ...CONTENT, html: '', text: 'Bye', version: '1' })
  const restored = await member.post(`${path}/restore`, { version: '1' })
  t.match(restored.text, 'Version 1 is restored as version 3.')
  t.match(await contentOf(template), { ...CONTENT, version: 3 })
  const [row] =
    await sql`select actor from ops.audit where action = 'restore_template' and target = ${template}`
  t.match(row, { actor: `member-${organisation.id}@example.com` })
  const unknown = await member.post(`${path}/restore`, { version: '9' })
  t.match(unknown, { status: 422, text: /The template has no former version 9\./ })
  for (const version of ['9', '-1', 'x', '99999999999']) {
    t.match(await member.get(`${path}?version=${version}`), { status: 404 }, version)
  }
})

t.test('templates: the newest 50 former versions are kept', async (t) => {
  const { template } = await setUp()
  for (let n = 1; n <= 52; n += 1) {
    await sql`select ops.change_template(${template}, 'Welcome', ${`Subject ${n}`}, null, 'text')`
  }
  const [row] = await sql`
    select count(*)::integer as count, min(version) as first, max(version) as last
    from ops.template_versions where template = ${template}`
  t.same(row, { count: 51, first: 3, last: 53 })
})

t.test('templates: of two concurrent edits the second is refused and keeps its text', async (t) => {
  const { organisation, template, path } = await setUp()
  const member = await signIn(organisation, 'member')
  await member.post(`${path}/change`, { ...CONTENT, subject: 'First', version: '1' })
  const second = await member.post(`${path}/change`, {
    ...CONTENT,
    subject: 'Second',
    version: '1',
  })
  t.match(second, {
    status: 422,
    text: /Version 2 was made by member-\S+ while you edited version 1/,
  })
  t.match(second.html, 'value="Second"')
  t.match(second.html, /name="version" value="2"/)
  t.match(await contentOf(template), { subject: 'First' })
})

t.test('templates: a refused form keeps what was typed, with the problem', async (t) => {
  const { organisation, path, list } = await setUp()
  const member = await signIn(organisation, 'member')
  const form = { ...CONTENT, name: '"><script>x</script>', html: '', text: '' }
  const refused = await member.post(`${list}/new/create`, form)
  t.match(refused, { status: 422, text: /Give html, text or both\./ })
  t.notMatch(refused.html, '<script>x')
  t.match(refused.html, '&lt;script>x&lt;/script>')
  const missing = await member.post(`${path}/change`, { version: '1', text: 'only' })
  t.match(missing, { status: 422, text: /is required/ })
  t.match(missing.html, '>only</textarea>')
})

t.test('preview: shows what an email with the same variables gets', async (t) => {
  const { organisation, template, list } = await setUp()
  const member = await signIn(organisation, 'member')
  const variables = { name: '<i>"Ann" & Bob</i>', shop: 'Ac\u202eme' }
  const preview = await member.post(`${list}/preview`, {
    ...CONTENT,
    'variable.name': variables.name,
    'variable.shop': variables.shop,
  })
  const sent = await post(`${base}/v1/emails`, organisation.liveKey, {
    from: `a@${organisation.domain}`,
    to: 'b@c.example',
    templateId: template,
    variables,
  })
  t.equal(sent.status, 200)
  const [body] = await bodiesOf(organisation)
  t.equal(srcdocOf(preview.html), body?.html)
  t.match(preview.text, String(body?.subject))
  t.match(preview.text, String(body?.text))
})

t.test('preview: is a document without script, forms and requests to other hosts', async (t) => {
  const { organisation, path, list } = await setUp({ html: '<script>x</script>' })
  const viewer = await signIn(organisation, 'viewer')
  for (const preview of [
    await viewer.get(`${path}/preview`),
    await viewer.post(`${list}/preview`, CONTENT),
    await viewer.post(`${list}/preview`, { ...CONTENT, html: '{{a}}'.repeat(201) }),
  ]) {
    t.equal(preview.status, 200)
    t.equal(
      preview.headers.get('Content-Security-Policy'),
      "default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox",
    )
    t.notMatch(preview.html, '<script')
  }
  t.match((await viewer.get(path)).html, /<iframe[^>]* sandbox/)
})

t.test('preview: names the problem of what cannot be rendered', async (t) => {
  const { organisation, list } = await setUp()
  const viewer = await signIn(organisation, 'viewer')
  const empty = await viewer.post(`${list}/preview`, { ...CONTENT, subject: '' })
  t.match(empty.text, 'subject: must be 1 to 998 characters once rendered')
  const large = await viewer.post(`${list}/preview`, {
    ...{ ...CONTENT, subject: 'Hello' },
    html: '{{name}}'.repeat(300),
    'variable.name': 'x'.repeat(10_000),
  })
  t.match(large.text, 'is larger than a body may be once rendered')
})

t.test('preview: a variable without a value is shown by its name', async (t) => {
  const { organisation, path } = await setUp()
  const viewer = await signIn(organisation, 'viewer')
  const preview = await viewer.get(`${path}/preview`)
  t.match(preview.text, 'Hello name')
  t.equal(srcdocOf(preview.html), '<b>Hi name</b> & shop')
  const page = await viewer.get(path)
  t.match(page.html, /name="variable.name"/)
  t.match(page.html, /name="variable.shop"/)
})

t.test('test email: is accepted like one of the API, with what the editor has', async (t) => {
  const { organisation, template, path } = await setUp()
  const member = await signIn(organisation, 'member')
  const form = {
    ...{ ...CONTENT, version: '1', subject: 'Draft {{name}}' },
    ...{ 'variable.name': 'Ann', 'variable.shop': 'Acme' },
    ...{ from: `Test <test@${organisation.domain}>`, to: 'me@example.com' },
  }
  const [before] =
    await sql`select emails_used from ops.organisations where id = ${organisation.id}`
  const shown = await member.post(`${path}/test`, form)
  t.equal(shown.status, 200)
  const [id = ''] = /em_[0-9a-z]{26}/.exec(shown.text) ?? []
  t.match(shown.text, `The test email to me@example.com is accepted: ${id} .`)
  t.match(shown.html, 'value="Draft {{name}}"', 'and what was typed is kept')
  t.match(shown.html, 'value="Ann"')
  t.match(await bodiesOf(organisation), [
    {
      subject: 'Draft Ann',
      to: 'me@example.com',
      from: `test@${organisation.domain}`,
      tags: ['template-test'],
      html: '<b>Hi Ann</b> & Acme',
      text: 'Hi Ann from Acme',
    },
  ])
  const [job] = await sql`
    select count(*)::integer as jobs from graphile_worker._private_jobs j
    where j.payload ->> 'id' = core.decode_id('em', ${id})::text`
  t.same(job, { jobs: 1 })
  const [after] = await sql`select emails_used from ops.organisations where id = ${organisation.id}`
  t.equal(after?.emailsUsed - before?.emailsUsed, 1)
  const [row] =
    await sql`select actor, after from ops.audit where action = 'send_test_email' and target = ${template}`
  t.match(row, { actor: `member-${organisation.id}@example.com`, after: { email: id } })
  t.match(await contentOf(template), { version: 1 }, 'and nothing is saved')
})

t.test('test email: is refused like one of the API, beside its field', async (t) => {
  const { organisation, path } = await setUp()
  const member = await signIn(organisation, 'member')
  const form = {
    ...CONTENT,
    version: '1',
    from: `test@${organisation.domain}`,
    to: 'me@example.com',
  }
  await suppress(sql, organisation, 'gone@example.com')
  const suppressed = await member.post(`${path}/test`, { ...form, to: 'gone@example.com' })
  t.match(suppressed, { status: 422, text: /gone@example\.com/ })
  const foreign = await member.post(`${path}/test`, { ...form, from: 'me@elsewhere.example' })
  t.match(foreign, { status: 403, text: /elsewhere\.example is not verified/ })
  t.match(foreign.html, 'value="me@elsewhere.example"')
  const invalid = await member.post(`${path}/test`, { ...form, to: '<script>' })
  t.match(invalid, { status: 422 })
  t.match(invalid.html, /id="field-to-problem"/)
  await sql`select ops.pause(${organisation.id}, 'a test')`
  t.match(await member.post(`${path}/test`, form), { status: 423 })
  t.same([...(await bodiesOf(organisation))], [])
  t.same(
    [
      ...(await sql`select from ops.audit where action = 'send_test_email' and organisation = ${organisation.id}`),
    ],
    [],
  )
})

t.test('test email: an organisation without a verified domain is told to add one', async (t) => {
  const { organisation, path } = await setUp()
  await sql`update app.domains set status = 'pending', is_manually_verified = false
    where organisation_id = core.decode_id('org', ${organisation.id})`
  const member = await signIn(organisation, 'member')
  t.match((await member.get(path)).text, 'A test email needs a verified domain. Add a domain')
})

t.test('templates: a viewer reads and changes nothing', async (t) => {
  const { organisation, template, list, path } = await setUp()
  const viewer = await signIn(organisation, 'viewer')
  t.notMatch((await viewer.get(list)).text, 'Add template')
  const page = await viewer.get(path)
  t.match(page, { status: 200 })
  for (const label of ['Save', 'Send test', 'Delete', 'Restore']) t.notMatch(page.text, label)
  const form = { ...CONTENT, subject: 'Changed', version: '1' }
  const test = { from: `test@${organisation.domain}`, to: 'me@example.com' }
  for (const [action, sent] of [
    [`${list}/new/create`, form],
    [`${path}/change`, form],
    [`${path}/restore`, { version: '1' }],
    [`${path}/delete`, {}],
    [`${path}/test`, { ...form, ...test }],
  ] as const) {
    t.match(await viewer.post(action, sent), { status: 403, text: /needs the role member/ }, action)
  }
  t.match(await contentOf(template), { ...CONTENT, version: 1 })
  t.same([...(await bodiesOf(organisation))], [])
})

t.test('templates: those of another organisation are neither shown nor changed', async (t) => {
  const theirs = await setUp({ name: 'Secret name' })
  const { organisation, list } = await setUp()
  const owner = await signIn(organisation, 'owner')
  const path = `${list}/${theirs.template}`
  const form = { ...CONTENT, subject: 'Changed', version: '1' }
  const test = { from: `test@${organisation.domain}`, to: 'me@example.com' }
  for (const response of [
    await owner.get(theirs.list),
    await owner.get(theirs.path),
    await owner.get(`${theirs.path}/preview`),
    await owner.post(`${theirs.list}/preview`, CONTENT),
    await owner.get(path),
    await owner.get(`${path}/preview`),
    await owner.post(`${path}/change`, form),
    await owner.post(`${path}/restore`, { version: '1' }),
    await owner.post(`${path}/delete`),
    await owner.post(`${path}/test`, { ...form, ...test }),
  ]) {
    t.equal(response.status, 404)
    t.notMatch(response.html, 'Secret name')
  }
  t.match(await contentOf(theirs.template), { subject: CONTENT.subject, version: 1 })
})

t.test('templates: a deleted one is gone with its versions', async (t) => {
  const { organisation, template, path } = await setUp()
  const member = await signIn(organisation, 'member')
  await member.post(`${path}/change`, { ...CONTENT, subject: 'Bye', version: '1' })
  const deleted = await member.post(`${path}/delete`)
  t.match(deleted.text, 'The template is deleted.')
  t.match(await member.get(path), { status: 404 })
  t.same([...(await sql`select from ops.template_versions where template = ${template}`)], [])
  const [row] =
    await sql`select actor from ops.audit where action = 'delete_template' and target = ${template}`
  t.match(row, { actor: `member-${organisation.id}@example.com` })
})

t.test('templates: what is written in a template is shown as text', async (t) => {
  const evil = '"><script>alert(1)</script>\u202eאב'
  const { organisation, list, path } = await setUp({
    name: evil,
    subject: evil,
    html: evil,
    text: `</textarea>${evil}`,
  })
  const member = await signIn(organisation, 'member')
  await member.post(`${path}/change`, { ...CONTENT, version: '1' })
  for (const page of [list, path, `${path}?version=1`, `${path}/preview?version=1`]) {
    const { html, status } = await member.get(page)
    t.equal(status, 200)
    t.notMatch(html, '<script>alert', page)
  }
  const former = await member.get(`${path}?version=1`)
  t.match(former.html, '&lt;script>alert(1)&lt;/script>\u202eאב')
})

t.test('templates: more than 50 are listed in pages', async (t) => {
  const { organisation, list } = await setUp()
  await sql`select ops.create_template(${organisation.id}, 'T' || n, 'S', null, 'x') from generate_series(1, 50) n`
  const viewer = await signIn(organisation, 'viewer')
  const namesOn = ({ html }: { html: string }) =>
    [...html.matchAll(/<bdi>(T\d+|Welcome)<\/bdi>/g)].map(([, name]) => name)
  const first = await viewer.get(list)
  const [, next = ''] = /rel="next" href="([^"]*)"/.exec(first.html) ?? []
  const second = await viewer.get(next.replaceAll('&amp;', '&'))
  t.equal(namesOn(first).length, 50)
  // Those of one millisecond have no certain order.
  t.equal(namesOn(second).length, 1)
  t.equal(new Set([...namesOn(first), ...namesOn(second)]).size, 51)
})
