import { execFile, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { access, readdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t from 'tap'
import { createDatabase } from './fixtures/database.ts'
import {
  argumentsOf,
  copied,
  layOutImage,
  productionPackages,
  readText,
  wordsOf,
} from './fixtures/deployment.ts'
import { anEmail, get, post } from './fixtures/http.ts'
import { npmStart } from './fixtures/npm-start.ts'
import { createOrganisation } from './fixtures/organisation.ts'
import { nodeEnv } from './fixtures/processes.ts'
import { until } from './fixtures/time.ts'

/** The promised limit of a stop. */
const STOP_SECONDS = 15

const root = new URL('../', import.meta.url)
const { devDependencies } = JSON.parse(await readText('package.json'))

t.test('image: every file that it copies exists and passes .dockerignore', async (t) => {
  const lines = (await readText('.dockerignore')).split('\n')
  const [everything, ...kept] = lines.filter((line) => line && !line.startsWith('#'))
  const wanted = new Set(copied())
  t.equal(everything, '*')
  t.same(kept.sort(), Array.from(wanted, (path) => `!${path}`).sort())
  for (const path of wanted) await access(new URL(path, root))
})

t.test('image: has the Node version of the tests and runs no install scripts', async (t) => {
  t.same(argumentsOf('ARG'), [`NODE_IMAGE=node:${devDependencies.node}-bookworm-slim`])
  const bases = argumentsOf('FROM').map((argument) => argument.split(' ')[0])
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Docker's.
  t.same(bases, Array(2).fill('${NODE_IMAGE}'))
  t.same(argumentsOf('RUN'), ['npm ci --omit=dev --omit=optional --ignore-scripts'])
  const packages = await productionPackages()
  t.ok(packages.length > 100)
  t.same(
    packages.filter(([, { hasInstallScript }]) => hasInstallScript),
    [],
  )
  t.match(argumentsOf('USER'), [/^[1-9]\d*:[1-9]\d*$/])
})

t.test('image: has nothing that is for one architecture only', async (t) => {
  const packages = await productionPackages()
  t.same(
    packages.filter(([, { cpu, os, libc }]) => cpu || os || libc),
    [],
  )
  const compiled = []
  for (const [path] of packages) {
    const files = await readdir(new URL(path, root), { recursive: true })
    compiled.push(...files.filter((file) => /\.(node|so)$/.test(file)))
  }
  t.same(compiled, [])
  const workflow = await readText('.github/workflows/image.yml')
  t.match(workflow, /^ +platforms: linux\/amd64,linux\/arm64$/m)
})

const [, ...nodeFlags] = wordsOf('ENTRYPOINT').slice(0, -1)
const [main = ''] = wordsOf('ENTRYPOINT').slice(-1)
const imageEnv = parseEnv(argumentsOf('ENV').join(' ').replaceAll(' ', '\n'))

/** Runs Node in the folder of the image, which consists of links; imports resolve there, not at the targets. */
const linked = ['--preserve-symlinks', '--preserve-symlinks-main']

t.test('image', async (t) => {
  const { url, sql } = await createDatabase()
  const cwd = await layOutImage()
  const env = { ...nodeEnv, ...imageEnv, PORT: '0' }

  t.test('starts by its own command, sends, and stops in time', async (t) => {
    const child = spawn(process.execPath, [...linked, ...nodeFlags, main, ...wordsOf('CMD')], {
      cwd,
      env: { ...env, DATABASE_URL: url, SECRET_KEY: randomBytes(32).toString('base64') },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exit = once(child, 'exit')
    t.teardown(() => child.kill('SIGKILL'))
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
    const port = await until('the start', async () => /:(\d+)\/v1$/m.exec(output)?.[1])
    const base = `http://127.0.0.1:${port}`
    await until('readiness', async () => (await get(`${base}/readyz`, null)).status === 200)
    const { liveKey, domain } = await createOrganisation(sql)
    const sent = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
    t.equal(sent.status, 200)
    await until('delivery', async () => {
      const { json } = await get(`${base}/v1/emails/${sent.json.id}`, liveKey)
      return json.status === 'delivered'
    })
    const startedAt = performance.now()
    child.kill('SIGTERM')
    t.same(await exit, [0, null])
    t.ok(performance.now() - startedAt < STOP_SECONDS * 1000)
  })

  t.test('requires DATABASE_URL and has no embedded Postgres', async (t) => {
    const args = [...linked, ...nodeFlags, main, ...wordsOf('CMD')]
    const lines = {
      '': /^DATABASE_URL: is required with NODE_ENV=production; .*\n$/,
      embedded:
        /^The embedded Postgres for \S+ is not installed here: .* or set DATABASE_URL .*\n$/,
    }
    for (const [DATABASE_URL, line] of Object.entries(lines)) {
      const { status, stdout, stderr } = spawnSync(process.execPath, args, {
        cwd,
        env: { ...env, DATABASE_URL },
        encoding: 'utf8',
      })
      t.same({ status, stdout }, { status: 1, stdout: '' })
      t.match(stderr, line)
    }
    await t.rejects(access(join(cwd, '.postgram')), 'nothing was made')
  })
})

t.test('health check: succeeds only while /healthz responds with 200', async (t) => {
  const asked: (string | undefined)[] = []
  let status = 200
  const server = createServer((request, response) => {
    asked.push(request.url)
    response.writeHead(status).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const [program, ...args] = wordsOf('HEALTHCHECK')
  t.equal(program, 'node')
  const env = { PORT: `${(server.address() as AddressInfo).port}` }
  const check = () =>
    new Promise((resolve) => {
      execFile(process.execPath, args, { env }, (error) => resolve(error ? error.code : 0))
    })
  t.equal(await check(), 0)
  status = 503
  t.equal(await check(), 1)
  server.close()
  await once(server, 'close')
  t.equal(await check(), 1)
  t.same(asked, ['/healthz', '/healthz'])
})

t.test('image: starts Node as npm start does, with NODE_ENV and HOST', async (t) => {
  t.equal([...nodeFlags, main, ...wordsOf('CMD')].join(' '), npmStart.command)
  t.same(imageEnv, { NODE_ENV: 'production', HOST: '0.0.0.0', ...npmStart.env })
})
