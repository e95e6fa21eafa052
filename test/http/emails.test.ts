import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url)

t.test('an email goes from queued to sent to delivered', async (t) => {
  const { liveKey, domain } = await createOrganisation(sql)
  const sent = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
  t.equal(sent.status, 200)
  t.match(sent.json, { id: /^em_[0-9a-hjkmnp-tv-z]{26}$/, status: 'queued', mode: 'live' })
  const message = await until('delivery', async () => {
    const { json } = await get(`${base}/v1/emails/${sent.json.id}`, liveKey)
    return json.status === 'delivered' && json
  })
  t.same(
    message.events.map((event: { type: string }) => event.type),
    ['queued', 'sent', 'delivered'],
  )
})
