import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anSms, post } from '../fixtures/http.ts'
import { messageOf, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { createSmsStandIn, partsOf } from '../fixtures/sms-stand-in.ts'
import { until } from '../fixtures/until.ts'

const { url, sql } = await createDatabase()

t.test('a network that takes its time holds up no email', async (t) => {
  const { promise: answer, resolve: take } = Promise.withResolvers<void>()
  const network = createSmsStandIn()
  network.onSend = async (sms) => {
    await answer
    return { outcome: 'sent', parts: partsOf(sms) }
  }
  const { base } = await startTestService(url, {
    roles: ['api', 'worker'],
    createSmsProvider: () => network,
    workerConcurrency: 2,
    smsConcurrency: 2,
  })
  const organisation = await createOrganisation(sql)
  const messages = Array.from({ length: 10 }, () => anSms())
  const { json } = await post(`${base}/v1/sms/batch`, organisation.liveKey, { messages })
  await until('all hand-overs of SMS to be under way', async () => network.handed.length === 2)

  const email = await send(base, organisation, { to: 'delivered@sandbox.postgram.test' })
  await until('the email', async () => (await messageOf(sql, email)).status !== 'queued')
  t.equal(network.handed.length, 2, 'and no more SMS are in hand than may be')

  take()
  for (const { data } of json.results) {
    await until('each SMS', async () => (await messageOf(sql, data.id)).status === 'sent')
  }
})
