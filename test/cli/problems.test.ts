import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { namingSetting } from '../../src/cli/explain.ts'
import { readConfig } from '../../src/config/index.ts'
import { connect, SERVICE_ROLE } from '../../src/db/client.ts'
import { connectionProblem } from '../../src/db/connection-problem.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { checkServer, problemOf } from '../../src/db/server.ts'
import { SetupError } from '../../src/errors.ts'
import { freePort, startTcpServer } from '../fixtures/network.ts'
import { readPage } from '../fixtures/pages.ts'
import {
  initialise,
  noPgbouncer,
  noPostgres,
  serverFolder,
  startPgbouncer,
  startServer,
} from '../fixtures/postgres.ts'
import { runCommand } from '../fixtures/processes.ts'

const SECRET_KEY = Buffer.alloc(32, 7).toString('base64')

/** The entries of the table on the page for operators, with … for variable parts. */
const { tables } = await readPage('operations')
const known = tables
  .filter(({ section }) => section === 'startup-errors')
  .flatMap(({ rows }) => rows.flatMap(([line]) => line?.codes ?? []))

/** Whether the table explains a line: whether the parts of an entry follow one another in it. */
function isExplained(line: string): boolean {
  return known.some((entry) => {
    let place = 0
    return entry
      .replace(/^(MIGRATE_)?DATABASE_URL: /, '')
      .split('…')
      .every((part) => {
        const found = line.indexOf(part, place)
        place = found + part.length
        return found >= 0
      })
  })
}

/** Returns the error line of a command whose work fails with this error, without the name of the setting. */
async function lineOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await namingSetting('DATABASE_URL', work)
    return 'no problem'
  } catch (error) {
    if (!(error instanceof SetupError)) return `unexpected: ${error}`
    return error.message.replace(/^DATABASE_URL: /, '')
  }
}

t.test('databases that cannot be used', { skip: noPostgres }, async (t) => {
  const folder = await serverFolder()
  const data = join(folder, 'data')
  await initialise(data)
  const rules = join(data, 'pg_hba.conf')
  await writeFile(
    rules,
    `host all locked 127.0.0.1/32 scram-sha-256
     host all limited,owner,weak,postgres,nobody 127.0.0.1/32 trust\n`,
  )
  const server = await startServer(data, ['fsync = off'])
  const at = (role: string, database = 'postgram', parameters = '') =>
    `${server.urlOf(role, database)}${parameters && `?${parameters}`}`
  const admin = connect(at('postgres', 'postgres'), { max: 1 })
  t.teardown(() => admin.end())
  for (const statement of [
    "create role locked login password 'right'",
    'create role limited login connection limit 0',
    'create role owner login createrole',
    'create role weak login',
    'create database postgram owner owner',
    'create database frozen owner owner',
    'alter database frozen set default_transaction_read_only = on',
  ]) {
    await admin.unsafe(statement)
  }
  const port = await freePort()
  const closing = await startTcpServer((socket) => socket.destroy())
  const web = await startTcpServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))

  t.test('each prints one line with a fix, which the page for operators explains', async (t) => {
    const login = (password: string) => at('locked').replace('locked@', `locked:${password}@`)
    for (const [url, line] of [
      [at('owner').replace(/:\d+\//, `:${port}/`), /^the server cannot be reached: connect ECONNR/],
      [
        'postgres://owner@none.invalid/x?sslmode=disable',
        /cannot be reached: getaddrinfo \w+ none/,
      ],
      ['postgres:///x?host=/nowhere', /cannot be reached: connect ENOENT \/nowhere/],
      [
        `postgres://owner@127.0.0.1:${closing.port}/x`,
        /reached: the connection is accepted and cl/,
      ],
      [`postgres://owner@127.0.0.1:${web.port}/x`, /^the server cannot be reached: /],
      [login('wrong'), /^password authentication failed for user "locked"$/],
      [at('locked'), /^password authentication failed for user "locked"$/],
      [at('nobody'), /^role "nobody" does not exist$/],
      [at('stranger'), /^no pg_hba\.conf entry for host "127\.0\.0\.1", user "stranger"/],
      [at('owner', 'none'), /^database "none" does not exist: create it/],
      [at('limited'), /^too many connections for role "limited"$/],
      [at('weak'), /^the database has never been migrated: run "npm run migrate" as its owner$/],
      [
        at('owner', 'postgram', 'sslmode=require'),
        /^the server offers no TLS: set sslmode=disable/,
      ],
      [
        at('owner', 'postgram', 'channel_binding=require'),
        /^unrecognized .*: remove it from the ad/,
      ],
      [
        at('owner', 'postgram', 'options=-c%20jit=x'),
        /^parameter "jit" requires a Boolean value: c/,
      ],
    ] as const) {
      // The server objects to the first wrong setting.
      const role = url.includes('weak@') ? SERVICE_ROLE : undefined
      const sql = connect(url, { max: 1, role })
      const said = await lineOf(() => sql.unsafe('select 1'))
      await sql.end()
      t.match(said, line)
      t.notMatch(said, /\n|wrong/)
      t.ok(isExplained(said), `the page explains: ${said}`)
    }
  })

  t.test('migrate: names the missing right, and a database that is read-only', async (t) => {
    for (const [url, line] of [
      [at('weak'), /^the roles of Postgram need a superuser: "alter role weak createrole"/],
      [at('owner', 'frozen'), /^the server takes no writes \(cannot execute .* read-only trans/],
    ] as const) {
      const said = await lineOf(() => migrate(url))
      t.match(said, line)
      t.ok(isExplained(said), `the page explains: ${said}`)
    }
    const asked = admin.unsafe('create extension no_such_extension')
    t.match(await lineOf(() => asked), /install Postgres's contrib package/)
  })

  t.test(
    'a pooler is named in each pool mode, if it refuses settings and if it drops them',
    { skip: noPgbouncer },
    async (t) => {
      const ignored = 'ignore_startup_parameters = search_path, plan_cache_mode, jit, options, role'
      for (const mode of ['session', 'transaction', 'statement']) {
        const lines = [`pool_mode = ${mode}`]
        const strict = await startPgbouncer(t, at('owner'), { folder, lines })
        const sql = connect(strict, { max: 1 })
        const said = await lineOf(() => sql.unsafe('select 1'))
        await sql.end()
        t.match(
          said,
          /^a pooler such as PgBouncer is in between \(unsupported startup parameter: \w+\): set the address of Postgres itself, see \/docs\/deployment#connection-poolers$/,
          mode,
        )
        t.ok(isExplained(said))
        const lax = await startPgbouncer(t, at('owner'), { folder, lines: [...lines, ignored] })
        const laxSql = connect(lax, { max: 1 })
        t.match(
          await lineOf(() => checkServer(laxSql)),
          /^a pooler such as PgBouncer is in between \(settings of a connection do not reach Postgres\)/,
          mode,
        )
        await laxSql.end()
        for (const [address, reason] of [
          [strict, 'unsupported startup parameter'],
          [lax, 'settings of a connection'],
        ] as const) {
          const { code, stderr } = await runCommand(['start'], {
            SECRET_KEY,
            DATABASE_URL: address,
          })
          t.equal(code, 1)
          t.match(stderr, `DATABASE_URL: a pooler such as PgBouncer is in between (${reason}`, mode)
        }
      }
      await checkServer(admin)
    },
  )

  t.test('commands exit with one line that names the setting, without a stack', async (t) => {
    const owner = at('owner')
    const locked = at('locked').replace('locked@', 'locked:wrong@')
    const away = `postgres://app:x@127.0.0.1:${port}/postgram`
    const cases: [args: string[], env: Record<string, string>, line: RegExp][] = [
      [['start'], { DATABASE_URL: locked }, /^DATABASE_URL: password authentication failed/],
      [
        ['migrate'],
        { DATABASE_URL: away, MIGRATE_DATABASE_URL: owner },
        /^DATABASE_URL: the server cannot be reached: /,
      ],
      [
        ['seed'],
        { DATABASE_URL: at('owner', 'postgres') },
        /^the database is older than this version: run "node src\/main.ts migrate"/,
      ],
      [
        ['sql', 'select 1'],
        { MIGRATE_DATABASE_URL: at('owner', 'none') },
        /^MIGRATE_DATABASE_URL: database "none" does not exist/,
      ],
      [['types'], { DATABASE_URL: away }, /^DATABASE_URL: the server cannot be reached/],
      [
        ['doctor'],
        { DATABASE_URL: at('owner', 'postgram', 'sslmode=verify-full') },
        /^PROBLEM database: DATABASE_URL: the server offers no TLS/m,
      ],
    ]
    // The login of `away` exists, so the server checks its password.
    await migrate(owner)
    await admin.unsafe("create role app login password 'x' in role postgram_service")
    await Promise.all(
      cases.map(async ([args, env, line]) => {
        const { code, stdout, stderr } = await runCommand(args, { SECRET_KEY, ...env })
        t.equal(code, 1, args.join(' '))
        t.notMatch(stderr, /^ {4}at /m)
        t.notMatch(stdout + stderr, /:wrong@/)
        t.match((stderr + stdout).trim().split('\n').at(-1), line)
      }),
    )
  })
})

t.test('a Postgres older than 15 is reported with its version', async (t) => {
  const facts = { planCacheMode: 'force_generic_plan' }
  t.equal(problemOf({ ...facts, version: '15.0' }), null)
  t.equal(problemOf({ ...facts, version: '18beta1' }), null)
  const line = 'the server is too old: Postgres 15 or newer is needed'
  t.equal(
    problemOf({ ...facts, version: '14.19 (Debian 14.19-1)' }),
    `${line}, this is 14.19 (Debian 14.19-1)`,
  )
  const unknown = {
    code: '42704',
    message: 'unrecognized configuration parameter "plan_cache_mode"',
  }
  t.equal(connectionProblem(unknown), line, 'one before 12 does not know the settings')
})

t.test('certificate files are checked when the configuration is read', async (t) => {
  const folder = await serverFolder()
  const file = join(folder, 'root.pem')
  await writeFile(file, 'no certificate')
  for (const [parameters, line] of [
    [
      `sslrootcert=${folder}/none`,
      `DATABASE_URL: sslrootcert ${folder}/none cannot be read (ENOENT)`,
    ],
    [`sslrootcert=${file}`, `DATABASE_URL: sslrootcert ${file} holds no certificate`],
    [`sslcert=${file}`, `DATABASE_URL: sslcert ${file} holds no certificate`],
    [`sslkey=${file}`, `DATABASE_URL: sslkey ${file} holds no private key`],
  ] as const) {
    const env = { DATABASE_URL: `postgres://me:hunter2@db.example/x?${parameters}` }
    t.throws(() => readConfig(env, { isServing: false }), { message: line })
    t.ok(isExplained(line.replace(/^DATABASE_URL: /, '')))
  }
})
