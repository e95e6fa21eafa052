import axe from 'axe-core'
import type { Page } from 'playwright-core'
import t from 'tap'
import { DEMO_OWNER, seed } from '../../src/cli/demo.ts'
import { fillMonth } from '../../src/cli/demo-month/index.ts'
import { pages } from '../../src/dashboard/pages/index.ts'
import { noChromium, openChromium, overflowOf, signInBy, visitAll } from '../fixtures/browser.ts'
import { createDatabase } from '../fixtures/database.ts'
import { startTestService } from '../fixtures/service.ts'

const HEIGHT = 900

t.test('the dashboard in a browser', { skip: noChromium }, async (t) => {
  const { sql, url } = await createDatabase()
  const { base } = await startTestService(url, {
    roles: ['api', 'worker'],
    publicUrl: 'http://127.0.0.1',
  })
  const { organisation } = await seed(sql)
  await fillMonth(sql, organisation)
  await sql`select ops.make_operator(${DEMO_OWNER})`
  const paths = pages(async () => null as never).map(({ path }) => path)
  const browser = await openChromium()
  t.teardown(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1280, height: HEIGHT } })
  /** What the browser complains about: errors of scripts, refusals by the CSP, failed requests. */
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${page.url()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`))

  /** Returns the path of a new link for the demo's owner. */
  async function newLink(): Promise<string> {
    const [row] = await sql<{ path: string }[]>`
      select ops.create_sign_in_link(${DEMO_OWNER}) as path`
    return base + row?.path
  }

  /** Returns what is wrong with the shown page, wide and light, then narrow and dark. */
  async function findingsOf(path: string): Promise<string[]> {
    const findings: string[] = []
    await page.evaluate(
      'document.querySelectorAll("details").forEach((one) => { one.open = true })',
    )
    for (const [width, colorScheme] of [
      [1280, 'light'],
      [360, 'dark'],
    ] as const) {
      await page.setViewportSize({ width, height: HEIGHT })
      await page.emulateMedia({ colorScheme })
      const overflow = await overflowOf(page)
      if (overflow > 0) findings.push(`${path}: ${overflow} px too wide at ${width} px`)
      for (const finding of await axeFindings(page)) {
        findings.push(`${path}: ${finding} at ${width} px, ${colorScheme}`)
      }
    }
    return findings
  }

  await t.test('each page fits 360 and 1280 px, and axe finds nothing', async (t) => {
    const findings: string[] = []
    for (const path of ['/login', '/login?again', '/login/wrong']) {
      await page.goto(base + path)
      findings.push(...(await findingsOf(path)))
    }
    await signInBy(page, await newLink())
    const missed = await visitAll(page, base, { paths, organisation }, async (path) => {
      findings.push(...(await findingsOf(path)))
    })
    t.same(findings, [])
    t.same(missed, [])
  })

  const home = `${base}/dashboard/${organisation}`

  await t.test('keys alone skip to the content, search, show help and open pages', async (t) => {
    await page.setViewportSize({ width: 1280, height: HEIGHT })
    await page.goto(`${home}/messages`)
    await page.keyboard.press('Tab')
    t.equal(await page.locator(':focus').textContent(), 'Skip to content')
    await page.keyboard.press('Enter')
    t.equal(await page.locator(':focus').getAttribute('id'), 'main')
    await page.keyboard.press('/')
    t.equal(await page.locator(':focus').getAttribute('type'), 'search')
    await page.keyboard.type('g d?')
    t.equal(page.url(), `${home}/messages#main`)
    t.equal(await page.locator(':focus').inputValue(), 'g d?')

    await page.goto(`${home}/keys`)
    await page.keyboard.press('?')
    t.ok(await page.locator('dialog#help').isVisible())
    await page.keyboard.press('Escape')
    t.notOk(await page.locator('dialog#help').isVisible())
    await page.keyboard.press('g')
    await page.keyboard.press('d')
    await page.waitForURL(`${home}/domains`)
    // Every control of the page is reached by Tab.
    const controls = await page.locator(CONTROLS).count()
    const reached = new Set<string>()
    for (let n = 0; n < controls; n++) {
      await page.keyboard.press('Tab')
      reached.add(await page.locator(':focus').evaluate((element) => element.outerHTML))
    }
    t.ok(reached.size > 10)
    t.notOk(await page.evaluate('document.activeElement === document.body'))
  })

  await t.test('without script each form is reachable, and one makes a key', async (t) => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const plain = await context.newPage()
    await signInBy(plain, await newLink())
    const hidden: string[] = []
    await visitAll(plain, base, { paths, organisation }, async (path) => {
      for (const details of await plain.locator('details').all()) {
        if ((await details.getAttribute('open')) !== null) continue
        await details.locator('> summary').click()
      }
      for (const button of await plain.locator('form button:not(dialog button)').all()) {
        if (!(await button.isVisible())) hidden.push(`${path}: ${await button.textContent()}`)
      }
    })
    t.same(hidden, [])
    await plain.goto(`${home}/keys`)
    await plain.getByText('Create an API key').click()
    await plain.getByLabel('Mode').selectOption('test')
    await plain.getByRole('button', { name: 'Create key' }).click()
    t.match(await plain.locator('[data-copy]').textContent(), /^sk_test_[0-9a-f]{64}$/)
    await context.close()
  })

  await t.test('the browser has refused and missed nothing', async (t) => t.same(complaints, []))
})

/** What Tab reaches. */
const CONTROLS =
  'a[href], button:not(dialog button), input:not([type="hidden"]), select, textarea, summary'

/** Rules that the shown page breaks, each with the elements that break it. */
async function axeFindings(page: Page): Promise<string[]> {
  // The CSP forbids a script element. Frames are documents of their own: previews of callers' emails.
  await page.evaluate(axe.source)
  return (await page.evaluate(`
    axe.run(document, { resultTypes: ['violations'], iframes: false }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ' ' + nodes.map(({ html }) => html.slice(0, 150)).join(' ')))
  `)) as string[]
}
