import t from 'tap'
import type { SmsSendResult } from '../../src/providers/sms.ts'
import { createDatabase } from '../fixtures/database.ts'
import { jobsOf, messageOf, sendSms, timelineOf } from '../fixtures/messages.ts'
import { createPayer, smsOf } from '../fixtures/organisation.ts'
import { createSmsStandIn } from '../fixtures/providers.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

t.test('stop: an SMS that waits for the limiter is released as not sent', async (t) => {
  const provider = createSmsStandIn()
  const closing = Promise.withResolvers<SmsSendResult>()
  provider.onSend = () => closing.promise
  provider.close = async () => closing.resolve({ outcome: 'deferred', text: 'not its turn yet' })
  const service = await startTestService(url, { createSmsProvider: () => provider })
  const organisation = await createPayer(sql, { included: 100 })
  const id = await sendSms(service.base, organisation, smsOf(1))
  await until('the hand-over', async () => provider.handed.length === 1)
  await service.stop()
  t.match(await messageOf(sql, id), { status: 'queued', attempts: 1 })
  t.match(await jobsOf(sql, id), [{ lockedBy: null }])
  const [, event] = await timelineOf(sql, id)
  t.match(event, { type: 'deferred', detail: { text: 'not its turn yet' } })
  t.notOk(event?.detail.isAmbiguous)
})
