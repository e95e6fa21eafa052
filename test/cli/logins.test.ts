import { randomUUID } from 'node:crypto'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { ensureLogin } from '../../src/db/login.ts'
import { VERSION } from '../../src/telemetry/version.ts'
import { createDatabase, createEmptyDatabase, serviceUrl } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { runCommand, spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const SECRET_KEY = Buffer.alloc(32, 7).toString('base64')
const id = randomUUID().replaceAll('-', '')

const run = (args: string[], env: Record<string, string>) =>
  runCommand(args, { SECRET_KEY, ...env })

const at = (url: string, username: string, password = '') =>
  Object.assign(new URL(url), { username, password }).href

t.test('service with its own login', async (t) => {
  const { url, sql } = await createDatabase()
  const { liveKey, domain } = await createOrganisation(sql)
  const { base } = await startTestService(url)
  const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  await until('delivery', async () => {
    const shown = await get(`${base}/v1/emails/${json.id}`, liveKey)
    return shown.json.status === 'delivered'
  })

  t.test('connects with that login only', async (t) => {
    const rows = await sql<{ usename: string; application: string }[]>`
      select distinct usename, application_name as application from pg_stat_activity
      where datname = current_database() and pid <> all (
        select pid from pg_stat_activity where usename = session_user and application_name = 'postgram')
      order by 2`
    t.same(
      rows.map((row) => [row.application, row.usename]),
      ['postgram', 'postgram clock', 'postgram heartbeat', 'postgram worker'].map((name) => [
        name,
        'postgram_app',
      ]),
    )
  })

  t.test('has no more rights after "set role none"', async (t) => {
    const service = connect(await serviceUrl(url), { max: 1, role: 'postgram_service' })
    t.teardown(() => service.end())
    for (const reset of ['set role none', 'reset role', 'set role postgram_service']) {
      await service.unsafe(reset)
      for (const statement of [
        'select from app.messages',
        'select from app.api_keys',
        'select from ops.organisations',
        'select core.now()',
        'create table public.x ()',
        'create schema x',
        'create role x',
        'set role postgram_operator',
      ]) {
        await t.rejects(service.unsafe(statement), { code: '42501' }, `${reset}; ${statement}`)
      }
    }
  })
})

t.test('service and owner with separate logins, the owner not a superuser', async (t) => {
  const { url, sql } = await createEmptyDatabase()
  const [owner, login] = [`owner_${id}`, `login_${id}`]
  const database = new URL(url).pathname.slice(1)
  await sql.unsafe(`
    create role ${owner} login createrole password 'o';
    alter database ${database} owner to ${owner}`)
  for (const role of ['postgram_service', 'postgram_operator', 'postgram_report']) {
    // Another test may make them at this moment.
    await sql.unsafe(
      `do $$ begin create role ${role}; exception when duplicate_object or unique_violation then null; end $$`,
    )
    await sql.unsafe(`grant ${role} to ${owner} with admin option`)
  }
  t.teardown(async () => {
    await sql.unsafe(`
      reassign owned by ${owner} to current_user; drop owned by ${owner};
      drop role if exists ${login}; drop role ${owner}`)
  })
  const env = { DATABASE_URL: at(url, login, 's'), MIGRATE_DATABASE_URL: at(url, owner, 'o') }

  t.test(
    'migrate: brings the database to this version and creates the service login',
    async (t) => {
      t.same(await run(['migrate'], env), { code: 0, stdout: '', stderr: '' })
      const [role] = await sql`
      select r.rolcanlogin, r.rolsuper, r.rolcreaterole, r.rolpassword like 'SCRAM-SHA-256$%' as is_scram,
        array(select m.roleid::regrole::text from pg_auth_members m where m.member = r.oid) as roles
      from pg_authid r where r.rolname = ${login}`
      t.match(role, {
        rolcanlogin: true,
        rolsuper: false,
        rolcreaterole: false,
        isScram: true,
        roles: ['postgram_service'],
      })
      t.match(await run(['seed'], env), { code: 0, stdout: /^live key {2}sk_live_/ })
    },
  )

  t.test('start: runs all roles with the service login, without the owner', async (t) => {
    // Without it the fixture would create another login.
    const { DATABASE_URL } = env
    const service = await spawnService(DATABASE_URL, 'all', {
      DATABASE_URL,
      MIGRATE_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
      NODE_ENV: 'production',
    })
    t.equal((await get(`${service.base}/readyz`, null)).status, 200)
    t.notMatch(service.output(), /has more rights than the service needs/)
    t.equal(await service.end('SIGTERM'), 0)
  })

  t.test('start: warns in production about a login with more rights', async (t) => {
    const service = await spawnService(url, 'clock', {
      DATABASE_URL: env.MIGRATE_DATABASE_URL,
      NODE_ENV: 'production',
    })
    const [line] = service
      .output()
      .split('\n')
      .filter((text) => text.includes('has more rights'))
    t.match(JSON.parse(line ?? '{}'), {
      level: 'warn',
      login: owner,
      excess: 'may create roles, may create schemas in the database',
    })
    t.equal(await service.end('SIGTERM'), 0)
  })

  t.test(
    'doctor: checks the service login, and reports the missing owner for the other checks',
    async (t) => {
      const { stdout } = await run(['doctor'], env)
      t.match(stdout, /^ok {6}service login$/m)
      t.match(stdout, /^ok {6}schema$/m)
      const { stdout: alone } = await run(['doctor'], { DATABASE_URL: env.DATABASE_URL })
      t.equal(
        alone,
        `Postgram ${VERSION}\nok      database\nok      service login\n` +
          'PROBLEM owner: set MIGRATE_DATABASE_URL to the address of the owner: the other checks need it\n',
      )
      const { stdout: excessive } = await run(['doctor'], {
        DATABASE_URL: env.MIGRATE_DATABASE_URL,
        NODE_ENV: 'production',
      })
      t.match(excessive, /^WARNING service login: owner_\w+ may create roles, .*#database-logins$/m)
    },
  )

  t.test('start: exits with one line on an older schema, with any login', async (t) => {
    await sql`update app.code set sha256 = 'older'`
    const line =
      'the database is older than this version: run "node src/main.ts migrate" with the address of its owner in MIGRATE_DATABASE_URL\n'
    const none = { code: 1, stdout: '', stderr: line }
    t.same(await run(['start'], { DATABASE_URL: env.DATABASE_URL }), none)
    t.same(await run(['start'], { ...env, DATABASE_URL: env.MIGRATE_DATABASE_URL }), none)
    t.same([...(await sql`select sha256 from app.code`)], [{ sha256: 'older' }])
  })

  t.test('start: exits with one line on an empty database', async (t) => {
    const empty = await createEmptyDatabase()
    const { code, stderr } = await run(['start'], { DATABASE_URL: at(empty.url, login, 's') })
    t.same([code, stderr.split('\n').length], [1, 2])
    t.match(stderr, /^the database is older than this version: run "node src\/main\.ts migrate"/)
  })
})

t.test(
  'ensureLogin(): changes no login that is ready, and names the statement for an administrator',
  async (t) => {
    const { url, sql } = await createDatabase()
    const name = `kept_${id}`
    await sql.unsafe(`create role ${name} login noinherit password 'x' in role postgram_service`)
    const passwordOf = async () =>
      (await sql`select rolpassword from pg_authid where rolname = ${name}`)[0]?.rolpassword
    const before = await passwordOf()
    await ensureLogin(sql, at(url, name, 'x'))
    t.equal(await passwordOf(), before)

    t.test('a login without inheritance starts a service', async (t) => {
      const DATABASE_URL = at(url, name, 'x')
      const service = await spawnService(url, 'worker', { DATABASE_URL })
      t.equal(await service.end('SIGTERM'), 0)
    })

    t.test('a changed password in the address is set for the login', async (t) => {
      const changed = at(url, name, 'y')
      await ensureLogin(sql, changed)
      const other = connect(changed, { max: 1 })
      t.equal((await other`select session_user as name`)[0]?.name, name)
      await other.end()
      await ensureLogin(sql, at(url, name, 'x'))
    })

    const weak = connect(at(url, name, 'x'), { max: 1, role: 'postgram_service' })
    t.teardown(() => weak.end())
    await t.rejects(ensureLogin(weak, at(url, `none_${id}`, 'x')), {
      message: new RegExp(
        `^DATABASE_URL: its login .* run: create role none_${id} login password '…' in role postgram_service$`,
      ),
    })
    t.teardown(() => sql.unsafe(`drop role ${name}`))
  },
)
