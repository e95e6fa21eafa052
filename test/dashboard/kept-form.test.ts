import t from 'tap'
import {
  ageSignIn,
  type Browser,
  openBrowser,
  type PageResponse,
  signInAs,
} from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const HOSTILE = '"><script>alert(1)</script>\nsecond line'

async function setUp() {
  const { id } = await createOrganisation(sql)
  const email = `owner-${id}@example.com`
  const browser = await signInAs(sql, base, { organisation: id, role: 'owner', email })
  return { id, email, browser, home: `/dashboard/${id}` }
}

/** Signs the user in again in another tab of the same browser. */
async function signInAgain(browser: Browser, email: string) {
  const [row] = await sql<{ path: string }[]>`select ops.create_sign_in_link(${email}) as path`
  await browser.post(row?.path ?? '')
}

/** Presses "Send the form again". */
function sendAgain(browser: Browser, { html }: PageResponse) {
  const [, action = '', fields = ''] =
    /<form method="post" action="([^"]*)" enctype="multipart\/form-data"[^>]*>(.*?)<\/form>/s.exec(
      html,
    ) ?? []
  const form = new FormData()
  for (const [, name = '', value = ''] of fields.matchAll(/name="([^"]*)" value="([^"]*)"/g)) {
    form.append(name, value.replaceAll('&quot;', '"').replaceAll('&lt;', '<'))
  }
  return browser.post(action, form)
}

t.test('a form whose sign-in is too old is kept, and sent again after a sign-in', async (t) => {
  const { id, email, browser, home } = await setUp()
  await ageSignIn(sql, email)
  const form = { mode: 'test', scopes: ['sms:send', 'read'] }
  const kept = await browser.post(`${home}/keys/create`, form)
  t.equal(kept.status, 401)
  t.match(kept.text, /Sign in again .*within the last 10 minutes\. Nothing was changed/)
  t.match(kept.html, 'href="/login?again" target="_blank"')
  t.match((await sendAgain(browser, kept)).text, 'Sign in again', 'the sign-in is still too old')
  await signInAgain(browser, email)
  t.match((await sendAgain(browser, kept)).text, /Your new API key .*sk_test_/)
  const keys = await sql`
    select scopes from ops.api_keys where organisation = ${id} and mode = 'test' order by created_at desc limit 1`
  t.match([...keys], [{ scopes: ['sms:send', 'read'] }])
})

t.test('a form whose session has ended is kept, and sent again after a sign-in', async (t) => {
  const { id, email, browser, home } = await setUp()
  await sql`select ops.sign_out(${email})`
  const form = { name: HOSTILE, subject: 'Hello', html: '', text: HOSTILE }
  const kept = await browser.post(`${home}/templates/new/create`, form)
  t.equal(kept.status, 401)
  t.match(kept.text, 'You are not signed in any more. Nothing was changed')
  t.notMatch(kept.html, '<script>alert')
  t.notMatch(kept.text, email)
  await signInAgain(browser, email)
  const shortName = kept.html.replace(/(name="name" value=")[^"]*/, '$1Greeting')
  t.equal((await sendAgain(browser, { ...kept, html: shortName })).status, 200)
  const rows = await sql`
    select name, text from app.templates where organisation_id = core.decode_id('org', ${id})`
  t.match([...rows], [{ name: 'Greeting', text: HOSTILE }])
})

t.test('a kept form that another user sends needs the rights of that user', async (t) => {
  const { id, email, browser, home } = await setUp()
  await ageSignIn(sql, email)
  const kept = await browser.post(`${home}/team/invite`, { email: 'x@example.com', role: 'owner' })
  const viewer = await signInAs(sql, base, { organisation: id, role: 'viewer' })
  t.match(await sendAgain(viewer, kept), { status: 403, text: /needs the role owner/ })
})

t.test('a form of more than 1 MB whose session has ended is not kept, and says so', async (t) => {
  const { home } = await setUp()
  const form = { list: 'x'.repeat(1024 * 1024), listReason: 'manual' }
  const refused = await openBrowser(base).post(`${home}/suppressions/import`, form)
  t.match(refused, { status: 401, text: /too large to be kept: fill it in again/ })
  t.notMatch(refused.html, 'xxx')
})

t.test('a kept form has the query of its action', async (t) => {
  const { home } = await setUp()
  const kept = await openBrowser(base).post(`${home}/domains/check?after=a&b=%22`, { id: 'dom_x' })
  t.match(kept.html, `<form method="post" action="${home}/domains/check?after=a&amp;b=%22"`)
})
