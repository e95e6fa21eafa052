import t from 'tap'
import {
  ageSignIn,
  type Browser,
  signIn,
  signInAs,
  signInAsOperator,
} from '../fixtures/dashboard.ts'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { createOrganisation, noticesOf, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
// Without a worker, notices wait.
const { base } = await startTestService(url, { roles: ['api'] })

const HOSTILE = '<script>alert("1")</script> \u202eabc'

const pathOf = ({ id }: TestOrganisation) => `/dashboard/${id}/team`

/** An organisation with a signed-in owner. */
async function setUp() {
  const organisation = await createOrganisation(sql)
  const email = `owner-${organisation.id}@example.com`
  const owner = await signInAs(sql, base, { organisation: organisation.id, role: 'owner', email })
  return { organisation, email, owner, path: pathOf(organisation) }
}

async function rolesOf({ id }: TestOrganisation) {
  const rows = await sql<{ email: string; role: string }[]>`
    select email, role from ops.members where organisation = ${id}`
  return Object.fromEntries(rows.map(({ email, role }) => [email, role]))
}

async function lastAudit({ id }: TestOrganisation) {
  const [row] = await sql`
    select action, actor, target, before, after from ops.audit where organisation = ${id} order by id desc limit 1`
  return row
}

/** The IDs of the sessions that the page offers to revoke, by the User-Agent, which says who. */
const revocable = async (browser: Browser, path: string) =>
  [...(await browser.get(path)).html.matchAll(/name="id" value="(ses_\w+)"/g)].map(
    ([, id = '']) => id,
  )

t.test(
  'an owner invites a person, who gets one email, a role and a row of the audit',
  async (t) => {
    const { organisation, email, owner, path } = await setUp()
    const invited = await owner.post(`${path}/invite`, { email: 'Ann@New.example', role: 'viewer' })
    t.match(invited, { status: 200, text: /Ann@New\.example is invited/ })
    t.match(invited.text, 'ann@new.example')
    t.match(await rolesOf(organisation), { 'ann@new.example': 'viewer' })
    t.match(await lastAudit(organisation), {
      action: 'invite',
      actor: email,
      target: 'ann@new.example',
      after: { role: 'viewer' },
    })
    const [notice] = await sql`
    select email, kind, detail from app.notices where organisation_id = core.decode_id('org', ${organisation.id})`
    t.same(notice, {
      email: 'ann@new.example',
      kind: 'invited',
      detail: { role: 'viewer', invitedBy: email },
    })
    const ann = await signIn(sql, base, 'ann@new.example')
    t.match(await ann.get(path), { status: 200 })

    const again = await owner.post(`${path}/invite`, { email: 'ann@new.example', role: 'owner' })
    t.match(again, { status: 422, text: /is a member already/ })
    t.match(again.html, 'value="ann@new.example"')
    t.equal((await noticesOf(sql, organisation)).length, 1)
  },
)

t.test(
  'an invitation of what is no address is shown again with its problem, escaped',
  async (t) => {
    const { owner, path } = await setUp()
    const refused = await owner.post(`${path}/invite`, { email: HOSTILE, role: 'member' })
    t.match(refused, { status: 422, text: /must be an email address/ })
    t.match(refused.html, 'value="&lt;script>alert(&quot;1&quot;)&lt;/script>')
    t.match(refused.html, /<details open/)
    t.match(await owner.post(`${path}/invite`, { email: 'a@b.example', role: 'king' }), {
      status: 422,
      text: /must be owner, member or viewer/,
    })
  },
)

t.test('the 51st invitation of an organisation within an hour is refused', async (t) => {
  const { organisation, owner, path } = await setUp()
  await sql`
    insert into app.notices (id, organisation_id, email, kind, detail, created_at)
    select core.new_id(now()), core.decode_id('org', ${organisation.id}), 'x@example.com', 'invited', '{}', now()
    from generate_series(1, 49)`
  t.match(await owner.post(`${path}/invite`, { email: 'a@b.example', role: 'member' }), {
    status: 200,
  })
  t.match(await owner.post(`${path}/invite`, { email: 'b@b.example', role: 'member' }), {
    status: 429,
    text: /sent 50 invitations within an hour/,
  })
  t.notOk('b@b.example' in (await rolesOf(organisation)))
})

t.test('an owner changes roles and removes members, but not the last owner', async (t) => {
  const { organisation, email, owner, path } = await setUp()
  await sql`delete from app.members m using app.users u where u.id = m.user_id and u.email = 'owner@example.com'`
  const member = await signInAs(sql, base, { organisation: organisation.id, role: 'viewer' })
  const other = `viewer-${organisation.id}@example.com`
  const changed = await owner.post(`${path}/role`, { email: other, role: 'member' })
  t.match(changed.text, `${other} has the role member.`)
  t.match(await rolesOf(organisation), { [other]: 'member' })
  t.match(await lastAudit(organisation), {
    actor: email,
    before: { role: 'viewer' },
    after: { role: 'member' },
  })
  t.equal((await noticesOf(sql, organisation)).length, 0, 'only an invitation is mailed')

  for (const [action, form] of [
    ['role', { email, role: 'viewer' }],
    ['remove', { email }],
  ] as const) {
    const refused = await owner.post(`${path}/${action}`, form)
    t.match(refused, { status: 422, text: /An organisation needs an owner/ })
  }
  t.match(await rolesOf(organisation), { [email]: 'owner' })

  t.match(await member.get(path), { status: 200 })
  const removed = await owner.post(`${path}/remove`, { email: other })
  t.match(removed.text, `${other} is removed.`)
  t.match(await lastAudit(organisation), { action: 'remove_member', actor: email, target: other })
  t.match(await member.get(path), { text: /Email me a link/ })
})

t.test('viewers and members see the team and change nothing of it', async (t) => {
  const { organisation, email, path } = await setUp()
  for (const role of ['viewer', 'member'] as const) {
    const browser = await signInAs(sql, base, { organisation: organisation.id, role })
    const page = await browser.get(path)
    t.match(page.text, `${email} owner`)
    t.notMatch(page.text, /Invite|Remove/)
    for (const [action, form] of Object.entries({
      invite: { email: 'a@b.example', role: 'owner' },
      role: { email: `${role}-${organisation.id}@example.com`, role: 'owner' },
      remove: { email },
      revoke: { id: 'ses_01h455vb4pex5vsknk084sn02q' },
    })) {
      t.match(await browser.post(`${path}/${action}`, form), {
        status: 403,
        text: /this needs the role owner/,
      })
    }
  }
  t.match(await rolesOf(organisation), { [email]: 'owner' })
})

t.test('changes of the team need a sign-in within the last 10 minutes', async (t) => {
  const { organisation, email, owner, path } = await setUp()
  const other = `viewer-${organisation.id}@example.com`
  await signInAs(sql, base, { organisation: organisation.id, role: 'viewer' })
  const [theirs = ''] = await revocable(owner, path)
  t.ok(theirs)
  await ageSignIn(sql, email)
  for (const [action, form] of Object.entries({
    invite: { email: 'a@b.example', role: 'member' },
    role: { email: other, role: 'owner' },
    remove: { email: other },
    revoke: { id: theirs },
  })) {
    t.match((await owner.post(`${path}/${action}`, form)).text, 'Sign in again', action)
  }
  t.match(await rolesOf(organisation), { [other]: 'viewer' })
  t.same(await revocable(owner, path), [theirs])
})

t.test('members of another organisation are neither shown, changed nor removed', async (t) => {
  const { owner, path } = await setUp()
  const { organisation: theirs, email: stranger } = await setUp()
  const page = await owner.get(pathOf(theirs))
  t.equal(page.status, 404)
  t.notMatch(page.html, stranger)
  t.notMatch((await owner.get(path)).html, stranger)
  for (const [action, form] of Object.entries({
    role: { email: stranger, role: 'viewer' },
    remove: { email: stranger },
  })) {
    t.match(await owner.post(`${path}/${action}`, form), { status: 404 }, action)
  }
  t.match(await rolesOf(theirs), { [stranger]: 'owner' })
})

t.test('a user revokes an own session, which is signed out then', async (t) => {
  const { organisation, path } = await setUp()
  const email = `viewer-${organisation.id}@example.com`
  const one = await signInAs(sql, base, { organisation: organisation.id, role: 'viewer' })
  const two = await signIn(sql, base, email)
  t.match((await one.get(path)).text, 'this session')
  const ids = await revocable(one, path)
  t.equal(ids.length, 1, 'without the current one and without those of others')
  t.match(await one.post(`${path}/revoke`, { id: ids[0] ?? '' }), {
    status: 200,
    text: /The session is revoked/,
  })
  t.match((await two.get(path)).text, 'Email me a link')
  t.match(await one.get(path), { status: 200 })
  t.match(await lastAudit(organisation), { action: 'sign_out', actor: email, target: email })
})

t.test('an owner revokes the session of a member, who is signed out then', async (t) => {
  const { organisation, email, owner, path } = await setUp()
  const member = await signInAs(sql, base, { organisation: organisation.id, role: 'member' })
  const [id = '', ...others] = await revocable(owner, path)
  t.same(others, [])
  await owner.post(`${path}/revoke`, { id })
  t.match((await member.get(path)).text, 'Email me a link')
  t.match(await lastAudit(organisation), {
    action: 'sign_out',
    actor: email,
    target: `member-${organisation.id}@example.com`,
  })
})

t.test('an owner who invites a stranger neither sees nor revokes the sessions', async (t) => {
  const { owner, path } = await setUp()
  const other = await setUp()
  await sql`select ops.make_operator('operator@example.com')`
  const operator = await signIn(sql, base, 'operator@example.com')
  const strangers = await sql<{ id: string }[]>`
    select core.encode_id('ses', s.id) as id from app.sessions s join app.users u on u.id = s.user_id
    where u.email in (${other.email}, 'operator@example.com')`
  t.equal(strangers.length, 2)
  for (const email of [other.email, 'operator@example.com']) {
    await owner.post(`${path}/invite`, { email, role: 'viewer' })
  }
  t.same(await revocable(owner, path), [])
  for (const { id } of strangers) {
    t.match(await owner.post(`${path}/revoke`, { id }), { status: 404 })
  }
  t.match(await owner.post(`${path}/revoke`, { id: 'no id' }), { status: 404 })
  t.match(await other.owner.get(other.path), { status: 200 })
  t.match(await operator.get('/operator'), { status: 200 })
})

t.test(
  'the audit shows changes newest first, 25 to a page, of this organisation only',
  async (t) => {
    const { organisation, owner, path } = await setUp()
    const { id: other } = await createOrganisation(sql)
    await sql`select ops.pause(${organisation.id}, 'too many complaints')`
    await sql`select ops.pause(${other}, 'of others')`
    await sql`
    insert into app.audit (at, actor, login, application_name, action, organisation_id, target, after)
    select now(), 'service', 'x', '', 'numbered', core.decode_id('org', ${organisation.id}), 'target ' || n, jsonb_build_object('n', n)
    from generate_series(31, 60) n`
    const first = await owner.get(path)
    t.match(first.text, /numbered target 60 n: 60 .* numbered target 36 n: 36 Older/)
    t.notMatch(first.text, 'target 35 ')
    const [, next = ''] = /href="([^"]*[?]audit=\d+)#audit"/.exec(first.html) ?? []
    const second = await owner.get(next)
    t.match(
      second.text,
      /target 35 n: 35 .* target 31 n: 31 .* pause org_\w+ .*reason: none → too many complaints/,
    )
    t.notMatch(first.text + second.text, 'of others')
    t.match(await owner.get(`${path}?audit=x&members=%00&sessions=x`), { status: 200 })
  },
)

t.test('the audit shows operators as "operator", and former users to owners only', async (t) => {
  const { organisation, email, owner, path } = await setUp()
  const viewer = await signInAs(sql, base, { organisation: organisation.id, role: 'viewer' })
  const operator = await signInAsOperator(sql, base, 'hidden@operators.example')
  await operator.post(`/operator/organisations/${organisation.id}/pause`, { note: 'a check' })
  await operator.post(`/operator/organisations/${organisation.id}/view`)
  await sql`select ops.resume(${organisation.id})`
  await signInAs(sql, base, {
    organisation: organisation.id,
    role: 'owner',
    email: 'left@x.example',
  }).then((leaver) => leaver.post(`${path}/invite`, { email: 'new@x.example', role: 'viewer' }))
  await owner.post(`${path}/remove`, { email: 'left@x.example' })
  const auditOf = async (browser: Browser) =>
    (await browser.get(path)).text.replace(/.* Audit Time /, '')
  for (const [browser, leaver] of [
    [owner, 'left@x.example'],
    [viewer, 'former user'],
  ] as const) {
    const text = await auditOf(browser)
    t.notMatch(text, 'hidden@operators.example')
    t.match(text, ` operator pause ${organisation.id} `)
    t.match(text, ' operator view_organisation operator ')
    t.match(text, ` operator resume ${organisation.id} `)
    t.match(text, ` ${leaver} invite new@x.example `)
    t.match(text, ` ${email} remove_member left@x.example `)
  }
})

t.test('hostile text of the audit and of a browser is shown escaped', async (t) => {
  const { organisation, owner, path } = await setUp()
  await sql`select ops.pause(${organisation.id}, ${HOSTILE})`
  await sql`update app.sessions set client = ${HOSTILE}`
  const page = await owner.get(path)
  t.notMatch(page.html, '<script>alert')
  const shown = page.html.split('<bdi>&lt;script>alert(&quot;1&quot;)&lt;/script> \u202eabc</bdi>')
  t.equal(shown.length - 1, 2, 'within an element that isolates its direction')
})

t.test('more than 25 members are shown on several pages', async (t) => {
  const { organisation, owner, path } = await setUp()
  for (let n = 0; n < 30; n++) {
    await sql`select ops.invite(${organisation.id}, ${`m${String(n).padStart(2, '0')}@x.example`}, 'viewer')`
  }
  const first = await owner.get(path)
  const [, next = ''] = /href="([^"]*[?]members=[^"#]+)#members"/.exec(first.html) ?? []
  t.match(first.text, 'm24@x.example')
  t.notMatch(first.text.split('Sessions')[0], 'm25@x.example')
  t.match((await owner.get(next)).text.split('Sessions')[0], /m25@x\.example .*m29@x\.example/)
})

t.test(
  'ops.invite locks the organisation before it adds the user, as an invitation from the page does',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const email = 'both@example.com'
    const { invited } = await sql.begin(async (tx) => {
      await tx`select from app.organisations where id = core.decode_id('org', ${organisation.id}) for no key update`
      const invited = sql`select ops.invite(${organisation.id}, ${email}, 'member')`.execute()
      await untilLocked(sql, 1, 'ops.invite')
      // It would wait for ops.invite, which waits for this transaction.
      await tx`select core.add_user(${email})`
      return { invited }
    })
    await invited
    t.match(await rolesOf(organisation), { [email]: 'member' })
  },
)
