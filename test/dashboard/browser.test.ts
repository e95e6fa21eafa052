import axe from 'axe-core'
import type { Page } from 'playwright-core'
import t from 'tap'
import { DEMO_OWNER, seed } from '../../src/cli/demo.ts'
import { fillMonth } from '../../src/cli/demo-month/index.ts'
import { noChromium, openChromium, overflowOf, signInBy, visitAll } from '../fixtures/browser.ts'
import { routes } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { startReceiver } from '../fixtures/webhooks.ts'

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
  const paths = routes().pages.map(({ path }) => path)
  const browser = await openChromium()
  t.teardown(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1280, height: HEIGHT } })
  /** What the browser complains about: errors of scripts, refusals by the CSP, failed requests. */
  const complaints: string[] = []
  page.on('console', (message) => {
    // The page of a link that does not work has status 410.
    if (message.location().url.endsWith('/login/wrong')) return
    if (message.type() === 'error') complaints.push(`${page.url()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`))

  /** Returns a new link that signs in: the demo's owner, or this user. */
  async function newLink(email = DEMO_OWNER): Promise<string> {
    const [row] = await sql<{ path: string }[]>`
      select ops.create_sign_in_link(${email}) as path`
    return base + row?.path
  }

  /** Returns what is wrong with the shown page, wide and light, then narrow and dark. */
  async function findingsOf(path: string): Promise<string[]> {
    const findings: string[] = []
    await page.evaluate(
      'document.querySelectorAll("details").forEach((one) => { one.open = true })',
    )
    const strayLabels = (await page.evaluate(STRAY_LABELS)) as string[]
    for (const label of strayLabels) findings.push(`${path}: label of another form: ${label}`)
    for (const [width, colorScheme] of [
      [1280, 'light'],
      [360, 'dark'],
    ] as const) {
      await page.setViewportSize({ width, height: HEIGHT })
      await page.emulateMedia({ colorScheme })
      const overflow = await overflowOf(page)
      if (overflow > 0) findings.push(`${path}: ${overflow} px too wide at ${width} px`)
      for (const finding of await axeFindings(page, width === 1280 ? null : OF_LAYOUT)) {
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

    await page.goto(`${base}/operator/organisations`)
    await page.keyboard.press('/')
    t.equal(await page.locator(':focus').getAttribute('type'), 'search')
    // Where a person types, these are letters.
    await page.keyboard.type('g d?')
    t.equal(await page.locator(':focus').inputValue(), 'g d?')
    t.notOk(await page.locator('dialog#help').isVisible())

    await page.goto(`${home}/keys`)
    await page.keyboard.press('?')
    t.ok(await page.locator('dialog#help').isVisible())
    await page.keyboard.press('Escape')
    t.notOk(await page.locator('dialog#help').isVisible())
    await page.keyboard.press('g')
    await page.keyboard.press('d')
    await page.waitForURL(`${home}/domains`)
    // Tab reaches every control of the page.
    const controls = await page.locator(CONTROLS).filter({ visible: true }).count()
    const reached = new Set<unknown>()
    for (let n = 0; n < controls; n++) {
      await page.keyboard.press('Tab')
      reached.add(await page.evaluate(PLACE_OF_FOCUS))
    }
    t.ok(controls > 10)
    t.equal(reached.size, controls)
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
    await plain.locator('summary', { hasText: 'Create an API key' }).click()
    await plain.getByLabel('Mode').selectOption('test')
    await plain.getByRole('button', { name: 'Create key' }).click()
    t.match(await plain.locator('[data-copy]').textContent(), /^sk_test_[0-9a-f]{64}$/)
    await context.close()
  })

  await t.test('from a link to a template, a test email, an endpoint and a replay', async (t) => {
    const receiver = await startReceiver((response) => {
      response.statusCode = 500
      response.end('broken')
    })
    const context = await browser.newContext()
    const own = await context.newPage()
    await signInBy(own, await newLink())

    await own.getByRole('link', { name: 'Templates' }).click()
    await own.getByRole('link', { name: 'Add template' }).click()
    await own.getByLabel('Name', { exact: true }).fill('Welcome')
    await own.getByLabel('Subject').fill('Welcome, {{name}}')
    await own.getByLabel('Text', { exact: true }).fill('Dear {{name}}, welcome.')
    await own.getByRole('button', { name: 'Save' }).click()
    t.equal(await own.getByRole('heading', { level: 1 }).textContent(), 'Welcome')
    const template = own.url()

    await own.getByRole('link', { name: 'Webhooks' }).click()
    await own.locator('summary', { hasText: 'Add an endpoint' }).click()
    await own.getByLabel('URL').fill(receiver.url)
    await own.getByRole('button', { name: 'Add endpoint' }).click()
    t.match(await own.locator('[data-copy]').textContent(), /^whsec_/)
    await own.getByRole('link', { name: 'To the endpoint' }).click()
    const endpoint = own.url()
    await own.locator('summary', { hasText: 'Send a test event' }).click()
    await own.getByLabel('Type').selectOption('sms.delivered')
    await own.getByRole('button', { name: 'Send test event' }).click()
    await until('the attempt to be shown', async () => {
      await own.reload()
      return (await own.locator('main').textContent())?.includes('broken')
    })

    await own.goto(template)
    await own.getByLabel('name', { exact: true }).fill('Thandi')
    await own.getByLabel('From').fill('test@sandbox.postgram.test')
    await own.getByLabel('To', { exact: true }).fill('delivered@sandbox.postgram.test')
    await own.getByRole('button', { name: 'Send test' }).click()
    t.match(await own.getByRole('status').first().textContent(), 'is accepted')
    const [sent] = await sql`
      select subject from app.messages where to_address = 'delivered@sandbox.postgram.test'`
    t.match(sent, { subject: 'Welcome, Thandi' })

    await until('the event of the test email to be shown', async () => {
      await own.goto(endpoint)
      return own.getByRole('link', { name: 'email.sent' }).isVisible()
    })
    await own.getByRole('link', { name: 'email.sent' }).click()
    await until('its failed delivery to be shown', async () => {
      await own.reload()
      return (await own.locator('main').textContent())?.includes('broken')
    })
    receiver.answer = (response) => response.end('thank you')
    const posts = () => receiver.received.filter(({ body }) => body.includes('"email.sent"'))
    const [id = ''] = endpoint.split('/').slice(-1)
    await own
      .locator('form', { has: own.locator(`input[value="${id}"]`) })
      .getByRole('button', { name: 'Replay' })
      .click()
    t.match(await own.getByRole('status').first().textContent(), 'The event is replayed.')
    await until('the replay to be shown', async () => {
      await own.reload()
      return (await own.locator('main').textContent())?.includes('thank you')
    })
    t.equal(posts().length, 2)
    t.same(posts()[1]?.body, posts()[0]?.body)
    await context.close()
  })

  await t.test(
    'an owner invites a member and a viewer, who each see what they may do',
    async (t) => {
      const seen: Record<string, string[]> = {}
      const contexts = []
      await page.goto(`${home}/team`)
      for (const role of ['member', 'viewer']) {
        await page.locator('summary', { hasText: 'Invite a person' }).click()
        await page.getByLabel('Email address').fill(`new-${role}@example.com`)
        await page
          .locator('form', { has: page.getByRole('button', { name: 'Invite' }) })
          .getByLabel('Role')
          .selectOption(role)
        await page.getByRole('button', { name: 'Invite' }).click()
        t.match(await page.locator('main').textContent(), `new-${role}@example.com`)
        const context = await browser.newContext()
        contexts.push(context)
        const theirs = await context.newPage()
        t.equal(
          await signInBy(theirs, await newLink(`new-${role}@example.com`)),
          `/dashboard/${organisation}`,
        )
        await theirs.getByRole('link', { name: 'Templates' }).click()
        const canAdd = await theirs.getByRole('link', { name: 'Add template' }).isVisible()
        await theirs.getByRole('link', { name: 'API keys' }).click()
        const canMakeKeys = await theirs.getByText('Create an API key').isVisible()
        seen[role] = [...(canAdd ? ['add template'] : []), ...(canMakeKeys ? ['make keys'] : [])]
        t.equal((await theirs.goto(`${base}/operator`))?.status(), 404)
      }
      t.same(seen, { member: ['add template'], viewer: [] })
      // What one changes, the other sees.
      const [member, viewer] = contexts.map((context) => context.pages()[0])
      await member?.goto(`${home}/templates/new`)
      await member?.getByLabel('Name', { exact: true }).fill('By the member')
      await member?.getByLabel('Subject').fill('Hello')
      await member?.getByLabel('Text', { exact: true }).fill('Hello')
      await member?.getByRole('button', { name: 'Save' }).click()
      await viewer?.goto(`${home}/templates`)
      await viewer?.getByRole('link', { name: 'By the member' }).click()
      t.equal(await viewer?.getByRole('heading', { level: 1 }).textContent(), 'By the member')
      t.equal(await viewer?.getByRole('button', { name: 'Save' }).count(), 0)
      await page.goto(`${home}/team`)
      t.match(
        await page.locator('main').textContent(),
        /new-member@example\.com[\s\S]*create_template/,
      )
      for (const context of contexts) await context.close()
    },
  )

  await t.test('the browser has refused and missed nothing', async (t) => t.same(complaints, []))
})

/** What Tab reaches. */
const CONTROLS =
  'a[href], button:not(dialog button), input:not([type="hidden"]), select, textarea, summary'

const PLACE_OF_FOCUS = '[...document.querySelectorAll("*")].indexOf(document.activeElement)'

/** The labels whose field is in another form, or missing: a click on them would focus that one. */
const STRAY_LABELS = `[...document.querySelectorAll('form label')]
  .filter((label) => label.control?.form !== label.closest('form'))
  .map((label) => label.textContent)`

/** The rules whose result depends on width and colours; the others look at the same elements again. */
const OF_LAYOUT = [
  'color-contrast',
  'link-in-text-block',
  'scrollable-region-focusable',
  'target-size',
]

/** Returns the rules that the shown page breaks, with the elements that break them; null: of all rules. */
async function axeFindings(page: Page, rules: readonly string[] | null): Promise<string[]> {
  // The CSP forbids a script element. Frames are documents of their own: previews of callers' emails.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source)
  const options = { resultTypes: ['violations'], iframes: false, ...(rules && { runOnly: rules }) }
  return (await page.evaluate(`
    axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ' ' + nodes.map(({ html }) => html.slice(0, 150)).join(' ')))
  `)) as string[]
}
