import { pino } from 'pino'
import t from 'tap'
import { runChecks } from '../../src/cli/doctor/checks.ts'
import { readConfig } from '../../src/config/index.ts'
import { connect } from '../../src/db/client.ts'
import type { ServiceOptions } from '../../src/service/index.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startDatabaseProxy } from '../fixtures/postgres.ts'
import { type ServiceProcess, spawnService } from '../fixtures/processes.ts'
import { secrets, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const sender = await createOrganisation(sql)
const READ_ONLY = 'the database is read-only: default_transaction_read_only is on'
const OUT_OF_SPACE = 'the database server is out of disk space'

const send = (base: string, subject = 'Hello', { liveKey, domain } = sender) =>
  post(`${base}/v1/emails`, liveKey, anEmail(domain, { subject }))

async function readyz(base: string): Promise<string> {
  const { status, json } = await get(`${base}/readyz`, null)
  if (status !== (json.status === 'ready' ? 200 : 503)) throw new Error(`${status} ${json.status}`)
  return json.status
}

const untilReadyzSays = (base: string, status: string) =>
  until(`readyz to say "${status}"`, async () => (await readyz(base)) === status)

/** Returns the warnings of a process's log, and its lines about the database, since the start. */
function linesOf(output: string): string[] {
  const lines = output.split('\n').filter((line) => line.startsWith('{'))
  return lines
    .map((line) => JSON.parse(line) as { level: string; msg: string })
    .filter(({ level, msg }) => level !== 'info' || msg.startsWith('database'))
    .map(({ msg }) => msg)
}

/** Starts an API, or another role, in this process; returns its log as well. */
async function startApi(databaseUrl: string, roles: ServiceOptions['roles'] = ['api']) {
  const output: string[] = []
  const log = pino(
    { level: 'info', formatters: { level: (label) => ({ level: label }) } },
    { write: (line: string) => void output.push(line) },
  )
  const { base } = await startTestService(databaseUrl, { roles, log })
  return { base, lines: () => linesOf(output.join('')) }
}

/** Returns the hints of the doctor's failed checks by name. */
async function wrongs(): Promise<Record<string, string>> {
  const config = readConfig(
    { DATABASE_URL: url, SECRET_KEY: Buffer.alloc(32, 7).toString('base64') },
    { isServing: false },
  )
  const owner = connect(url, { max: 1 })
  const checks = await runChecks(owner, config, secrets).finally(() => owner.end())
  return Object.fromEntries(checks.filter(({ ok }) => !ok).map(({ name, hint }) => [name, hint]))
}

// Both wait for limits of the service, so they wait at the same time.
t.test(
  'database away: each process responds while it is, and goes on after it',
  { jobs: 2 },
  async (t) => {
    t.test(
      'database that closes all connections: each process responds, and logs one line for the loss and one for the return',
      async (t) => {
        const proxy = await startDatabaseProxy(url)
        const processes: Record<string, ServiceProcess & { health: string }> = {}
        const roles = ['api', 'worker', 'clock'] as const
        const spawned = await Promise.all(
          roles.map((role) => spawnService(proxy.url, role, { METRICS_PORT: '0' })),
        )
        for (const [place, process] of spawned.entries()) {
          const role = roles[place] ?? ''
          const [, health = ''] =
            /^ {2}metrics {3}(http:\S+)\/metrics$/m.exec(process.output()) ?? []
          processes[role] = { ...process, health }
          t.equal(await readyz(health), 'ready', role)
        }
        for (let loss = 1; loss <= 2; loss++) {
          proxy.set('refuse')
          proxy.cut()
          const all = Object.values(processes)
          await Promise.all(
            all.map(({ health }) => untilReadyzSays(health, 'the database cannot be reached')),
          )
          if (loss === 1) {
            const { status, json } = await send(processes.api?.base ?? '')
            t.equal(status, 500)
            t.match(json.error, { code: 'internal_error', message: /nothing was sent/ })
          }
          proxy.set('pass')
          await Promise.all(all.map(({ health }) => untilReadyzSays(health, 'ready')))
        }
        // After their ends, because a line may be read later than the response that followed it.
        for (const { end } of Object.values(processes)) t.equal(await end('SIGTERM'), 0)
        const once = ['database unavailable', 'database available again']
        const twice = [...once, ...once]
        for (const [role, { output }] of Object.entries(processes)) {
          // A process whose heartbeats came late after the loss counts as dead to the others until its next one.
          const about = (line: string) =>
            line !== 'request failed' && line !== 'jobs of dead processes freed'
          t.same(linesOf(output()).filter(about), twice, role)
        }
        t.match(
          processes.worker?.output(),
          /"reason":"the database cannot be reached".*"msg":"database unavailable"/,
        )
        t.match(processes.worker?.output(), /"seconds":[\d.]+,"msg":"database available again"/)
      },
    )

    t.test('database that never responds: every send gets a true response', async (t) => {
      // Its own: the processes of the other test would appear in its log.
      const { url, sql } = await createDatabase()
      const organisation = await createOrganisation(sql)
      const proxy = await startDatabaseProxy(url)
      const { base, lines } = await startApi(proxy.url)
      t.equal((await send(base, 'Hello', organisation)).status, 200)
      proxy.set('stall')
      const unknown = await createOrganisation(sql)
      const stalled = (name: string, of: typeof sender) =>
        Promise.all(
          Array.from({ length: 30 }, async (_, n) => {
            const subject = `${name} ${n}`
            return { subject, ...(await send(base, subject, of)) }
          }),
        )
      const answers = [stalled('admitted before', organisation), stalled('unknown', unknown)]
      await untilReadyzSays(base, 'the database cannot be reached')
      const notSent: string[] = []
      for (const { subject, status, json } of (await Promise.all(answers)).flat()) {
        t.equal(status, 500)
        // A send whose key was admitted before may have been accepted together with its admission.
        const isUncertain = /it is unknown whether/.test(json.error.message)
        if (isUncertain) t.match(subject, /^admitted before/)
        else {
          t.match(json.error, { code: 'internal_error', message: /nothing was sent/ })
          notSent.push(subject)
        }
      }
      t.ok(notSent.length >= 30)
      proxy.set('pass')
      await untilReadyzSays(base, 'ready')
      t.equal((await send(base, 'Hello', organisation)).status, 200)
      t.same(await sql`select subject from app.messages where subject = any (${notSent})`, [])
      // The heartbeat waits longer for a response than a request does.
      await until('the line', async () => lines().includes('database available again'))
      t.same(
        lines().filter((line) => line !== 'request failed'),
        ['database unavailable', 'database available again'],
      )
      // Calls that are still stalled would hold up the stop of the service.
      proxy.cut()
    })
  },
)

t.test('single connection of the worker lost: logged at its ordinary level', async (t) => {
  const { base, lines } = await startApi(url, ['api', 'worker'])
  const end = () => sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = 'postgram worker' limit 1`
  await until('a connection', async () => (await end()).length > 0)
  await until('its line', async () => lines().length > 0)
  t.equal(await readyz(base), 'ready')
  t.notOk(lines().includes('database unavailable'))
})

t.test(
  'default_transaction_read_only: readyz and doctor report it until it is reset',
  async (t) => {
    const { base, lines } = await startApi(url)
    t.equal((await send(base)).status, 200)
    const [database] = await sql<{ name: string }[]>`select current_database() as name`
    await sql.unsafe(`alter database ${database?.name} set default_transaction_read_only = on`)
    // The setting applies to new connections only: the heartbeat's connection goes on.
    await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = 'postgram' and usename <> current_user`
    // The first send may fail because its connection is gone, a later one because the new connection is read-only.
    const refusals: string[] = []
    await until('readyz to report it after a send on a new connection', async () => {
      const { status, json } = await send(base)
      if (status === 500) refusals.push(json.error.message)
      return (await readyz(base)) === READ_ONLY
    })
    // A send whose connection is gone may have been accepted together with its admission.
    t.same(
      refusals.filter((message) => !/nothing was sent|it is unknown whether/.test(message)),
      [],
    )
    t.match(refusals.at(-1), /nothing was sent/)
    t.equal((await send(base)).status, 500)
    const wrong = await wrongs()
    t.same(Object.keys(wrong), ['database'])
    t.match(wrong.database, READ_ONLY)

    await sql.begin('read write', (tx) =>
      tx.unsafe(`alter database ${database?.name} reset default_transaction_read_only`),
    )
    await untilReadyzSays(base, 'ready')
    await until('sends to be accepted', async () => (await send(base)).status === 200)
    t.same(
      lines().filter((line) => line !== 'request failed'),
      ['database unavailable', 'database available again'],
    )
  },
)

t.test(
  'full disk: readyz and doctor report it after a failed send, until there is room',
  async (t) => {
    const { base, lines } = await startApi(url)
    const [accept, check] = await sql<{ text: string }[]>`
    select pg_get_functiondef(p.oid) as text from pg_proc p
    where p.oid::regprocedure::text ~ '^api\\.(accept_emails|check_space)\\(' order by p.proname`
    const full = "raise 'could not extend file' using errcode = '53100'"
    const failing = (text: string) =>
      text
        .replace(/^ LANGUAGE \w+$/m, ' LANGUAGE plpgsql')
        .replace(/AS \$function\$.*/s, `AS $function$ begin ${full}; end $function$`)
    // Simulates a full disk. The heartbeat still works, because its row has room in its page.
    await sql.unsafe(failing(accept?.text ?? ''))
    await sql.unsafe(failing(check?.text ?? ''))
    const { status, json } = await send(base)
    t.equal(status, 500)
    t.match(json.error.message, /nothing was sent/)
    await untilReadyzSays(base, OUT_OF_SPACE)
    const beats = await sql<{ at: Date }[]>`select max(heartbeat_at) as at from app.processes`
    await until('a further heartbeat', async () => {
      const [later] =
        await sql`select from app.processes where heartbeat_at > ${beats[0]?.at ?? ''}`
      return later
    })
    t.equal(await readyz(base), OUT_OF_SPACE, 'a heartbeat alone changes nothing')
    t.match((await wrongs())['disk space'], new RegExp(`^${OUT_OF_SPACE}: could not extend file`))

    await sql.unsafe(accept?.text ?? '')
    await sql.unsafe(check?.text ?? '')
    await untilReadyzSays(base, 'ready')
    t.equal((await send(base)).status, 200)
    t.notOk((await wrongs())['disk space'])
    t.same(
      lines().filter((line) => line !== 'request failed'),
      ['database unavailable', 'database available again'],
    )
  },
)

t.test('check_space: fails without room on the disk', async (t) => {
  const other = connect(url, { max: 1 })
  t.teardown(() => other.end())
  t.match(await other`select api.check_space()`, [{ checkSpace: 8_192_000 }])
  await other`set temp_file_limit = '7MB'`
  await t.rejects(other`select api.check_space()`, { code: '53400' })
})
