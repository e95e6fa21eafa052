import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import { readConfig } from '../src/config.ts'
import { createDatabase } from './fixtures/database.ts'
import { get } from './fixtures/http.ts'
import { readText } from './fixtures/image.ts'
import { startTestService } from './fixtures/service.ts'

/** Design section 2: what a process has to stop in. */
const STOP_SECONDS = 15

const allOf = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, found = '']) => found)

const settings = allOf(await readText('src/config.ts'), /^ {2}([A-Z][A-Z_]+): v\./gm)
const example = await readText('.env.example')
const compose = await readText('compose.yaml')

const unitNames = (await readdir(new URL('../src/docs/', import.meta.url))).filter((name) =>
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
    t.same(names.sort(), [...settings, 'POSTGRES_PASSWORD'].sort())
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

t.test('compose sets what the service knows, from what .env.example names', async (t) => {
  const names = new Set(shown.map(({ name }) => name))
  const used = allOf(compose, /\$\{(\w+)/g)
  t.same([...new Set(used)].sort(), ['POSTGRES_PASSWORD', 'SECRET_KEY'])
  for (const name of used) t.ok(names.has(name), name)
  t.equal(used.length, allOf(compose, /\$\{(\w+):\?/g).length, 'none may be missing')
  const [service = ''] = /^x-postgram:[\s\S]*?\n\n/m.exec(compose) ?? []
  const set = allOf(service, /^ {4}([A-Z_]+): /gm)
  t.ok(set.includes('DATABASE_URL') && set.includes('SECRET_KEY'))
  t.same(
    set.filter((name) => !settings.includes(name)),
    [],
  )
  t.match(service, /^ {2}build: \.$/m, 'whichever service comes first is built')
  t.same(allOf(compose, /^ *image: (.*)$/gm), ['postgres:18-bookworm'], 'and has its own image')
  const grace = allOf(compose, /stop_grace_period: (\d+)s/g).map(Number)
  t.ok(grace.length === 1 && grace.every((seconds) => seconds > STOP_SECONDS))
})

t.test(
  'units set what the service knows, start it as npm does, and leave it time to stop',
  async (t) => {
    t.same(unitNames, ['postgram.service', 'postgram@.service'])
    const { start } = JSON.parse(await readText('package.json')).scripts
    for (const { name, text } of units) {
      const set = allOf(text, /^Environment=(.*)$/gm).flatMap((line) => allOf(line, /(\w+)=/g))
      t.ok(set.length > 0)
      t.same(
        set.filter((setting) => !settings.includes(setting)),
        [],
      )
      const ofRole = name.includes('@') ? ['-/etc/postgram-%i.env'] : []
      t.same(allOf(text, /^EnvironmentFile=(.*)$/gm), ['/etc/postgram.env', ...ofRole])
      const command = start.replace(/^exec /, '') + (name.includes('@') ? ' --only %i' : '')
      t.same(allOf(text, /^ExecStart=(.*)$/gm), [command])
      t.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1]) > STOP_SECONDS)
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

t.test('systemd has nothing to say against the units', { skip: noSystemd }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postgram-units-'))
  t.teardown(() => rm(folder, { recursive: true }))
  for (const { name, text } of units) {
    const file = join(folder, name.replace('@', '@worker'))
    // It looks for the program, which this machine may have elsewhere.
    await writeFile(file, text.replace('ExecStart=node', `ExecStart=${process.execPath}`))
    const said = await new Promise<string>((resolve) => {
      execFile('/usr/bin/systemd-analyze', ['verify', '--man=no', file], (error, stdout, stderr) =>
        resolve(`${error?.code ?? 0}${stdout}${stderr}`),
      )
    })
    t.equal(said, '0', name)
  }
})
