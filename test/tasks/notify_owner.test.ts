import { type JobHelpers, runOnce } from 'graphile-worker'
import t from 'tap'
import type { OutgoingEmail } from '../../src/providers/email.ts'
import { createSandbox } from '../../src/providers/sandbox/email.ts'
import notifyOwner from '../../tasks/notify_owner.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import { anyJson } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createStandIn, type StandIn } from '../fixtures/providers.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { secrets, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

// No worker runs, until one is started: a job is run by calling the task.
const { url, sql } = await createDatabase()
const call = serviceCall(url)

const helpers = { abortSignal: new AbortController().signal } as JobHelpers

const aTask = (provider: StandIn) =>
  notifyOwner(call, {
    sign: async (_, email) => email,
    provider,
    sandbox: createSandbox(call),
    systemFrom: 'Postgram <notices@system.example>',
    mailFromLabel: 'mail',
    publicUrl: 'https://postgram.test',
    openSecret: secrets.open,
  })

/** A notice to a new organisation's owner. */
async function aNotice(ownerEmail = 'Owner@example.com') {
  const { id: organisation } = await createOrganisation(sql, { name: 'Acme' })
  await sql`select ops.set_owner_email(${organisation}, ${ownerEmail})`
  const [row] = await sql<{ id: string }[]>`
    select core.notify_owner(core.decode_id('org', ${organisation}), 'org_paused',
      '{"complaints": 3, "sent": 20}') as id`
  return String(row?.id)
}

/** A notice, a provider that keeps the emails it gets, and the task. */
async function setUp() {
  const provider = createStandIn()
  const emails: OutgoingEmail[] = []
  provider.onSend = (email) => {
    emails.push(email)
    return { outcome: 'sent' }
  }
  const task = aTask(provider)
  const id = await aNotice()
  return { provider, emails, id, run: async () => task({ id }, helpers) }
}

const noticeOf = async (id: string) => {
  const [row] = await sql<{ attempts: number; sentAt: Date; failedAt: Date; error: string }[]>`
    select attempts, sent_at, failed_at, error from ops.notices where id = ${id}`
  return { ...row }
}

const isMailOk = async () => {
  const [row] = await sql`select ok from ops.checks where name = 'owner mail'`
  return row?.ok
}

t.test('a notice is sent to the owner once, from SYSTEM_FROM', async (t) => {
  const { provider, emails, id, run } = await setUp()
  await run()
  await run()
  t.same(provider.handed, [id])
  t.same(provider.asked, [])
  t.match(emails[0], {
    id,
    attempt: 1,
    isAmbiguous: false,
    fromAddress: 'notices@system.example',
    sender: 'Postgram <notices@system.example>',
    domain: 'system.example',
    mailFromDomain: 'mail.system.example',
    dkimSelector: null,
    dkimPrivateKey: null,
    to: ['Owner@example.com'],
    recipients: ['owner@example.com'],
    cc: [],
    bcc: [],
    class: 'transactional',
    subject: 'Sending is paused: too many recipients complained',
    text: /Sending for Acme has been paused.*Complaints within 24 hours: 3\n/s,
    html: null,
    copy: null,
  })
  t.match(await noticeOf(id), { attempts: 1, sentAt: Date, failedAt: null, error: null })
})

t.test('a deferred notice fails its job, which is retried', async (t) => {
  const { provider, emails, id, run } = await setUp()
  const take = provider.onSend
  const text = '421 not now, owner@example.com'
  provider.onSend = () => ({ outcome: 'deferred', text })
  await t.rejects(run, { message: 'the notice is deferred; see ops.notices for the reason' })
  t.match(await noticeOf(id), { attempts: 1, sentAt: null, failedAt: null, error: text })
  provider.onSend = take
  await run()
  t.same(provider.asked, [], 'there was nothing to ask')
  t.match(emails, [{ id, attempt: 2 }])
  t.match(await noticeOf(id), { attempts: 2, sentAt: Date, error: null })
})

t.test('a refused notice fails permanently, and a check reports it', async (t) => {
  const { provider, id, run } = await setUp()
  t.equal(await isMailOk(), true)
  provider.onSend = () => ({ outcome: 'failed', code: '550' })
  await run()
  await run()
  t.same(provider.handed, [id])
  t.match(await noticeOf(id), { attempts: 1, sentAt: null, failedAt: Date, error: '550' })
  t.equal(await isMailOk(), false)
  const next = await setUp()
  t.equal(await isMailOk(), false, 'a waiting notice does not change the check')
  await next.run()
  t.equal(await isMailOk(), true)
})

t.test('an ambiguous notice that the provider knows is not sent again', async (t) => {
  const { provider, id, run } = await setUp()
  provider.onSend = () => Promise.reject(new Error('the connection broke'))
  await t.rejects(run, { message: 'the notice is ambiguous; see ops.notices for the reason' })
  t.match(await noticeOf(id), { error: 'the connection broke' })
  provider.onLookup = () => true
  await run()
  t.same([provider.handed, provider.asked], [[id], [id]])
  t.match(await noticeOf(id), { attempts: 2, sentAt: Date, error: null })
})

t.test('after a crash during the attempt the provider is asked first', async (t) => {
  for (const isKnown of [true, false]) {
    const { provider, emails, id, run } = await setUp()
    await call('start_notice', { id, from_domain: 'system.example' })
    provider.onLookup = () => isKnown
    await run()
    t.same(provider.asked, [id])
    t.same(provider.handed, isKnown ? [] : [id])
    t.match(await noticeOf(id), { attempts: 2, sentAt: Date })
    if (!isKnown) t.match(emails, [{ isAmbiguous: true, ambiguousSince: Date }])
  }
})

t.test('the provider is asked again while it may not know the notice yet', async (t) => {
  const { provider, id, run } = await setUp()
  provider.lookupDelayMs = 60_000
  await call('start_notice', { id, from_domain: 'system.example' })
  for (let attempt = 0; attempt < 3; attempt++) await t.rejects(run)
  t.same([provider.handed, provider.asked], [[], [id, id, id]])
  await sql`
    update app.notices set attempt_started_at = attempt_started_at - interval '1 minute'
    where id = ${id}`
  await run()
  t.same(provider.handed, [id])
})

t.test('a late result does not change a settled notice', async (t) => {
  const { id, run } = await setUp()
  await run()
  const before = await noticeOf(id)
  for (const outcome of ['failed', 'deferred', 'ambiguous', 'sent']) {
    const result = anyJson({ id, outcome, text: 'late' })
    t.equal(await call('finish_notice', { result }), true)
  }
  t.same(await noticeOf(id), before)
})

t.test('a notice is signed with the DKIM key of its domain when there is one', async (t) => {
  const { emails, run } = await setUp()
  const { id } = await createOrganisation(sql)
  await sql`select ops.verify_domain(${id}, 'system.example')`
  await sql`
    insert into app.dkim_keys (domain_id, selector, state, host, value, private_key, created_at)
    select d.id, k.selector, k.state::app.dkim_state, core.dkim_host(k.selector, d.id, 'dkim.test'), 'v',
      'sealed ' || k.selector, now()
    from app.domains d, (values ('pg1', 'active'), ('pg2', 'next')) k (selector, state)
    where d.name = 'system.example'`
  await run()
  t.match(emails, [{ dkimSelector: 'pg1', dkimPrivateKey: 'sealed pg1' }])
  await sql`update app.domains set status = 'failed' where name = 'system.example'`
  const next = await setUp()
  await next.run()
  t.match(next.emails, [{ dkimSelector: null }], 'but not with one whose records are gone')
  // No SECRET_KEY opens these, so no worker would start.
  await sql`delete from app.dkim_keys`
})

t.test('a notice to a sandbox address goes to the sandbox, whatever the provider', async (t) => {
  const provider = createStandIn()
  const id = await aNotice('Owner@sandbox.postgram.test')
  await aTask(provider)({ id }, helpers)
  t.same(provider.handed, [])
  t.match(await noticeOf(id), { sentAt: Date })
  const taken = await sql`select from ${takenBySandbox(sql)} s where message_id = ${id}`
  t.equal(taken.length, 1)
})

t.test('an invalid payload fails, an unknown notice is skipped', async (t) => {
  const task = aTask(createStandIn())
  for (const payload of [null, {}, { id: 'x' }]) {
    await t.rejects(async () => task(payload, helpers), { name: 'ValiError' })
  }
  await task({ id: '01890000-0000-7000-8000-000000000000' }, helpers)
})

t.test('a notice to a user waits for a worker that knows its kind', async (t) => {
  await sql`select graphile_worker.complete_jobs(array(select id from graphile_worker._private_jobs))`
  const email = 'delivered@sandbox.postgram.test'
  await sql`select core.add_user(${email})`
  await call('request_sign_in', {
    ...{ email, client_address: '8.8.8.8', token_sha256: '00'.repeat(32) },
    sealed_token: secrets.seal('a-token'),
  })
  const [notice] = await sql<{ id: string }[]>`select id from app.notices where email = ${email}`
  const id = String(notice?.id)
  // The tasks of the version before the dashboard.
  const takenBefore: string[] = []
  const names = ['notify_owner', 'send_email', 'send_sms', 'deliver_webhook', 'check_domain']
  const note = (name: string) => async () => {
    takenBefore.push(name)
  }
  await runOnce({
    connectionString: url,
    taskList: Object.fromEntries(names.map((name) => [name, note(name)])),
  })
  t.same(takenBefore, [])
  t.match(await noticeOf(id), { attempts: 0, sentAt: null, failedAt: null })

  const systemFrom = 'Postgram <notices@system.example>'
  const worker = await startTestService(url, { roles: ['worker'], systemFrom })
  await until('it to be sent', async () => (await noticeOf(id)).sentAt !== null)
  t.match(await noticeOf(id), { attempts: 1, failedAt: null })
  await worker.stop()
})

t.test('two workers send each notice once', async (t) => {
  await sql`select graphile_worker.complete_jobs(array(select id from graphile_worker._private_jobs))`
  const ids = await Promise.all(
    Array.from({ length: 20 }, (_, n) => aNotice(`owner+${n}@sandbox.postgram.test`)),
  )
  const systemFrom = 'Postgram <postgram@sandbox.postgram.test>'
  const workers = await Promise.all(
    [1, 2].map(() => startTestService(url, { roles: ['worker'], systemFrom })),
  )
  await until('all to be sent', async () => {
    const rows = await sql`select from app.notices where id in ${sql(ids)} and sent_at is not null`
    return rows.length === ids.length
  })
  const attempts = await sql<{ attempts: number }[]>`
    select attempts from ${takenBySandbox(sql)} s where message_id in ${sql(ids)}`
  t.same(
    attempts.map((row) => row.attempts),
    ids.map(() => 1),
  )
  for (const worker of workers) await worker.stop()
  const jobs = await sql`select from graphile_worker._private_jobs`
  t.equal(jobs.length, 0)
})
