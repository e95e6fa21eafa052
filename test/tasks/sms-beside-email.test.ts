import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anSms, post } from '../fixtures/http.ts'
import { messageOf, send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { createSmsStandIn, createStandIn, untakenPartsOf } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

t.test('a slow SMS network does not delay emails', async (t) => {
  const { promise: answer, resolve: take } = Promise.withResolvers<void>()
  const network = createSmsStandIn()
  network.onSend = async (sms) => {
    await answer
    return { outcome: 'sent', parts: untakenPartsOf(sms) }
  }
  const { base, stop } = await startTestService(url, {
    roles: ['api', 'worker'],
    createSmsProvider: () => network,
    workerConcurrency: 2,
    smsConcurrency: 2,
  })
  const organisation = await createOrganisation(sql)
  const messages = Array.from({ length: 10 }, () => anSms())
  const { json } = await post(`${base}/v1/sms/batch`, organisation.liveKey, { messages })
  await until('all attempts of SMS to be in progress', async () => network.handed.length === 2)

  const email = await send(base, organisation, { to: 'delivered@sandbox.postgram.test' })
  await until('the email', async () => (await messageOf(sql, email)).status !== 'queued')
  t.equal(network.handed.length, 2, 'no more SMS are in progress than the limit')

  take()
  for (const { data } of json.results) {
    await until('each SMS', async () => (await messageOf(sql, data.id)).status === 'sent')
  }
  await stop()
})

t.test('checks of domains that take their time hold up no email', async (t) => {
  const { promise: answer, resolve: go } = Promise.withResolvers<void>()
  let checks = 0
  const checked = new Set<string>()
  const provider = createStandIn({
    async checkDomain(name) {
      checks += 1
      checked.add(name)
      await answer
      return 'active'
    },
  })
  const { base } = await startTestService(url, {
    roles: ['api', 'worker'],
    createEmailProvider: () => provider,
    workerConcurrency: 1,
  })
  const organisation = await createOrganisation(sql)
  for (let n = 0; n < 30; n++) {
    await sql`select ops.verify_domain(${organisation.id}, ${`n${n}.${organisation.domain}`})`
  }
  await sql`select api.enqueue_due_domain_checks('stand-in')`
  await until('checks to be in progress', async () => checks === 10)

  const email = await send(base, organisation)
  await until('the email', async () => (await messageOf(sql, email)).status === 'sent')
  t.equal(checks, 10, 'no more checks are in progress than the limit')
  go()
  const domains = await sql`select from app.domains`
  await until('a check of each domain', async () => checked.size === domains.length)
})
