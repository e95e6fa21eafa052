import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdtemp, readdir, readFile, readlink, realpath, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { connect } from '../src/db/client.ts'
import { VERSION } from '../src/telemetry/version.ts'
import { createDatabase } from './fixtures/database.ts'
import { dataParent } from './fixtures/folders.ts'
import { get, post } from './fixtures/http.ts'
import { freePort } from './fixtures/network.ts'
import { afterDatabase, nodeEnv } from './fixtures/processes.ts'
import { until } from './fixtures/time.ts'

const checkout = new URL('../', import.meta.url)
const SECRET = Buffer.alloc(32, 7).toString('base64')

const folder = await mkdtemp(join(dataParent, 'postgram-main-'))
// Under root, user postgres must be able to enter it.
await chmod(folder, 0o711)
const data = join(folder, 'data')
t.teardown(async () => {
  // For a test under root, whose Postgres keeps its data elsewhere.
  const server = await realpath(join(data, 'postgres')).catch(() => data)
  if (!server.startsWith(folder)) await rm(dirname(server), { recursive: true })
  await rm(folder, { recursive: true })
})

type Env = Record<string, string>
type Outcome = { code: number | null; stdout: string; stderr: string }

const environment = (env: Env) => ({ ...nodeEnv, ...env })
const embedded: Env = { POSTGRAM_DATA: data, PORT: '0', LOG_LEVEL: 'trace' }

/** Runs a command as a person does, until it ends. */
function run(args: string[], env: Env = embedded): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { cwd: checkout, env: environment(env), timeout: 300_000 }
    execFile(process.execPath, ['src/main.ts', ...args], options, (error, stdout, stderr) =>
      resolve({
        code: error ? (typeof error.code === 'number' ? error.code : null) : 0,
        stdout,
        stderr: afterDatabase(stderr),
      }),
    )
  })
}

type StartOptions = { isByNpm?: boolean }

/** Runs `start` in a new process, or by npm in a process group, and waits until it has started. */
async function start(
  t: Test,
  args: string[] = [],
  env: Env = embedded,
  { isByNpm = false }: StartOptions = {},
) {
  const [program, first] = isByNpm
    ? ['npm', ['start', '--']]
    : [process.execPath, ['src/main.ts', 'start']]
  const child = spawn(program, [...first, ...args], {
    cwd: checkout,
    // Settings of this machine's npm may make it print warnings.
    env: environment({ ...env, npm_config_loglevel: 'silent' }),
    detached: isByNpm,
  })
  // Not `exit`, after which there may still be output to come.
  const exit = once(child, 'close') as Promise<[number | null]>
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      output[name] += chunk
    })
  }
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) {
      process.kill(isByNpm ? -Number(child.pid) : Number(child.pid), signal)
    }
    const [code] = await exit
    return code
  }
  t.teardown(() => end('SIGTERM'))
  const started = until('the start', async () => output.stdout.includes('"msg":"started"'))
  await Promise.race([
    started,
    exit.then(([code]) => Promise.reject(new Error(`ended with ${code}: ${output.stderr}`))),
  ])
  return { output, end, pid: Number(child.pid), exit }
}

/** Returns what `start` prints for people, without its log. */
const printed = (stdout: string) =>
  stdout
    .split('\n')
    .filter((line) => !line.startsWith('{'))
    .join('\n')
const logLines = (stdout: string) => stdout.split('\n').filter((line) => line.startsWith('{'))

const field = (text: string, name: string) =>
  new RegExp(`^ *${name} +(\\S+)$`, 'm').exec(text)?.[1] ?? ''

/** Returns the processes of Postgres for the data folder, which is their working directory. */
async function postgresProcesses(): Promise<string[]> {
  const place = await realpath(join(data, 'postgres'))
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')))
  return pids.filter((_, index) => folders[index] === place)
}

/** Returns the curl commands in a text, with their continued lines. */
const curlsIn = (text: string) => text.match(/^curl (?:.*\\\n)*.*$/gm) ?? []

const hasCurl = spawnSync('curl', ['--version']).status === 0

const sh = (command: string) =>
  new Promise<string>((resolve, reject) => {
    execFile('sh', ['-c', command], (error, stdout) => (error ? reject(error) : resolve(stdout)))
  })

/** The output of the first start, which the tests below share. */
const demo = { base: '', live: '', test: '', psql: '', message: '' }

t.test('embedded database: only start and seed create it', async (t) => {
  for (const [command = '', ...args] of [['doctor'], ['migrate'], ['sql', 'select 1']]) {
    t.same(await run([command, ...args]), {
      code: 1,
      stdout: '',
      stderr: `There is no database: set DATABASE_URL, or run node src/main.ts start, which creates one in ${data}.\n`,
    })
    await t.rejects(access(data), `"${command}" makes nothing`)
  }
  const { code, stdout } = await run(['seed'])
  t.equal(code, 0)
  t.match(field(stdout, 'live key'), /^sk_live_/)
  // The next start is then the first one that shows keys.
  await rm(join(data, 'demo.json'))
})

t.test('first start', async (t) => {
  const { output, end } = await start(t, [], embedded, { isByNpm: true })
  const text = printed(output.stdout)
  demo.base = field(text, 'API').replace(/\/v1$/, '')
  demo.live = field(text, 'live key')
  demo.test = field(text, 'test key')
  demo.psql = field(text, 'psql')

  t.test('prints the address, both keys and the address for psql', async (t) => {
    t.match(text, /^Postgram runs \(api, worker, clock\)\.$/m)
    t.match(demo.base, /^http:\/\/127\.0\.0\.1:\d+$/)
    t.match(demo.live, /^sk_live_[0-9a-f]{64}$/)
    t.match(demo.test, /^sk_test_[0-9a-f]{64}$/)
    t.match(demo.psql, /^postgres:\/\/.+@127\.0\.0\.1:\d+\/postgram$/)
    t.equal(output.stderr, '')
  })

  t.test('responds at the printed address and is ready', async (t) => {
    t.equal((await get(`${demo.base}/healthz`, null)).status, 200)
    t.equal((await get(`${demo.base}/readyz`, null)).status, 200)
  })

  t.test(
    'prints a curl that sends a message, and one that retrieves it',
    { skip: !hasCurl && 'there is no curl on this machine' },
    async (t) => {
      const [first = '', second = ''] = curlsIn(text)
      const answer = JSON.parse(await sh(first))
      t.match(answer, { id: /^em_/, status: 'queued', mode: 'live' })
      const message = await until('delivery', async () => {
        const shown = JSON.parse(await sh(second.replace('<id>', answer.id)))
        return shown.status === 'delivered' && shown
      })
      t.match(message, { id: answer.id, subject: 'Hello', to: 'delivered@sandbox.postgram.test' })
    },
  )

  t.test('prints keys that send', async (t) => {
    const email = {
      from: 'hello@sandbox.postgram.test',
      to: 'delivered@sandbox.postgram.test',
      subject: 'Kept',
      text: 'Hello',
    }
    const live = await post(`${demo.base}/v1/emails`, demo.live, email)
    t.match(live, { status: 200, json: { mode: 'live' } })
    t.match(await post(`${demo.base}/v1/emails`, demo.test, email), {
      status: 200,
      json: { mode: 'test' },
    })
    demo.message = live.json.id
  })

  t.test('prints a psql address that works', async (t) => {
    const sql = connect(demo.psql, { max: 1 })
    t.match([...(await sql`select name from ops.organisations`)], [{ name: 'Demo' }])
    await sql.end()
  })

  t.test('sql: prints a table', async (t) => {
    const query = "select name, null as nothing, state from ops.organisations where name = 'Demo'"
    t.same(await run(['sql', query]), {
      code: 0,
      stdout: 'name | nothing | state\n-----+---------+-------\nDemo |         | active\n(1 row)\n',
      stderr: '',
    })
  })

  t.test('doctor: reports no problem', async (t) => {
    const { code, stdout, stderr } = await run(['doctor'])
    t.match(stdout, /^Postgram [\d.]+\n(ok {6}[\w -]+(: [\d.]+)?\n)+$/)
    for (const what of ['database', 'schema', 'roles', 'worker', 'clock', 'partitions', 'disk']) {
      t.match(stdout, new RegExp(`^ok {6}${what}$`, 'm'))
    }
    t.same({ code, stderr }, { code: 0, stderr: '' })
  })

  t.test('seed: prints the same keys', async (t) => {
    const { code, stdout } = await run(['seed'])
    t.equal(code, 0)
    t.equal(field(stdout, 'live key'), demo.live)
    t.equal(field(stdout, 'test key'), demo.test)
  })

  t.test('goes on during a migrate', async (t) => {
    t.same(await run(['migrate']), { code: 0, stdout: '', stderr: '' })
    t.equal((await get(`${demo.base}/v1/emails/${demo.message}`, demo.live)).status, 200)
  })

  t.test('a second API on the same port exits with one line', async (t) => {
    const port = new URL(demo.base).port
    const { code, stderr } = await run(['start', '--only', 'api'], { ...embedded, PORT: port })
    t.equal(code, 1)
    t.equal(stderr, `PORT: 127.0.0.1:${port} is in use (EADDRINUSE)\n`)
    t.equal((await get(`${demo.base}/readyz`, null)).status, 200)
  })

  t.test('SIGTERM to npm and the service: exits 0, and the database stops', async (t) => {
    const limit = AbortSignal.timeout(60_000)
    t.equal(await Promise.race([end('SIGTERM'), once(limit, 'abort')]), 0)
    await t.rejects(get(`${demo.base}/healthz`, null))
    const sql = connect(demo.psql, { max: 1 })
    await t.rejects(sql`select 1`, { code: 'ECONNREFUSED' })
    await sql.end()
    t.equal(output.stderr, '')
  })

  t.test('logs JSON without secrets', async (t) => {
    const lines = logLines(output.stdout)
    const messages = lines.map((line) => JSON.parse(line).msg)
    t.ok(messages.includes('started') && messages.includes('stopping'))
    const password = new URL(demo.psql).password
    for (const secret of [demo.live, demo.test, password]) {
      t.ok(secret.length > 10)
      t.notOk(lines.some((line) => line.includes(secret.slice(10, 42))))
    }
  })
})

t.test('doctor: names each missing process and the fix while nothing runs', async (t) => {
  const { code, stdout } = await run(['doctor'])
  t.equal(code, 1)
  t.match(
    stdout,
    /^PROBLEM worker: no worker is running; start one with the command "start" or "start --only worker"$/m,
  )
  t.match(stdout, /^PROBLEM clock: .*"start --only clock"$/m)
  t.match(stdout, /^ok {6}schema$/m)
})

t.test(
  'second start: keeps data and keys, and prints their places without the secrets',
  async (t) => {
    const { output, end } = await start(t, [], embedded, { isByNpm: true })
    const text = printed(output.stdout)
    const password = new URL(demo.psql).password
    for (const secret of [demo.live, demo.test, password]) t.notMatch(output.stdout, secret)
    const places = [
      `  keys      in ${join(data, 'demo.json')}, or by: npm run seed`,
      `  psql      ${demo.psql.replace(`:${password}`, '')}, password in ${join(data, 'postgres-password')}`,
    ]
    for (const line of places) t.ok(text.split('\n').includes(line), line)
    t.match(JSON.parse(await readFile(join(data, 'demo.json'), 'utf8')), { liveKey: demo.live })
    t.equal(await readFile(join(data, 'postgres-password'), 'utf8'), password)
    const base = field(text, 'API').replace(/\/v1$/, '')
    const { status, json } = await get(`${base}/v1/emails/${demo.message}`, demo.live)
    t.equal(status, 200)
    t.equal(json.subject, 'Kept')
    t.equal(await end('SIGINT'), 0, 'and Ctrl-C ends it as well')
    t.same(await postgresProcesses(), [])
  },
)

t.test(
  'embedded database: stops when npm, node or both are killed, and starts again',
  async (t) => {
    for (const victims of [['npm'], ['node'], ['npm', 'node']]) {
      const { pid, exit } = await start(t, ['--only', 'clock'], embedded, { isByNpm: true })
      t.ok((await postgresProcesses()).length > 0)
      const [user = ''] = await readdir(join(data, 'postgres-users'))
      const node = Number.parseInt(await readFile(join(data, 'postgres-users', user), 'utf8'), 10)
      t.not(node, pid)
      for (const victim of victims) process.kill(victim === 'npm' ? pid : node, 'SIGKILL')
      const left = `no process of Postgres after SIGKILL of ${victims.join(' and ')}`
      await until(left, async () => (await postgresProcesses()).length === 0)
      await exit
    }
    t.match(await run(['sql', 'select name from ops.organisations']), { code: 0, stdout: /Demo/ })
  },
)

t.test('with DATABASE_URL', async (t) => {
  const { url, sql } = await createDatabase()
  const own: Env = { DATABASE_URL: url, SECRET_KEY: SECRET, PORT: '0' }
  const name = sql(new URL(url).pathname.slice(1))

  t.test('start: creates no demo and prints no secret', async (t) => {
    // The test server may have another default.
    await sql`alter database ${name} set synchronous_commit = on`
    const { output, end } = await start(t, [], own)
    const text = printed(output.stdout)
    t.match(
      text,
      /^Postgram runs \(api, worker, clock\)\.\n {2}API {7}http:\/\/127\.0\.0\.1:\d+\/v1\n {2}database {2}\S+ on \S+ as \w+\n$/,
    )
    t.notMatch(output.stdout, SECRET)
    t.same(await sql`select from ops.organisations`, [])
    t.match(output.stdout, `"version":"${VERSION}"`, 'the line "started" names the version')
    t.match((await run(['doctor'], own)).stdout, /^Postgram [\d.]+\n(ok {6}[\w -]+(: [\d.]+)?\n)+$/)

    await t.test('doctor: exits 0 with warnings, and 1 with --strict', async (t) => {
      await sql`grant temporary on database ${name} to public`
      const { code, stdout } = await run(['doctor'], own)
      t.equal(code, 0)
      t.match(stdout, /^WARNING temporary objects: every login may create temporary objects/m)
      t.notMatch(stdout, /^PROBLEM/m)
      t.same(await run(['doctor', '--strict'], own), { code: 1, stdout, stderr: '' })
      await sql`revoke temporary on database ${name} from public`
      t.equal((await run(['doctor', '--strict'], own)).code, 0)
    })
    t.equal(await end('SIGTERM'), 0)
  })

  t.test('seed: prints a curl and new keys of the demo organisation each time', async (t) => {
    const env: Env = { DATABASE_URL: url, PUBLIC_URL: 'https://mail.example/' }
    const first = await run(['seed'], env)
    const second = await run(['seed'], env)
    t.match(first, {
      code: 0,
      stderr: '',
      stdout: /^curl -s https:\/\/mail\.example\/v1\/emails \\$/m,
    })
    t.match(field(first.stdout, 'live key'), /^sk_live_/)
    t.not(field(first.stdout, 'live key'), field(second.stdout, 'live key'))
    t.match([...(await sql`select name from ops.organisations`)], [{ name: 'Demo' }])
    t.equal((await sql`select from ops.api_keys`).length, 4)
  })

  t.test('start --only: runs one role, and three processes do the work of one', async (t) => {
    const roles = ['api', 'worker', 'clock']
    const processes = await Promise.all(roles.map((role) => start(t, ['--only', role], own)))
    const texts = processes.map(({ output }) => printed(output.stdout))
    for (const [place, role] of roles.entries()) {
      t.match(texts[place], new RegExp(`^Postgram runs \\(${role}\\)\\.$`, 'm'))
      t.equal(/ API /.test(String(texts[place])), role === 'api')
    }
    const listed = await sql`select roles from ops.processes where is_alive order by roles desc`
    t.same(
      listed.map(({ roles }) => roles),
      [['worker'], ['webhooks'], ['upkeep'], ['sms'], ['clock'], ['api']],
    )
    const [holder] = await sql`select organisation as id from ops.domains`
    const [made] = await sql`select ops.create_api_key(${holder?.id}) as key`
    const email = {
      from: 'hello@sandbox.postgram.test',
      to: 'delivered@sandbox.postgram.test',
      subject: 'Three',
      text: 'Hello',
    }
    const base = field(String(texts[0]), 'API')
    const sent = await post(`${base}/emails`, made?.key, email)
    await until('delivery', async () => {
      const { json } = await get(`${base}/emails/${sent.json.id}`, made?.key)
      return json.status === 'delivered'
    })
    t.same(await Promise.all(processes.map(({ end }) => end('SIGTERM'))), [0, 0, 0])
    t.same(await sql`select from ops.processes`, [], 'all took themselves off the list')
  })

  t.test('commands print on stderr which database they use, without the password', async (t) => {
    const { port, username, pathname } = new URL(url)
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['src/main.ts', 'sql', 'select 1 as n'],
      {
        cwd: checkout,
        env: environment({ DATABASE_URL: url }),
        encoding: 'utf8',
      },
    )
    t.equal(stdout, 'n\n-\n1\n(1 row)\n')
    t.equal(stderr, `database: ${pathname.slice(1)} on 127.0.0.1:${port} as ${username}\n`)
  })

  const isCurrent = async () => {
    const rows = await sql`select from app.code where sha256 <> 'older'`
    return rows.length === 1
  }

  t.test('doctor: reports an older database; migrate brings it to this version', async (t) => {
    await sql`drop schema ops cascade`
    await sql`update app.code set sha256 = 'older'`
    const { code, stdout } = await run(['doctor'], own)
    t.equal(code, 1)
    t.match(stdout, /^PROBLEM schema: run "node src\/main\.ts migrate"$/m)
    t.same(await run(['migrate'], { DATABASE_URL: url }), { code: 0, stdout: '', stderr: '' })
    t.ok(await isCurrent())
    t.ok((await sql`select from ops.help`).length > 20)
  })

  t.test('start: brings an older database to this version', async (t) => {
    await sql`update app.code set sha256 = 'older'`
    const { end } = await start(t, ['--only', 'api'], own)
    t.ok(await isCurrent())
    t.equal(await end('SIGTERM'), 0)
  })

  t.test('sql: prints the error and the hint of the server', async (t) => {
    const outcome = await run(['sql', '--write', "select ops.pause('x', 'a look')"], own)
    t.same(outcome, {
      code: 1,
      stdout: '',
      stderr: "there is no organisation 'x'\nhint: select id, name from ops.organisations\n",
    })
    t.same(await run(['sql', 'selec 1'], own), {
      code: 1,
      stdout: '',
      stderr: 'syntax error at or near "selec"\n',
    })
  })

  t.test('sql: prints the command of a statement without rows', async (t) => {
    const statement = 'create table scratch ()'
    t.match(await run(['sql', '--write', statement], own), { code: 0, stdout: 'CREATE TABLE\n' })
  })

  t.test('sql without --write: changes nothing and names --write', async (t) => {
    t.same(await run(['sql', 'drop table scratch'], own), {
      code: 1,
      stdout: '',
      stderr:
        'cannot execute DROP TABLE in a read-only transaction\nhint: to write, run node src/main.ts sql --write "…"\n',
    })
    t.same(await sql`select to_regclass('public.scratch') is not null as is_there`, [
      { isThere: true },
    ])
  })
})

const unused: Env = { PORT: '0', POSTGRAM_DATA: join(folder, 'unused') }

const usage = /^usage: node src\/main\.ts <command> \[<arguments>\]\n(.*\n)* {2}doctor /

t.test('help, and no command: print the usage', async (t) => {
  t.match(await run(['help'], {}), { code: 0, stdout: usage, stderr: '' })
  t.match(await run([], {}), { code: 0, stdout: usage, stderr: '' })
})

t.test('unknown command or arguments: print the usage and exit 1', async (t) => {
  const wrong = [
    ['strat'],
    ['toString'],
    ['start', '--only', 'postman'],
    ['start', 'api'],
    ['doctor', '--all'],
    ['doctor', '--strict', 'now'],
  ]
  const outcomes = await Promise.all(wrong.map((args) => run(args, unused)))
  for (const [place, outcome] of outcomes.entries()) {
    t.match(outcome, { code: 1, stdout: '', stderr: usage }, String(wrong[place]))
  }
})

t.test('sql without a query or with several: prints its usage', async (t) => {
  const wrong = [['sql'], ['sql', 'select', '1'], ['sql', '--write']]
  const outcomes = await Promise.all(wrong.map((args) => run(args, unused)))
  for (const outcome of outcomes) {
    t.same(outcome, {
      code: 1,
      stdout: '',
      stderr: 'usage: node src/main.ts sql [--write] "select …"\n',
    })
  }
})

t.test('start: exits with a line for each invalid setting', async (t) => {
  t.same(await run(['start'], { ...unused, PORT: 'http' }), {
    code: 1,
    stdout: '',
    stderr: 'PORT: must be a whole number\n',
  })
  const { code, stdout, stderr } = await run(['start'], {
    ...unused,
    PORT: '70000',
    DATABASE_URL: 'postgres://owner:hunter2@db:99999/postgram',
  })
  t.same({ code, stdout }, { code: 1, stdout: '' })
  t.match(stderr, /^DATABASE_URL: .*\nPORT: must be at most 65535\nSECRET_KEY: is required .*\n$/)
  t.notMatch(stderr, 'hunter2')
})

t.test(
  'start: reports a database that does not respond in one line, without its password',
  async (t) => {
    const port = await freePort()
    const env: Env = {
      DATABASE_URL: `postgres://owner:hunter2@127.0.0.1:${port}/postgram`,
      SECRET_KEY: SECRET,
      PORT: '0',
    }
    t.same(await run(['start'], env), {
      code: 1,
      stdout: '',
      stderr: `DATABASE_URL: the server cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}\n`,
    })
    t.same(await run(['doctor'], env), {
      code: 1,
      stdout: `Postgram ${VERSION}\nPROBLEM database: DATABASE_URL: the server cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}\n`,
      stderr: '',
    })
  },
)
