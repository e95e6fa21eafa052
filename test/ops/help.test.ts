import t from 'tap'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { anEmail, anSms, post } from '../fixtures/http.ts'
import { addDkimKeys } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { noPostgres, runPostgres } from '../fixtures/postgres.ts'
import { startTestService } from '../fixtures/service.ts'
import { recordEvents } from '../fixtures/webhooks.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const acme = await createOrganisation(sql, { name: 'Acme' })
await sql`select ops.verify_domain('Acme', 'acme.example')`
await sql`select ops.invite('Acme', 'ann@acme.example')`
await addDkimKeys(sql, {
  domain: 'acme.example',
  dkimZone: 'dkim.test',
  values: ['k=rsa; p=', 'k=rsa; p='],
})

const sent = async (path: string, body: object) =>
  (await post(`${base}/v1/${path}`, acme.liveKey, body)).json.id as string
const toJane = await sent('emails', anEmail(acme.domain, { to: 'jane@acme.example' }))

type Entry = { topic: string; usage: string; description: string }
const find = (tx: Tx | typeof sql, about: string) => tx<Entry[]>`select * from ops.help(${about})`
const names = async (about: string) =>
  (await find(sql, about)).map(({ usage }) => usage.replace(/\([\s\S]*/, ''))

t.test('ops.help: every object of ops has a topic and one short sentence', async (t) => {
  const manual = await sql<{ topic: string | null; name: string; sentence: string }[]>`
    select topic, name, sentence from core.manual()`
  t.ok(manual.length > 80)
  for (const { topic, name, sentence } of manual) {
    t.match(topic, /^[a-z]{2,9}$/, `${name} is in the list of core.manual()`)
    t.match(sentence, /^[A-Z][^.].{10,120}\.$/, name)
  }
})

t.test('ops.help: arguments with a default are in brackets, and views have none', async (t) => {
  const manual = await sql<{ name: string; arguments: string | null }[]>`
    select name, arguments from core.manual() where name in
      ('after_restore', 'create_organisation', 'create_webhook_endpoint', 'organisations', 'set_plan_terms')
    order by name`
  t.same(
    manual.map((row) => row.arguments),
    [
      '',
      'name, owner_email, [plan]',
      'organisation, url, event_types',
      null,
      'plan, [name, price_rand, emails_included, sms_included, domains_included, test_messages_daily]',
    ],
  )
})

t.test(
  'ops.help: psql prints the list and every entry in at most 80 columns',
  { skip: noPostgres },
  async (t) => {
    const all = await sql<{ name: string }[]>`select distinct name from core.manual()`
    const commands = [
      'select * from ops.help',
      'select * from ops.checks',
      ...all.map(({ name }) => `select * from ops.help('${name}')`),
    ]
    const text = await runPostgres(
      'psql',
      url,
      '-X',
      '-P',
      'pager=off',
      ...commands.flatMap((one) => ['-c', one]),
    )
    const lines = text.split('\n')
    t.ok(lines.length > 500)
    t.same(
      lines.filter((line) => [...line].length > 80),
      [],
    )
  },
)

t.test('ops.help(about): finds by topic, name and words of the sentence', async (t) => {
  const domains = await names('domain')
  for (const name of ['domains', 'release_domain', 'rotate_dkim', 'dns_zone'])
    t.ok(domains.includes(name), name)
  t.notOk(domains.includes('pause'))
  t.same(await names('Domains'), domains, 'a plural and capitals find the same')
  t.same(await names('sender approve'), ['approve_sender'], 'all words have to occur')
  t.ok((await names('invoice')).includes('statement'))
  t.ok((await names('sms')).includes('holidays'))
})

t.test('ops.help(about): the name of a function comes first, with its whole comment', async (t) => {
  for (const about of ['pause', 'ops.pause']) {
    const [first, second] = await find(sql, about)
    t.match(first, { topic: 'accounts', usage: 'pause(organisation, reason)' })
    t.match(
      first?.description.replaceAll('\n', ' '),
      /^Pause an .*\. Live sends get 423 org_paused\..*\.$/,
    )
    t.notMatch(second?.description.replaceAll('\n', ' '), /\. /)
  }
})

t.test('ops.help and ops.example: an unknown name raises an error with a hint', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const call of [
      "select ops.help('quark')",
      "select ops.example('quark')",
      'select ops.example(null)',
    ]) {
      const { message, hint } = await raisedBy(tx, (inner) => inner.unsafe(call))
      t.match(message, /(quark|null)/)
      await tx.unsafe(String(hint))
    }
  })
})

/** The calls that an example needs before it. */
const before: Record<string, string[]> = {
  resume: ['pause'],
  reinstate: ['suspend'],
  set_plan: ['create_plan'],
  set_plan_terms: ['create_plan'],
  change_template: ['create_template'],
  restore_template: ['create_template', 'change_template'],
  delete_template: ['create_template'],
  revoke_sender: ['approve_sender'],
  remove_holiday: ['add_holiday'],
  unblock_number: ['block_number'],
  unsuppress_globally: ['suppress_globally'],
  set_webhook_endpoint: ['create_webhook_endpoint'],
  rotate_webhook_secret: ['create_webhook_endpoint'],
  delete_webhook_endpoint: ['create_webhook_endpoint'],
  disable_webhook_endpoint: ['create_webhook_endpoint'],
  enable_webhook_endpoint: ['create_webhook_endpoint', 'disable_webhook_endpoint'],
  send_test_event: ['create_webhook_endpoint'],
  replay_event: ['create_webhook_endpoint'],
  replay_events: ['create_webhook_endpoint'],
}

/** Why the examples of a division are refused: the service is running, and no division has begun. */
const refused: Record<string, RegExp> = {
  begin_division: /a process of the service is running/,
  divide: /a process of the service is running/,
  end_division: /a process of the service is running/,
}

t.test(
  'ops.example: the line for every function and view can be pasted by an operator',
  async (t) => {
    await sql`
    insert into app.domains (id, organisation_id, name)
    values (core.new_id(now()), core.decode_id('org', ${acme.id}), 'claimed.example')`
    await sql`insert into ops.staged_numbers values ('+27821234567')`
    const [event = ''] = await recordEvents(sql, acme, 'email.sent', [new Date()])
    const objects = await sql<{ name: string; isFunction: boolean; example: string }[]>`
    select name, bool_or(arguments is not null) as is_function, ops.example(name) as example
    from core.manual() group by name`
    const exampleOf = (name: string) => {
      const example = objects.find((object) => object.name === name)?.example ?? ''
      return example
        .replace('sk_live_01234567', acme.liveKey.slice(0, 16))
        .replace('evt_…', event)
        .replace('org_…', acme.id)
    }
    for (const { name, isFunction, example } of objects) {
      if (name === 'staged_numbers') {
        t.match(example, /^\\copy [^;]+$/, 'a command of psql')
        continue
      }
      t.match(example, new RegExp(`^select .*\\bops\\.${name}\\b.*;$`), name)
      if (isFunction) t.match(example, `ops.${name}(`, name)
      await rolledBack(sql, async (tx) => {
        await tx`set local role postgram_operator`
        for (const earlier of before[name] ?? []) await tx.unsafe(exampleOf(earlier))
        const problem = refused[name]
        if (problem) {
          await tx`select ops.create_organisation('Beta', 'owner@beta.example', 'starter')`
          return t.match(
            (await raisedBy(tx, (inner) => inner.unsafe(exampleOf(name)))).message,
            problem,
          )
        }
        await tx.unsafe(exampleOf(name)).catch((error) => t.fail(`${example}: ${error.message}`))
      })
    }
  },
)

t.test('ops functions accept names in any case, URLs and addresses instead of IDs', async (t) => {
  await sql`select ops.create_template('Acme', 'Welcome', 'Hello', null, 'Hello')`
  const [hook] = await sql<{ id: string }[]>`
    select id from ops.create_webhook_endpoint('Acme', 'https://shop.example/hook', '{email.sent}')`
  const [template] = await sql<
    { id: string }[]
  >`select id from ops.templates where name = 'Welcome'`
  const sms = await sent('sms', anSms({ to: '+27821112222' }))
  const [message] = await sql<{ email: string; sms: string }[]>`
    select core.encode_id('em', (core.find_message('Jane@acme.example')).id) as email,
      core.encode_id('sm', (core.find_message('+27821112222')).id) as sms`
  t.same(message, { email: toJane, sms })
  const one = async (call: string) =>
    (await sql.unsafe<{ value: string }[]>(`select ${call} as value`))[0]?.value
  t.equal(await one(`core.encode_id('org', core.organisation_id('ACME'))`), acme.id)
  t.equal(await one(`core.encode_id('tpl', (core.find_template('welcome')).id)`), template?.id)
  t.equal(
    await one(`core.encode_id('we', (core.find_webhook_endpoint('https://shop.example/hook')).id)`),
    hook?.id,
  )
  t.equal(await one(`(core.find_any_domain('ACME.example')).name`), 'acme.example')
  t.equal(await one(`(core.find_plan('PLAN-1000000')).id`), 'plan-1000000')
  t.same(
    [...(await sql`select id from ops.messages_of('acme', at_most => 1)`)],
    [{ id: sms }],
    'messages_of takes an organisation by its name',
  )
  const [domain] = await sql<
    { id: string }[]
  >`select id from ops.domains where name = 'claimed.example'`
  await rolledBack(sql, async (tx) => {
    const [released] = await tx`select ops.release_domain(${domain?.id ?? ''}) as owner`
    t.equal(released?.owner, acme.id, 'release_domain takes an id, too')
  })
  t.match(await one(`ops.replay_events('acme', now() - interval '1 hour', now())`), /^\d+$/)
})

t.test('audit: the target is an ID even if the operator gave a name', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.pause('Acme', 'a test')`
    await tx`select ops.grant_credits('acme', 1, 'a test')`
    await tx`select ops.delete_template('Welcome')`
    await tx`select ops.retry_message('jane@acme.example')`
    await tx`select ops.rotate_webhook_secret('https://shop.example/hook')`
    const rows = await tx<
      { target: string }[]
    >`select target from ops.audit order by id desc limit 5`
    t.same(
      rows.map(({ target }) => target.replace(/_.*/, '')),
      ['we', 'em', 'tpl', 'org', 'org'],
    )
  })
})

t.test('an ambiguous name raises an error whose hint lists the IDs', async (t) => {
  const { id: second } = await createOrganisation(sql, { name: 'ACME' })
  await sql`select ops.create_template(${second}, 'welcome', 'Hello', null, 'Hello')`
  await sql`select ops.create_webhook_endpoint(${second}, 'https://shop.example/hook', '{email.sent}')`
  const another = await sent('emails', anEmail(acme.domain, { to: 'JANE@acme.example' }))
  await sql`select ops.create_plan('one', 'Twice', 0, 0, 0, 0), ops.create_plan('two', 'Twice', 0, 0, 0, 0)`
  await rolledBack(sql, async (tx) => {
    const refused = async (call: string) => {
      const { code, message, hint } = await raisedBy(tx, (inner) => inner.unsafe(`select ${call}`))
      t.equal(code, 'P0001', `${call}: ${message}`)
      t.match(message, /^'.*' matches 2 [a-z ]+s$/)
      t.match(hint, /^use one of these IDs: /)
      return String(hint)
    }
    const organisations = await refused(`ops.pause('Acme', 'a test')`)
    for (const id of [acme.id, second]) t.match(organisations, `${id} (owner@example.com)`)
    const templates = await refused(`ops.delete_template('Welcome')`)
    t.match(templates, /tpl_\w+ \(of Acme\), tpl_\w+ \(of ACME\)$/)
    const endpoints = await refused(`ops.rotate_webhook_secret('https://shop.example/hook')`)
    t.match(endpoints, /we_\w+ \(of Acme\), we_\w+ \(of ACME\)$/)
    const messages = await refused(`ops.why('jane@acme.example')`)
    for (const id of [toJane, another]) t.match(messages, `${id} (queued)`)
    t.match(await refused(`ops.set_plan(${`'${acme.id}'`}, 'twice')`), 'one, two')
    await tx`select ops.pause(${acme.id}, 'by its id')`
  })
})
