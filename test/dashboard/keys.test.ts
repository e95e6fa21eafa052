import t from 'tap'
import { ageSignIn, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { get } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const path = `/dashboard/${organisation.id}/keys`

t.test('a key that an owner creates works, is shown once and is in the audit', async (t) => {
  const owner = await signInAs(sql, base, { organisation: organisation.id, role: 'owner' })
  const made = await owner.post(`${path}/create`, { mode: 'test', scopes: ['read', 'sms:send'] })
  const [key = ''] = /sk_test_[0-9a-f]{64}/.exec(made.text) ?? []
  t.match(await get(`${base}/v1/usage`, key), { status: 200 })
  const list = await owner.get(path)
  t.match(list.text, `${key.slice(0, 16)}… test read, sms:send`)
  t.notMatch(list.html, key)
  const [row] = await sql`
    select actor, after from ops.audit where action = 'create_api_key' and target = ${key.slice(0, 16)}`
  t.match(row, { actor: `owner-${organisation.id}@example.com` })

  const revoked = await owner.post(`${path}/revoke`, { prefix: key.slice(0, 16) })
  t.match(revoked.text, `The key ${key.slice(0, 16)}… is revoked.`)
  t.match(await get(`${base}/v1/usage`, key), { status: 401 })
})

t.test('the button that revokes a key is behind its effect', async (t) => {
  const owner = await signInAs(sql, base, { organisation: organisation.id, role: 'owner' })
  const { html } = await owner.get(path)
  t.match(
    html,
    /<details class="confirm"><summary>Revoke<\/summary><p>Requests with this key are refused from then on\.<\/p><form/,
  )
})

t.test('a form without scopes is shown again with its problem and its values', async (t) => {
  const owner = await signInAs(sql, base, { organisation: organisation.id, role: 'owner' })
  const refused = await owner.post(`${path}/create`, { mode: 'test' })
  t.equal(refused.status, 422)
  t.match(refused.text, 'The scopes must be one or more of')
  t.match(refused.html, /<option value="test" selected>/)
})

t.test('viewers and members see keys but can neither create nor revoke one', async (t) => {
  for (const role of ['viewer', 'member'] as const) {
    const browser = await signInAs(sql, base, { organisation: organisation.id, role })
    const list = await browser.get(path)
    t.match(list.text, organisation.liveKey.slice(0, 16))
    t.notMatch(list.text, 'Create key')
    const refused = await browser.post(`${path}/create`, { mode: 'live', scopes: ['read'] })
    t.match(refused, { status: 403, text: /this needs the role owner/ })
    await browser.post(`${path}/revoke`, { prefix: organisation.liveKey.slice(0, 16) })
  }
  t.match(await get(`${base}/v1/usage`, organisation.liveKey), { status: 200 })
})

t.test('keys of another organisation are neither shown nor revoked', async (t) => {
  const other = await createOrganisation(sql)
  const email = `owner-${organisation.id}@example.com`
  const owner = await signInAs(sql, base, { organisation: organisation.id, role: 'owner', email })
  const theirs = await owner.get(`/dashboard/${other.id}/keys`)
  t.match(theirs, { status: 404 })
  t.notMatch(theirs.html, other.liveKey.slice(0, 16))
  const revoked = await owner.post(`${path}/revoke`, { prefix: other.liveKey.slice(0, 16) })
  t.match(revoked, { status: 404 })
  t.match(await get(`${base}/v1/usage`, other.liveKey), { status: 200 })
})

t.test('a key needs a sign-in within the last 10 minutes', async (t) => {
  const email = `late-${organisation.id}@example.com`
  const owner = await signInAs(sql, base, { organisation: organisation.id, role: 'owner', email })
  await ageSignIn(sql, email)
  t.match(await owner.get(path), { status: 200 })
  const refused = await owner.post(`${path}/create`, { mode: 'live', scopes: ['read'] })
  t.match(refused.text, 'Sign in again')
})
