import { hash } from 'node:crypto'
import t from 'tap'
import { type Browser, openBrowser, routes, signIn, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const mine = await createOrganisation(sql)
const theirs = await createOrganisation(sql)
/** The path of a page with these IDs in it. */
const fill = (path: string, organisation: string, id = 'em_01h455vb4pex5vsknk084sn02q') =>
  path.replace(':organisation', organisation).replace(/:\w+/g, id)

const call = serviceCall(url)
const { pages: all, resources } = routes()
const gets = [...all, ...resources].map(({ path }) => path)
const posts = all.flatMap(({ path, actions = {} }) =>
  Object.keys(actions).map((name) => `${path}/${name}`),
)

/** Number of rows of each table that a form could change. */
async function rows() {
  const [row] = await sql`
    select (select count(*) from app.audit) as audit, (select count(*) from app.api_keys) as keys,
      (select count(*) from app.members) as members, (select count(*) from app.templates) as templates,
      (select count(*) from app.webhook_endpoints) as endpoints, (select count(*) from app.domains) as domains,
      (select count(*) from app.suppressions) as suppressions, (select count(*) from app.consents) as consents,
      (select count(*) from app.messages) as messages, (select count(*) from app.credit_ledger) as ledger`
  return JSON.stringify(row)
}

t.test('the list of pages has those of members and of operators', async (t) => {
  t.ok(gets.length >= 20, `${gets.length} paths`)
  t.ok(posts.length >= 30, `${posts.length} forms`)
})

t.test(
  'without a session every page redirects to the sign-in, and every form asks for it',
  async (t) => {
    const before = await rows()
    for (const path of gets) {
      const page = await openBrowser(base).get(fill(path, mine.id))
      t.match(page.text, 'Email me a link', path)
    }
    for (const path of posts) {
      const page = await openBrowser(base).post(fill(path, mine.id))
      t.match(page, { status: 401, text: /^(Skip to content )?Sign in again/ }, path)
    }
    t.equal(await rows(), before)
  },
)

t.test("another organisation's pages and forms are not found, and change nothing", async (t) => {
  const owner = await signInAs(sql, base, { organisation: mine.id, role: 'owner' })
  const before = await rows()
  const isNotFound = async (response: ReturnType<Browser['get']>, path: string) => {
    const { status, html } = await response
    t.equal(status, 404, path)
    t.notMatch(html, theirs.domain, path)
  }
  for (const path of gets) await isNotFound(owner.get(fill(path, theirs.id)), path)
  for (const path of posts) await isNotFound(owner.post(fill(path, theirs.id)), path)
  t.equal(await rows(), before)
})

t.test('a viewer changes nothing by any form', async (t) => {
  const viewer = await signInAs(sql, base, { organisation: mine.id, role: 'viewer' })
  const before = await rows()
  for (const path of posts.filter((path) => path.startsWith('/dashboard'))) {
    const { status } = await viewer.post(fill(path, mine.id))
    t.ok([200, 403, 404, 422].includes(status), `${path}: ${status}`)
  }
  t.equal(await rows(), before)
})

t.test('every function of the dashboard refuses a user without the role', async (t) => {
  const email = 'curious@example.com'
  await sql`select ops.invite(${mine.id}, ${email}, 'owner')`
  const browser = await signIn(sql, base, email)
  const [, token = ''] = browser.cookies().split('=')
  const functions = await sql<{ name: string; arguments: string[] }[]>`
    select p.proname as name, coalesce(p.proargnames[:p.pronargs], '{}') as arguments
    from pg_proc p
    where p.pronamespace = 'api'::regnamespace and p.proname like 'dashboard\\_%'
      -- It refuses single sessions and messages of many; see below.
      and p.proname <> 'dashboard_message_versions'
    order by 1`
  t.ok(functions.length > 30)
  const codeOf = async (name: string, names: string[], session: string, organisation: string) => {
    const values = names.map((argument) =>
      argument === 'session' ? session : argument === 'organisation' ? organisation : null,
    )
    const list = names.map((argument, place) => `${argument} => $${place + 1}`).join(', ')
    return sql.unsafe(`select * from api.${name}(${list})`, values as string[]).then(
      () => 'accepted',
      (error) => (error.code === 'MSREF' ? error.message : `${error.code} ${error.message}`),
    )
  }
  for (const { name, arguments: names } of functions) {
    t.equal(names[0], 'session', name)
    t.equal(await codeOf(name, names, hash('sha256', 'forged'), mine.id), 'unauthorized', name)
    const own = await codeOf(name, names, hash('sha256', token), theirs.id)
    // Some pages are about the user, not about an organisation.
    if (names.includes('organisation')) t.equal(own, 'not_found', name)
    else t.ok(own === 'not_found' || own === 'accepted', `${name}: ${own}`)
  }
})

t.test(
  'dashboard_message_versions returns null to a session that may not see the message',
  async (t) => {
    const id = await send(base, theirs)
    const own = await send(base, mine)
    const email = 'watcher@example.com'
    await sql`select ops.invite(${mine.id}, ${email}, 'viewer')`
    const browser = await signIn(sql, base, email)
    const session = hash('sha256', browser.cookies().split('=')[1] ?? '')
    const forged = hash('sha256', 'forged')
    const asked = [
      { session, organisation: mine.id, message: own },
      { session: forged, organisation: mine.id, message: own },
      { session, organisation: theirs.id, message: id },
      { session, organisation: mine.id, message: id },
      { session, organisation: 'org_x', message: 'em_x' },
    ]
    const versions = (await call('dashboard_message_versions', {
      sessions: asked.map((one) => one.session),
      organisations: asked.map((one) => one.organisation),
      messages: asked.map((one) => one.message),
    })) as unknown[]
    t.match(versions, [{ mayChange: true }, null, null, null, null])
  },
)
