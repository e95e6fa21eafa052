// `npm run screenshots -- FOLDER` takes pictures of every page of the dashboard with the demo month: light and dark,
// 1280 and 360 pixels wide. The service runs on an embedded database of its own, which is removed afterwards.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { DEMO_OWNER } from '../../src/cli/demo.ts'
import { noChromium, openChromium, signInBy, visitAll } from '../fixtures/browser.ts'
import { routes } from '../fixtures/dashboard.ts'

const WIDTHS = [1280, 360]
const SCHEMES = ['light', 'dark'] as const
const HEIGHT = 900

const [folder, ...rest] = process.argv.slice(2)
if (!folder || rest.length > 0) {
  console.error('usage: npm run screenshots -- FOLDER')
  process.exit(1)
}
if (noChromium) {
  console.error(`${noChromium}: install the package chromium`)
  process.exit(1)
}

const data = await mkdtemp(join(tmpdir(), 'postgram-screenshots-'))
const options = {
  cwd: new URL('../../', import.meta.url),
  env: { PATH: process.env.PATH, POSTGRAM_DATA: data, PORT: '0', LOG_LEVEL: 'info' },
}

/** Runs a command of the service and returns what it prints. */
const run = async (...args: string[]) =>
  (await promisify(execFile)(process.execPath, ['src/main.ts', ...args], options)).stdout

/** Returns the service and its address once it listens. */
async function start(): Promise<{ service: ChildProcess; base: string }> {
  const service = spawn(process.execPath, ['src/main.ts', 'start'], {
    ...options,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: service.stdout })) {
    if (line.includes('"msg":"started"')) return { service, base: JSON.parse(line).address }
  }
  throw new Error('the service did not start')
}

const browser = await openChromium()
try {
  console.log(await run('seed', '--demo'))
  await run('sql', '--write', `select ops.make_operator('${DEMO_OWNER}')`)
  const { service, base } = await start()
  service.stdout?.resume()
  const link = (await run('login', DEMO_OWNER)).trim()
  const page = await browser.newPage({ viewport: { width: 1280, height: HEIGHT } })
  const home = await signInBy(page, base + new URL(link).pathname)
  const organisation = home.split('/')[2] ?? ''
  const target = resolve(folder)
  await mkdir(target, { recursive: true })
  const paths = routes().pages.map(({ path }) => path)
  const missed = await visitAll(page, base, { paths, organisation }, async (path) => {
    for (const width of WIDTHS) {
      for (const colorScheme of SCHEMES) {
        await page.setViewportSize({ width, height: HEIGHT })
        await page.emulateMedia({ colorScheme })
        const name = path
          .replace(`/${organisation}`, '')
          .slice(1)
          .replace(/\/\w+_\w{26}/g, '-one')
        const file = `${name.replaceAll('/', '-')}-${width}-${colorScheme}.png`
        await page.screenshot({ path: join(target, file), fullPage: width < 1280 })
      }
    }
    console.log(path)
  })
  for (const path of missed) console.error(`no page links to ${path}`)
  service.kill()
  await once(service, 'exit')
} finally {
  await browser.close()
  await rm(data, { recursive: true, force: true })
}
