import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import { readConfig } from '../../src/config/index.ts'
import { serverUser } from '../../src/db/embedded/binaries.ts'
import { createDatabase } from '../fixtures/database.ts'
import { readText } from '../fixtures/deployment.ts'
import { get } from '../fixtures/http.ts'
import { npmStart } from '../fixtures/npm-start.ts'
import { readPage, settingNames as settings, stepsOf } from '../fixtures/pages.ts'
import {
  initialise,
  noPostgres,
  runPostgres,
  serverFolder,
  startServer,
} from '../fixtures/postgres.ts'
import { runCommand, spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'

/** What a process has to stop in. */
const STOP_SECONDS = 15

const allOf = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, found = '']) => found)

/** Of compose.yaml alone. */
const OF_COMPOSE = ['OWNER_PASSWORD', 'SERVICE_PASSWORD', 'POSTGRES_IMAGE', 'NODE_IMAGE', 'PUBLISH']

const example = await readText('.env.example')
const compose = await readText('compose.yaml')

const unitNames = (await readdir(new URL('../../src/docs/', import.meta.url))).filter((name) =>
  name.endsWith('.service'),
)
const units = await Promise.all(
  unitNames.map(async (name) => ({ name, text: await readText(`src/docs/${name}`) })),
)

/** Each line of .env.example that sets something, or shows how to, with the line before it. */
const shown = [...example.matchAll(/^(.*)\n(#?)([A-Z_]+)=(.*)$/gm)].map(
  ([, before = '', mark = '', name = '', value = '']) => ({ before, mark, name, value }),
)

t.test(
  '.env.example has every setting, with a sentence about it and a value that will do',
  async (t) => {
    const names = shown.map(({ name }) => name)
    t.same(names.sort(), [...settings, ...OF_COMPOSE].sort())
    for (const { before, mark, name, value } of shown) {
      t.match(before, /^# .*\.|^# .*:.*/, name)
      t.equal(mark === '', value === '', `${name} is there to be filled in, or an example`)
      t.doesNotThrow(() => readConfig({ [name]: value }, { isServing: false }), name)
      // Quotation marks and what would be a comment are not read alike by all who read this file.
      t.notMatch(value, /["'`$\\]| #/, name)
    }
    const all = Object.fromEntries(shown.map(({ name, value }) => [name, value]))
    const key = { SECRET_KEY: randomBytes(32).toString('base64'), NODE_ENV: '' }
    const providers = { SMS_PROVIDER: 'smpp', EMAIL_PROVIDER: 'mailgun' }
    t.doesNotThrow(() => readConfig({ ...all, ...key, ...providers }, { isServing: true }))
    const uncommented = example.replaceAll(/^#(?=[A-Z_]+=)/gm, '')
    t.same(parseEnv(uncommented), all, 'Node reads it as it stands')
  },
)

/** What compose.yaml says of each service, with what it merges. */
const shared = /^x-process:[\s\S]*?\n\n/m.exec(compose)?.[0] ?? ''
const services = Object.fromEntries(
  [
    ...compose.slice(compose.indexOf('\nservices:')).matchAll(/^ {2}(\w+):\n((?: {4}.*\n|\n)+)/gm),
  ].map(([, name = '', text = '']) => [
    name,
    text.replace('    <<: *process\n', shared.replaceAll(/^/gm, '  ')),
  ]),
)

t.test('compose sets what the service knows, from what .env.example names', async (t) => {
  t.same(Object.keys(services), ['db', 'migrate', 'postgram', 'tools'])
  const names = new Set(shown.map(({ name }) => name))
  const used = [...new Set(allOf(compose, /\$\{(\w+)/g))]
  t.same(used.sort(), [...OF_COMPOSE, 'SECRET_KEY'].sort())
  for (const name of used) t.ok(names.has(name), name)
  const required = new Set(allOf(compose, /\$\{(\w+):\?/g))
  t.same([...required].sort(), ['OWNER_PASSWORD', 'SECRET_KEY', 'SERVICE_PASSWORD'])
  const set = allOf(compose, /^ {2,6}([A-Z_]+): (?!""|"\$\{NODE_IMAGE)/gm)
  t.same(
    [...new Set(set)].filter((name) => !settings.includes(name)),
    ['POSTGRES_PASSWORD', 'POSTGRES_INITDB_ARGS'],
  )
  const grace = allOf(compose, /stop_grace_period: (\d+)s/g).map(Number)
  t.ok(grace.length === 1 && grace.every((seconds) => seconds > STOP_SECONDS))
})

t.test('compose publishes the API on this machine only, and names no container', async (t) => {
  const published = allOf(compose, /^ {4}ports:\n(?: {6}#.*\n)*((?: {6}- .*\n)+)/gm)
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is compose's.
  t.same(published, ['      - "${PUBLISH:-127.0.0.1:3000:3000}"\n'])
  t.match(shown.find(({ name }) => name === 'PUBLISH')?.value, /^127\.0\.0\.1:/)
  t.notMatch(compose, /container_name|^networks:/m)
})

t.test('compose closes every container in, within limits', async (t) => {
  for (const [name, text] of Object.entries(services)) {
    for (const line of [
      /^ +read_only: true$/m,
      /^ +cap_drop: \[ALL\]$/m,
      /^ +security_opt: \["no-new-privileges:true"\]$/m,
      /^ +mem_limit: \dg$/m,
      /^ +pids_limit: \d+$/m,
    ]) {
      t.match(text, line, name)
    }
    t.notMatch(text, /cap_add|privileged/, name)
  }
  t.match(services.db, /^ +user: postgres$/m)
})

t.test('compose gives a password to those only who need it', async (t) => {
  const having = (pattern: RegExp) =>
    Object.keys(services).filter((name) => pattern.test(services[name] ?? ''))
  t.same(having(/owner-url|\$\{OWNER_PASSWORD/), ['db', 'migrate', 'tools'])
  t.same(having(/service-url|\$\{SERVICE_PASSWORD/), ['migrate', 'postgram', 'tools'])
  t.same(having(/settings|SECRET_KEY/), ['postgram', 'tools'])
  t.same(having(/env_file/), ['postgram', 'tools'], 'of these .env is the environment')
  const [common = ''] = /^x-settings:[\s\S]*?\n\n/m.exec(compose) ?? []
  t.match(common, /^ {2}OWNER_PASSWORD: ""$/m, 'which then lacks the owner')
})

t.test('images can be pinned by digest, and are those of the tests otherwise', async (t) => {
  const dockerfile = await readText('Dockerfile')
  const [node] = allOf(dockerfile, /^ARG NODE_IMAGE=(.*)$/gm)
  t.same(allOf(compose, /\$\{NODE_IMAGE:-([^}]*)\}/g), [node])
  const [postgres] = allOf(compose, /\$\{POSTGRES_IMAGE:-([^}]*)\}/g)
  t.same(
    shown.filter(({ name }) => name.endsWith('_IMAGE')).map(({ value }) => value),
    [postgres, node],
  )
})

t.test("compose's database begins, migrates and serves", { skip: noPostgres }, async (t) => {
  const data = join(await serverFolder(), 'data')
  await initialise(data)
  const server = await startServer(data, ['fsync = off'])
  const file = join(data, 'compose.sql')
  // The user who runs the server may be unable to read the checkout.
  await writeFile(file, await readText('src/docs/compose.sql'))
  await chmod(file, 0o644)
  const admin = server.urlOf('postgres', 'postgres')
  await runPostgres('psql', admin, '-v', 'ON_ERROR_STOP=1', '-v', 'password=x', `--file=${file}`)
  const { host } = new URL(admin)
  const [service = '', owner = ''] = allOf(compose, /"(postgres:\/\/.*)"$/gm).map((address) =>
    address.replace(/\$\{[^}]*\}/, 'secret').replace('db:5432', host),
  )
  const env = { DATABASE_URL: service, MIGRATE_DATABASE_URL: owner }
  t.same(await runCommand(['migrate'], env), { code: 0, stdout: '', stderr: '' })
  const { base, end } = await spawnService(admin, 'all', {
    DATABASE_URL: service,
    NODE_ENV: 'production',
  })
  t.equal((await get(`${base}/readyz`, null)).status, 200)
  const { stdout } = await runCommand(['doctor'], {
    ...env,
    NODE_ENV: 'production',
    SECRET_KEY: Buffer.alloc(32).toString('base64'),
  })
  t.match(stdout, /^Postgram [\d.]+\n(ok {6}[\w -]+(: [\d.]+)?\n)+$/)
  t.equal(await end('SIGTERM'), 0)
})

t.test(
  'units set what the service knows, start it as npm does, and leave it time to stop',
  async (t) => {
    t.same(unitNames, ['postgram-role@.service', 'postgram.service'])
    for (const { name, text } of units) {
      const set = allOf(text, /^Environment=(.*)$/gm).flatMap((line) => allOf(line, /(\w+)=/g))
      const ofNode = Object.keys(npmStart.env)
      t.same(
        ofNode.filter((variable) => !set.includes(variable)),
        [],
      )
      t.same(
        set.filter((setting) => ![...ofNode, ...settings].includes(setting)),
        [],
      )
      const ofProcess = name.includes('@') ? ['-/etc/postgram-%j-%i.env'] : []
      t.same(allOf(text, /^EnvironmentFile=(.*)$/gm), ['/etc/postgram.env', ...ofProcess])
      const command = `node ${npmStart.command}${name.includes('@') ? ' --only %j' : ''}`
      t.same(allOf(text, /^ExecStart=(.*)$/gm), [command])
      t.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1]) > STOP_SECONDS)
      t.match(text, /^MemoryMax=\dG\nTasksMax=\d00$/m)
      // Node writes the code that it runs.
      t.notMatch(text, /^MemoryDenyWriteExecute=/m)
    }
  },
)

t.test('units are served as text, to be copied', async (t) => {
  const { url } = await createDatabase()
  const { base } = await startTestService(url, { roles: ['api'] })
  for (const { name, text } of units) {
    const answer = await get(`${base}/docs/${name}`, null)
    t.same([answer.status, answer.text], [200, text])
    t.match(answer.headers.get('content-type'), /^text\/plain/)
  }
})

const noSystemd =
  !existsSync('/usr/bin/systemd-analyze') &&
  'there is no systemd-analyze on this machine (Debian package systemd)'

t.test('systemd-analyze finds no fault with the units', { skip: noSystemd }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postgram-units-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const analyze = (...args: string[]) =>
    new Promise<string>((resolve) => {
      execFile('/usr/bin/systemd-analyze', args, (error, stdout, stderr) =>
        resolve(`${error?.code ?? 0}${stdout}${stderr}`),
      )
    })
  for (const { name, text } of units) {
    const file = join(folder, name.replace('role@', 'worker@1'))
    // It looks for the program, which this machine may have elsewhere.
    await writeFile(file, text.replace('ExecStart=node', `ExecStart=${process.execPath}`))
    t.equal(await analyze('verify', '--man=no', file), '0', name)
    const rating = await analyze('security', '--offline=true', '--threshold=15', file)
    t.match(rating, /^0/, `${name} is exposed 1.5 at most`)
  }
})

t.test(
  'systemd runs postgram-api@2 as role api, with ports of its own',
  { skip: noSystemd },
  async (t) => {
    const folder = await serverFolder()
    const user = await serverUser('')
    const { text = '' } = units.find(({ name }) => name.includes('@')) ?? {}
    await writeFile(
      join(folder, 'postgram-api@.service'),
      text.replace('ExecStart=node', `ExecStart=${process.execPath}`),
    )
    // It loads the unit as at a start of the machine, prints it, and starts nothing.
    const args = ['--test', '--user', '--unit=postgram-api@2.service']
    const env = {
      ...{ HOME: folder, XDG_RUNTIME_DIR: folder },
      SYSTEMD_UNIT_PATH: `${folder}:/usr/lib/systemd/user`,
    }
    const loaded = await new Promise<string>((resolve) => {
      execFile('/lib/systemd/systemd', args, { ...user, cwd: '/', env }, (_error, stdout) =>
        resolve(stdout),
      )
    })
    t.match(loaded, 'Description: Postgram, role api, process 2\n')
    t.match(loaded, 'EnvironmentFile: -/etc/postgram-api-2.env\n')
    t.match(loaded, /Command Line: .* src\/main\.ts start --only api\n/)
  },
)

const page = await readPage('deployment')
const steps = stepsOf(page)

t.test('every block of the page on deployment says whether a test runs it', async (t) => {
  t.ok(steps.length > 20)
  for (const { mark, value, text } of steps) {
    t.match(mark, /^(run|file|not-run)$/, text)
    if (mark === 'run') t.equal(value, 'root', text)
    if (mark === 'file') t.match(value, /^\/etc\//, text)
    if (mark === 'not-run') t.match(value, /\w/, text)
    // bash goes on after a chain that failed, unless it is the last command.
    if (mark === 'run') t.notMatch(text, /^.* && .*\n./m)
  }
})

t.test('the page on deployment installs the Node of the tests', async (t) => {
  const { devDependencies } = JSON.parse(await readText('package.json'))
  const versions = new Set(allOf(page.markdown, /\b(?:dist\/|node-)v(\d+\.\d+\.\d+)/g))
  t.same([...versions], [devDependencies.node])
})

t.test('operators read one example of PUBLIC_URL, which is no return path', async (t) => {
  const urls = []
  for (const file of ['.env.example', 'src/docs/deployment.md', 'src/docs/email-providers.md']) {
    urls.push(...allOf(await readText(file), /\bPUBLIC_URL=(.*)/g))
  }
  t.same(urls, Array(3).fill('https://api.example.net'))
  t.match(page.markdown, 'server_name api.example.net;')
  const exampleOf = (wanted: string) => shown.find(({ name }) => name === wanted)?.value
  t.match(exampleOf('SYSTEM_FROM'), /@example\.net>$/)
  t.equal(exampleOf('MAIL_FROM_LABEL'), 'mail')
})
