import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { type Browser, chromium } from 'playwright-core'
import t from 'tap'
import { signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { createLives, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const CHROMIUM = '/usr/bin/chromium'
const skip = !existsSync(CHROMIUM) && `${CHROMIUM} is not installed`

const database = await createDatabase()
const { sql, url } = database
const { base } = await startTestService(url, { roles: ['api'] })
const lives = createLives(database)
const organisation = await createOrganisation(sql)
const pageOf = (id: string) => `${base}/dashboard/${organisation.id}/messages/${id}`

let chrome: Browser | undefined

/** A tab in which a member is signed in. */
async function openTab({ width = 1280 } = {}) {
  chrome ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  const member = await signInAs(sql, base, { organisation: organisation.id, role: 'member' })
  const context = await chrome.newContext({ viewport: { width, height: 800 } })
  const [name = '', value = ''] = member.cookies().split('=')
  await context.addCookies([{ name, value, url: base.replace('http:', 'https:'), secure: true }])
  await context.setExtraHTTPHeaders({ Cookie: member.cookies() })
  return context.newPage()
}

t.teardown(() => chrome?.close())

t.test('a body in its frame connects to no host and runs no script', { skip }, async (t) => {
  const connections: string[] = []
  const outside = createServer((socket) => {
    connections.push('connected')
    socket.destroy()
  })
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve))
  t.teardown(() => outside.close())
  const { port } = outside.address() as { port: number }
  const there = `http://127.0.0.1:${port}`
  const id = await send(base, organisation, {
    html: `<html><head>
      <link rel="preconnect" href="${there}"><link rel="stylesheet" href="${there}/a.css">
      <link rel="prefetch" href="${there}/b"><link rel="icon" href="${there}/c.ico">
      <style>@import url("${there}/d.css"); @font-face { font-family: f; src: url("${there}/e.woff") }
        p { font-family: f; background: url("${there}/f.png") }</style>
      <meta http-equiv="refresh" content="0;url=${there}/g"><base href="${there}/"></head>
      <body onload="document.title = 'ran'"><p id="shown">Shown</p>
      <img src="${there}/h.png" onerror="parent.document.title = 'ran'"><img srcset="${there}/i.png 2x">
      <iframe src="${there}/j"></iframe><object data="${there}/k"></object><embed src="${there}/l">
      <video src="${there}/m" poster="${there}/n.png" autoplay></video><svg><image href="${there}/o.png"/></svg>
      <input type="image" src="${there}/p.png">
      <script>parent.document.title = 'ran'; fetch('${there}/q')</script><script src="${there}/r.js"></script>
      <a id="link" href="${there}/s">link</a><form action="${there}/t"><button id="send">send</button></form>
      </body></html>`,
  })
  const tab = await openTab()
  await tab.goto(pageOf(id))
  const title = await tab.title()
  await tab.locator('iframe[title="HTML"]').scrollIntoViewIfNeeded()
  const frame = tab.frameLocator('iframe[title="HTML"]')
  await frame.locator('#shown').waitFor()
  await frame.locator('#send').click()
  await frame.locator('#link').click()
  await tab.goto(`${pageOf(id)}/body?part=html`)
  await tab.locator('#shown').waitFor()
  t.same(connections, [])
  t.notMatch(title, 'ran')
  t.notMatch(await tab.title(), 'ran')
  // The server notices whoever connects.
  await tab.goto(there).catch(() => null)
  t.not(connections.length, 0)
})

t.test('the timeline follows the message without a reload of the page', { skip }, async (t) => {
  const id = await send(base, organisation)
  const tab = await openTab()
  await tab.goto(pageOf(id))
  await tab.evaluate(() => Object.assign(globalThis, { isSamePage: true }))
  t.match(await tab.locator('.timeline').innerText(), /queued/)
  await lives.start(id)
  await lives.finish(id, 'sent')
  await tab.locator('.timeline', { hasText: 'sent' }).waitFor()
  await lives.record(id, { type: 'delivered' })
  await tab.locator('[aria-live]', { hasText: 'delivered' }).waitFor()
  t.ok(await tab.evaluate(() => Reflect.get(globalThis, 'isSamePage')))
})

t.test('"Copy as curl" puts the command into the clipboard', { skip }, async (t) => {
  const id = await send(base, organisation, { subject: 'To copy' })
  const tab = await openTab()
  await tab.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await tab.goto(pageOf(id))
  await tab.getByText('Copy as curl').click()
  await tab.getByText('Copied').waitFor()
  t.match(await tab.evaluate(() => navigator.clipboard.readText()), /^curl [\s\S]*To copy/)
})

t.test('the pages of messages fit 360 px', { skip }, async (t) => {
  const id = await send(base, organisation, {
    subject: 'x'.repeat(300),
    to: Array.from({ length: 20 }, (_, n) => `${'y'.repeat(60)}${n}@example.com`),
    tags: ['z'.repeat(64)],
  })
  const tab = await openTab({ width: 360 })
  for (const address of [
    pageOf(id),
    `${base}/dashboard/${organisation.id}/messages?status=queued`,
  ]) {
    await tab.goto(address)
    await until('the page', async () => (await tab.locator('h1').count()) > 0)
    t.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), address)
  }
})
