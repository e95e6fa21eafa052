import { existsSync } from 'node:fs'
import { type BrowserContextOptions, chromium } from 'playwright-core'
import t from 'tap'
import { signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { createEndpoint, recordEvents } from '../fixtures/webhooks.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'], publicUrl: null })
const organisation = await createOrganisation(sql)
const path = `/dashboard/${organisation.id}`
const member = await signInAs(sql, base, { organisation: organisation.id, role: 'member' })

const executablePath = '/usr/bin/chromium'
const needsChromium = {
  skip: !existsSync(executablePath) && 'there is no Chromium on this machine',
}

/** Opens a page of Chromium with the session of the member. */
async function openPage(test: Pick<typeof t, 'teardown'>, options: BrowserContextOptions = {}) {
  // Chromium refuses to sandbox itself as root.
  const chromiumSandbox = process.getuid?.() !== 0
  const browser = await chromium.launch({ executablePath, chromiumSandbox })
  test.teardown(() => browser.close())
  const context = await browser.newContext({ baseURL: base, ...options })
  const cookies = member
    .cookies()
    .split('; ')
    .map((pair) => {
      const [name = '', ...value] = pair.split('=')
      return { name, value: value.join('='), url: base }
    })
  await context.addCookies(cookies)
  return context.newPage()
}

const HOSTILE =
  '<p>Hi {{name}}</p><img src="/x.png"><script>document.body.innerText = "run"</script>'

t.test('preview: follows what is typed, and Back leaves the page', needsChromium, async (t) => {
  const [row] = await sql`
    select ops.create_template(${organisation.id}, 'T', 'Hello {{name}}', ${HOSTILE}, null) as id`
  const page = await openPage(t)
  const blocked = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/x.png'))
  const errors: string[] = []
  page.on('pageerror', ({ message }) => errors.push(message))
  await page.goto(`${path}/templates`)
  await page.goto(`${path}/templates/${row?.id}`)
  const preview = page.frameLocator('iframe.preview:not([hidden])')
  await preview.getByText('Hello name').waitFor()
  const isBeside = "getComputedStyle(document.querySelector('.editor')).display === 'grid'"
  t.equal(await page.evaluate(isBeside), true, 'the preview is beside the fields')
  await page.fill('[name="variable.name"]', 'Ann & Bob')
  await preview.getByText('Hello Ann & Bob').waitFor()
  await preview.frameLocator('iframe').getByText('Hi Ann & Bob').waitFor()
  await page.fill('[name="subject"]', 'Bye {{other}}')
  await preview.getByText('Bye other').waitFor()
  await page.fill('[name="variable.other"]', 'you')
  await preview.getByText('Bye you').waitFor()
  t.same(errors, [])
  t.equal((await blocked).failure()?.errorText, 'csp', 'and nothing of the template is loaded')
  await page.goBack()
  t.match(page.url(), /\/templates$/)
})

t.test('preview: a button shows it without script', needsChromium, async (t) => {
  const page = await openPage(t, { javaScriptEnabled: false })
  await page.goto(`${path}/templates/new`)
  await page.fill('[name="subject"]', 'Plain {{name}}')
  await page.fill('[name="html"]', HOSTILE)
  await page.click('[data-preview-button]')
  const preview = page.frameLocator('iframe.preview')
  await preview.getByText('Plain name').waitFor()
  await preview.frameLocator('iframe').getByText('Hi name').waitFor()
  t.match(page.url(), /\/templates\/new$/)
})

t.test('replay: its progress is refreshed until nothing is left', needsChromium, async (t) => {
  const { id } = await createEndpoint(sql, organisation)
  await recordEvents(sql, organisation, 'email.sent', [new Date(), new Date()])
  const page = await openPage(t)
  await page.goto(`${path}/webhooks/${id}`)
  await page.click('text=Replay events of a period')
  await page.click('button:has-text("Replay events")')
  await page.getByText('2 events of the period replayed; 2 left.').waitFor()
  await sql`delete from app.webhook_deliveries`
  await page.getByText('none is left.').waitFor()
  t.equal(await page.locator('[data-refresh]').count(), 0)
})
