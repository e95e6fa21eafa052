import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { type Browser, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { get, post } from '../fixtures/http.ts'
import { createLives, jobsOf, messageOf, send, sendSms } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { sendHeartbeat, startTestService } from '../fixtures/service.ts'
import { createEndpoint, noteAttempt } from '../fixtures/webhooks.ts'

const database = await createDatabase()
const { sql, url } = database
// Messages stay as each test leaves them.
const { base } = await startTestService(url, { roles: ['api'] })
const lives = createLives(database)

type Role = 'viewer' | 'member' | 'owner'

async function createScene(role: Role = 'member') {
  const organisation = await createOrganisation(sql)
  const browser = await signInAs(sql, base, { organisation: organisation.id, role })
  return { organisation, browser, pathOf: (id: string) => pathOf(organisation, id) }
}

const pathOf = (organisation: TestOrganisation, id: string) =>
  `/dashboard/${organisation.id}/messages/${id}`

t.test(
  'an email shows its timeline, attempts with the words of the provider, and facts',
  async (t) => {
    const { organisation, browser, pathOf } = await createScene('viewer')
    const id = await send(base, organisation, { subject: 'Your code', tags: ['login'] })
    await lives.start(id)
    await lives.finish(id, 'deferred', {
      scope: 'message',
      code: '450',
      text: 'Mailbox busy, try later',
    })
    await lives.start(id)
    await lives.finish(id, 'sent')
    await lives.record(id, { type: 'delivered', detail: { text: '250 accepted' } })
    const { text } = await browser.get(pathOf(id))
    t.match(text, /Your code delivered/)
    t.match(text, /Timeline .* queued .* deferred 450 Mailbox busy, try later .* sent .* delivered/)
    t.match(
      text,
      /Attempts .* 1 .* stand-in deferred 450 Mailbox busy, try later 2 .* stand-in sent/,
    )
    t.match(text, /Tags login Accepted \d{4}/)
    t.match(text, 'No webhook endpoint gets an event of this message.')
  },
)

t.test('one sentence says why a message waits, without advice for operators', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  const id = await send(base, organisation)
  const why = async () => (await browser.get(pathOf(id))).text
  t.match(await why(), 'The message waits because no worker is running.')
  await sendHeartbeat(lives.call)
  t.match(await why(), /The message waits behind \d+ messages?\./)
  const [job] = await jobsOf(sql, id)
  await lives.start(id)
  await lives.finish(id, 'deferred', { scope: 'message', text: 'Mailbox busy', job: job?.id })
  t.match(
    await why(),
    /The message waits for attempt 2 at \d{4}-\d\d-\d\d \d\d:\d\d because the last attempt was deferred: Mailbox busy\./,
  )
  await sql`select ops.pause(${organisation.id}, 'too many complaints')`
  t.match(await why(), /has been paused since .*: too many complaints\./)
  t.notMatch(await why(), /select |ops\./)
})

t.test('the text of a failing provider, which may name others, is not shown', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  const id = await send(base, organisation)
  await sendHeartbeat(lives.call)
  await sql`update app.messages set provider = 'gone' where id = ${(await messageOf(sql, id)).id}`
  await sql`
    insert into app.provider_health (provider, last_error, failing_since)
    values ('gone', 'refused carol@example.com', now())`
  t.teardown(() => sql`delete from app.provider_health`)
  const { text } = await browser.get(pathOf(id))
  t.match(text, /the provider gone has accepted no messages since \d{4}/)
  t.notMatch(text, 'carol')
  const [row] = await sql`select ops.why(${id}) as why`
  t.match(row?.why, /: refused carol@example\.com\.$/)
})

t.test('a failed message shows its error with a link to the page of errors', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  const id = await send(base, organisation)
  await lives.start(id)
  await lives.finish(id, 'failed', {
    scope: 'message',
    error: 'provider_rejected',
    text: 'No such user here',
  })
  const { html } = await browser.get(pathOf(id))
  const { json } = await get(`${base}/v1/emails/${id}`, organisation.liveKey)
  t.match(html, new RegExp(`<a href="/docs/errors#${json.error.code}">${json.error.code}</a>`))
  t.match(html, json.error.message.replace(/\.$/, ''))
})

t.test('webhook deliveries: endpoint, state and each attempt', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  const { id: endpoint } = await createEndpoint(sql, organisation, {
    url: 'https://hooks.example/mail',
    types: ['email.sent'],
  })
  const id = await send(base, organisation)
  await lives.start(id)
  await lives.finish(id, 'sent')
  const waiting = await browser.get(pathOf(id))
  t.match(
    waiting.text,
    /email\.sent evt_\w+ https:\/\/hooks\.example\/mail pending next attempt \d{4}/,
  )
  const [, event = ''] = /(evt_\w+)/.exec(waiting.text) ?? []
  await noteAttempt(sql, endpoint, event, { error: 'status 500' })
  await sql`delete from app.webhook_deliveries`
  const { text } = await browser.get(pathOf(id))
  t.match(text, /hooks\.example\/mail failed 1\. \d{4}.* ms status 500/)
})

t.test('the body is in frames that neither load anything nor run a script', async (t) => {
  const { organisation, browser, pathOf } = await createScene('viewer')
  const html =
    '<p onclick="x()">Hi</p><script>alert(1)</script><link rel="preconnect" href="//evil.example">'
  const id = await send(base, organisation, {
    html,
    text: '<b>Hi</b> & bye',
    headers: { 'X-Campaign': '<i>spring</i>' },
    replyTo: 'Ann <ann@example.com>',
  })
  const page = await browser.get(pathOf(id))
  const frames = [...page.html.matchAll(/<iframe sandbox(?:="")? [^>]*src="([^"]*)"/g)]
  t.equal(frames.length, 3)
  t.notMatch(page.html, 'alert(1)')
  t.match(page.text, 'X-Campaign <i>spring</i>')
  t.match(page.text, 'Reply-To Ann <ann@example.com>')
  const [shown, text, source] = await Promise.all(
    ['html', 'text', 'source'].map((part) => browser.get(`${pathOf(id)}/body?part=${part}`)),
  )
  for (const { headers } of [shown, text, source].filter((one) => one !== undefined)) {
    t.equal(
      headers.get('Content-Security-Policy'),
      "default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox",
    )
    t.match(headers.get('Content-Type'), 'text/html')
    t.equal(headers.get('X-Content-Type-Options'), 'nosniff')
  }
  t.match(shown?.html, '<p onclick="x()">Hi</p>')
  t.notMatch(shown?.html, /<link/)
  t.match(text?.html, '&lt;b&gt;Hi&lt;/b&gt; &amp; bye')
  t.match(source?.html, '&lt;script&gt;alert(1)&lt;/script&gt;')
})

t.test('a deleted body is said to be deleted', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  const id = await send(base, organisation)
  await sql`delete from app.bodies where message_id = ${(await messageOf(sql, id)).id}`
  t.match((await browser.get(pathOf(id))).text, 'The body has been deleted')
  t.match(await browser.get(`${pathOf(id)}/body?part=text`), { status: 404 })
  t.match(await browser.get(`${pathOf(id)}/curl`), { status: 404 })
})

t.test('the curl of an email and of an SMS sends the same again', async (t) => {
  const { organisation, browser, pathOf } = await createScene('viewer')
  const email = {
    from: `Ann O'Brien <ann@${organisation.domain}>`,
    to: ['Bob <bob@example.com>', 'carl@example.com'],
    cc: ['dora@example.com'],
    replyTo: 'reply@example.com',
    subject: `It's "here" $HOME \`id\``,
    html: "<p class='x'>It's \\n here</p>",
    text: 'Plain\nlines',
    headers: { 'X-Test': "a'b" },
    tags: ['one', 'two'],
    class: 'transactional',
  }
  const sms = { to: '+27821234567', body: "It's", class: 'transactional', tags: ['x'] }
  const emailId = await send(base, organisation, email)
  const smsId = await sendSms(base, organisation, sms)
  for (const [id, part] of [
    [emailId, 'emails'],
    [smsId, 'sms'],
  ] as const) {
    const { html: command, headers } = await browser.get(`${pathOf(id)}/curl`)
    t.match(headers.get('Content-Type'), 'text/plain')
    t.match(command, '-H "Authorization: Bearer $KEY"')
    t.match(command, `'https://postgram.test/v1/${part}'`)
    const run = promisify(execFile)
    const { stdout } = await run(
      'sh',
      ['-c', command.replace('https://postgram.test', base).replace('curl', 'curl -s')],
      { env: { ...process.env, KEY: organisation.liveKey } },
    )
    const { id: copy } = JSON.parse(stdout)
    const bodies = await sql`
      select b.sender, b."to", b.cc, b.bcc, b.reply_to, b.headers, b.html, b.text, m.subject, m.tags, m.class
      from app.bodies b join app.messages m on m.id = b.message_id
      where m.id in (${(await messageOf(sql, id)).id}, ${(await messageOf(sql, copy)).id})`
    t.equal(bodies.length, 2)
    t.same(bodies[0], bodies[1])
  }
})

t.test('a member retries a failed email and suppresses a recipient', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  const actor = `member-${organisation.id}@example.com`
  const id = await send(base, organisation, { to: ['Ann <Ann@Example.com>', 'bob@example.com'] })
  await lives.start(id)
  await lives.finish(id, 'failed', { scope: 'message', error: 'provider_rejected', text: 'no' })
  const retried = await browser.post(`${pathOf(id)}/retry`)
  t.match(retried.text, /1 message is retried\..*queued retried in the dashboard/)
  t.match(
    await sql`select actor from ops.audit where action = 'retry_message' and target = ${id}`,
    [{ actor }],
  )

  const suppressed = await browser.post(`${pathOf(id)}/suppress`, { email: 'ann@example.com' })
  t.match(
    suppressed.text,
    /ann@example\.com is suppressed\..*ann@example\.com manual bob@example\.com no Suppress/,
  )
  t.match(
    await sql`select actor, organisation from ops.audit where action = 'add_suppression' and target = 'ann@example.com'`,
    [{ actor, organisation: organisation.id }],
  )
  const refused = await post(`${base}/v1/emails`, organisation.liveKey, {
    from: `a@${organisation.domain}`,
    to: 'ann@example.com',
    subject: 'x',
    text: 'x',
  })
  t.match(refused.json.error, { code: 'recipient_suppressed' })
  await browser.post(`${pathOf(id)}/suppress`, { email: 'ann@example.com' })
  const [row] = await sql`select count(*)::int from ops.audit where target = 'ann@example.com'`
  t.match(row, { count: 1 }, 'to suppress it again changes nothing')
  t.match(await browser.post(`${pathOf(id)}/suppress`, { email: 'else@example.com' }), {
    status: 404,
  })
})

t.test('what cannot be retried has no button and says why', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  const id = await send(base, organisation)
  t.match((await browser.get(pathOf(id))).text, 'Retry now')
  await lives.start(id)
  await lives.finish(id, 'sent')
  t.notMatch((await browser.get(pathOf(id))).text, 'Retry now')
  const refused = await browser.post(`${pathOf(id)}/retry`)
  t.match(refused.text, '1 cannot be retried: the message is sent;')
})

t.test('viewers see no action, and theirs are refused', async (t) => {
  const { organisation, browser, pathOf } = await createScene('viewer')
  const id = await send(base, organisation)
  t.notMatch((await browser.get(pathOf(id))).html, /Retry now|Suppress</)
  for (const [action, form] of [
    ['retry', {}],
    ['suppress', { email: 'delivered@sandbox.postgram.test' }],
  ] as const) {
    const refused = await browser.post(`${pathOf(id)}/${action}`, form)
    t.match(refused, { status: 403, text: /this needs the role member/ })
  }
})

t.test('a message of another organisation is not found, in the path and below it', async (t) => {
  const { browser, pathOf: here } = await createScene('owner')
  const other = await createScene()
  const id = await send(base, other.organisation, { subject: 'Secret' })
  const isHidden = async (path: string, ask: (path: string) => ReturnType<Browser['get']>) => {
    const { status, html } = await ask(path)
    t.equal(status, 404, path)
    t.notMatch(html, 'Secret')
  }
  for (const path of [here(id), other.pathOf(id)]) {
    for (const part of ['', '/body?part=text', '/curl', '/events']) {
      await isHidden(`${path}${part}`, browser.get)
    }
    await isHidden(`${path}/retry`, (to) => browser.post(to))
    await isHidden(`${path}/suppress`, (to) =>
      browser.post(to, { email: 'delivered@sandbox.postgram.test' }),
    )
  }
  await isHidden(here('em_nothing'), browser.get)
  await isHidden(here(id.replace('em_', 'sm_')), browser.get)
  t.match(await messageOf(sql, id), { status: 'queued' })
})

t.test('texts with markup, quotes and right-to-left marks are shown as they are', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  const nasty = `<script>alert("1")</script>'" \u202eevil`
  const id = await send(base, organisation, {
    subject: nasty,
    tags: [nasty],
    headers: { 'X-Nasty': '<script>"' },
  })
  await lives.start(id)
  await lives.finish(id, 'failed', { scope: 'message', code: nasty, text: nasty })
  const { html, text } = await browser.get(pathOf(id))
  t.notMatch(html, /<script>/)
  t.match(text, nasty)
})

t.test('in a long queue, the sentence does without the place of the message', async (t) => {
  const { organisation, browser, pathOf } = await createScene()
  await sql`
    insert into graphile_worker._private_jobs (task_id, payload)
    select id, '{}' from graphile_worker._private_tasks, generate_series(1, 5001)
    where identifier = 'send_email'`
  t.teardown(() => sql`delete from graphile_worker._private_jobs where payload::text = '{}'`)
  const id = await send(base, organisation)
  await sendHeartbeat(lives.call)
  t.match(
    (await browser.get(pathOf(id))).text,
    'The message waits in a queue of more than 5 000 messages.',
  )
  const [row] = await sql`select ops.why(${id}) as why`
  t.match(row?.why, /^The message waits behind \d+ messages\.$/)
})
