import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { SendResult } from '../../src/providers/email.ts'
import { createDatabase, serviceCall } from '../fixtures/database.ts'
import {
  backlogOf,
  jobsOf,
  messageOf,
  movementsOf,
  send,
  sendSms,
  timelineOf,
} from '../fixtures/messages.ts'
import { createPayer, smsOf } from '../fixtures/organisation.ts'
import { createSmsStandIn, createStandIn } from '../fixtures/providers.ts'
import { anSmsWorker, aWorker, helpersOf, startTestService } from '../fixtures/service.ts'

// Only the API runs: a test runs a job by calling its task.
const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createPayer(sql, { included: 1_000_000 })
const call = serviceCall(url)

const channels = {
  send_email: {
    send: () => send(base, organisation),
    createWorker() {
      const provider = createStandIn()
      return { provider, ...aWorker(sql, call, provider) }
    },
    startOfOther: 'start_sms',
    refunded: [],
  },
  send_sms: {
    send: () => sendSms(base, organisation, smsOf(2)),
    createWorker() {
      const provider = createSmsStandIn()
      return { provider, ...anSmsWorker(sql, call, provider) }
    },
    startOfOther: 'start_emails',
    refunded: ['sms -2', 'refund 2'],
  },
} as const

const outcomes = ['sent', 'failed', 'deferred', 'ambiguous'] as const

for (const [name, channel] of Object.entries(channels)) {
  /** One worker with its own provider, and a queued message. */
  const setUp = async () => {
    const worker = channel.createWorker()
    const id = await channel.send()
    const uuid = (await messageOf(sql, id)).id
    return { ...worker, id, uuid, attemptSend: () => worker.attemptSend(id) }
  }

  t.test(
    `${name}: the start of an attempt is committed before the provider is called`,
    async (t) => {
      const { provider, id, attemptSend } = await setUp()
      const before = await backlogOf(sql, organisation)
      provider.onSend = async (): Promise<SendResult> => {
        t.match(await messageOf(sql, id), { status: 'queued', attempts: 1, attemptStartedAt: Date })
        return { outcome: 'sent' }
      }
      await attemptSend()
      t.match(await messageOf(sql, id), {
        status: 'sent',
        attempts: 1,
        attemptStartedAt: null,
        provider: 'stand-in',
        sentAt: Date,
      })
      t.equal(provider.handed.length, 1)
      t.equal(await backlogOf(sql, organisation), before - 1)
    },
  )

  t.test(`${name}: a permanent refusal fails the message at once and refunds it`, async (t) => {
    const { provider, id, attemptSend } = await setUp()
    const before = await backlogOf(sql, organisation)
    const refusal: SendResult = { outcome: 'failed', code: '550', text: 'No such thing.' }
    provider.onSend = () => refusal
    await attemptSend()
    t.match(await messageOf(sql, id), {
      status: 'failed',
      errorCode: 'provider_rejected',
      errorMessage: 'No such thing.',
      sentAt: null,
    })
    t.match(await timelineOf(sql, id), [
      { type: 'queued' },
      { type: 'failed', detail: { attempt: 1, provider: 'stand-in', code: '550' } },
    ])
    t.same(await jobsOf(sql, id), [])
    t.same(await movementsOf(sql, id), channel.refunded)
    t.equal(await backlogOf(sql, organisation), before - 1)
  })

  t.test(`${name}: after 24 hours of deferrals a message fails and is refunded`, async (t) => {
    const { provider, id, uuid, attemptSend } = await setUp()
    const before = await backlogOf(sql, organisation)
    const deferral: SendResult = { outcome: 'deferred', code: '421', text: 'Not now.' }
    provider.onSend = () => deferral
    const moveFirstDeferral = (interval: string) => sql`
      update app.events set occurred_at = now() - ${interval}::interval
      where id = (select min(id) from app.events where message_id = ${uuid}) and message_id = ${uuid}`

    await attemptSend()
    t.strictSame((await timelineOf(sql, id)).at(-1)?.detail, {
      attempt: 1,
      provider: 'stand-in',
      code: '421',
      text: 'Not now.',
    })
    await moveFirstDeferral('23 hours 59 minutes')
    await attemptSend()
    t.equal((await messageOf(sql, id)).status, 'queued', 'a minute earlier it is retried')
    await moveFirstDeferral('24 hours 1 second')
    await attemptSend()
    t.match(await messageOf(sql, id), {
      status: 'failed',
      errorCode: 'provider_unavailable',
      errorMessage: 'Not now.',
      sentAt: null,
      attempts: 3,
    })
    t.same((await timelineOf(sql, id)).map(({ type }) => type).sort(), [
      'deferred',
      'deferred',
      'failed',
      'queued',
    ])
    t.same(await jobsOf(sql, id), [])
    t.same(await sql`select from app.due_messages where message_id = ${uuid}`, [])
    t.same(await movementsOf(sql, id), channel.refunded)
    t.equal(await backlogOf(sql, organisation), before - 1)
  })

  t.test(`${name}: a sandbox message goes to the sandbox, whatever the provider`, async (t) => {
    const { provider, sandbox, id, uuid, attemptSend } = await setUp()
    await sql`update app.messages set is_sandbox = true where id = ${uuid}`
    await attemptSend()
    t.match(await messageOf(sql, id), { status: 'sent', provider: 'sandbox' })
    t.same([provider.handed.length, sandbox.handed.length], [0, 1])
  })

  t.test(`${name}: concurrent messages each get their own outcome`, async (t) => {
    const { provider, task } = channel.createWorker()
    const ids = await Promise.all(Array.from({ length: 80 }, channel.send))
    const uuids = await Promise.all(ids.map(async (id) => (await messageOf(sql, id)).id))
    const outcomeAt = (place: number) => outcomes[place % outcomes.length] ?? 'sent'
    provider.onSend = ({ id }: { id: string }) => ({ outcome: outcomeAt(uuids.indexOf(id)) })
    await Promise.all(uuids.map((id) => task({ id }, helpersOf('0'))))
    const expected = { sent: 'sent', failed: 'failed', deferred: 'queued', ambiguous: 'queued' }
    for (const [place, id] of ids.entries()) {
      const message = await messageOf(sql, id)
      t.equal(message.status, expected[outcomeAt(place)])
      t.equal(message.attemptStartedAt !== null, outcomeAt(place) === 'ambiguous')
    }
    t.equal(provider.handed.length, ids.length)
  })

  t.test(`${name}: a payload that names no message of the channel sends nothing`, async (t) => {
    const { provider, task, uuid } = await setUp()
    t.same(await call(channel.startOfOther, { ids: [uuid] }), [])
    for (const payload of [null, {}, [], { id: 7 }, { id: 'em_01' }, { id: "'; drop table" }]) {
      const run = async () => task(payload as never, helpersOf('0'))
      await t.rejects(run, { name: 'ValiError' })
    }
    await task({ id: randomUUID() }, helpersOf('0'))
    t.equal(provider.handed.length, 0)
  })
}
