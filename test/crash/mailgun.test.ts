import t from 'tap'
import { createMailgun } from '../../src/providers/mailgun/index.ts'
import { createDatabase } from '../fixtures/database.ts'
import { startMailgun, type Trouble } from '../fixtures/mailgun.ts'
import { jobsOf, messageOf, send, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const mailgun = await startMailgun()
const { account } = mailgun

const SEND = /^POST .*\/messages$/

/** Returns an organisation with a domain that is registered at Mailgun. */
async function aSender(): Promise<TestOrganisation> {
  const organisation = await createOrganisation(sql)
  mailgun.domains.add(organisation.domain).state = 'active'
  return organisation
}

const takenFrom = ({ domain }: TestOrganisation) =>
  mailgun.messages.taken.filter((message) => message.domain === domain).length

const isAsked = ({ domain }: TestOrganisation) =>
  mailgun.requests.some((call) => SEND.test(call) && call.includes(domain))

const isSent = (id: string) => async () => (await messageOf(sql, id)).status === 'sent'

const typesOf = async (id: string) => (await timelineOf(sql, id)).map(({ type }) => type)

/** Waits for an ambiguous attempt, then shifts the time so that the next one is due, and tells the worker. */
async function passTime(id: string) {
  await until('the attempt to be noted', async () => (await typesOf(id)).includes('deferred'))
  await until('its job to be put off', async () => {
    const { id: uuid } = await messageOf(sql, id)
    await sql`
      update app.messages set attempt_started_at = attempt_started_at - interval '1 hour'
      where id = ${uuid}`
    const moved = await sql`
      update graphile_worker._private_jobs set run_at = now()
      where payload ->> 'id' = ${uuid} and locked_at is null
      returning pg_notify('jobs:insert', json_build_object('r', random(), 'count', 1)::text)`
    return moved.length === 1
  })
}

t.test(
  'worker killed after an attempt: Mailgun is asked, the email is not sent again',
  async (t) => {
    const { base, stop } = await startTestService(url, { roles: ['api'] })
    const startWorker = () =>
      spawnService(url, 'worker', {
        EMAIL_PROVIDER: 'mailgun',
        MAILGUN_API_KEY: account.apiKey,
        MAILGUN_API_BASE: account.apiBase,
        MAILGUN_WEBHOOK_SIGNING_KEY: account.signingKey,
        DKIM_ZONE: 'dkim.postgram.test',
        SYSTEM_FROM: 'postgram@postgram.test',
      })
    const victim = await startWorker()
    // Mailgun accepts everything; no response of it can be recorded.
    await sql`revoke execute on function api.finish_messages from postgram_service`
    const organisation = await aSender()
    const ids = []
    for (const name of ['ann', 'bee', 'cee']) {
      ids.push(await send(base, organisation, { to: `${name}@example.com` }))
    }
    await until('all to be taken', async () => takenFrom(organisation) === ids.length)
    await victim.end('SIGKILL')
    for (const id of ids) {
      t.match(await messageOf(sql, id), { status: 'queued', attemptStartedAt: Date })
    }

    await sql`grant execute on function api.finish_messages to postgram_service`
    const next = await startWorker()
    for (const id of ids) await until('it to be sent', isSent(id))
    t.equal(takenFrom(organisation), ids.length)
    for (const id of ids) {
      const message = await messageOf(sql, id)
      t.match(message, { provider: 'mailgun', sentAt: Date })
      t.ok(message.attempts > 1)
      t.same(await typesOf(id), ['queued', 'sent'])
      await until('its jobs to go', async () => (await jobsOf(sql, id)).length === 0)
    }
    t.equal(await next.end('SIGTERM'), 0)
    await stop()
  },
)

t.test('workers killed: no email is lost, and none that Mailgun knows is sent twice', async (t) => {
  const { base, stop } = await startTestService(url, {
    roles: ['api', 'worker'],
    createEmailProvider: () => createMailgun(account),
  })
  // Requests in progress last until the test ends their time limit.
  const begun: AbortController[] = []
  const timeout = () => {
    const controller = new AbortController()
    begun.push(controller)
    return controller.signal
  }
  t.intercept(AbortSignal, 'timeout', { value: timeout })
  const error = { status: 500, body: { message: 'Internal Server Error' } }
  const answers: Trouble['answer'][] = [error, 'nothing', 'half', 'reset', 'half, then reset']
  for (const answer of answers) {
    for (const isCarriedOut of [true, false]) {
      const organisation = await aSender()
      mailgun.expectTrouble(SEND, { isCarriedOut, answer })
      const id = await send(base, organisation, { to: 'ann@example.com' })
      if (answer === 'nothing' || answer === 'half') {
        await until('Mailgun to have it', async () =>
          isCarriedOut ? takenFrom(organisation) === 1 : isAsked(organisation),
        )
        begun.at(-1)?.abort(new DOMException('no answer in time', 'TimeoutError'))
      }
      await passTime(id)
      t.equal(takenFrom(organisation), isCarriedOut ? 1 : 0)
      await until('it to be sent', isSent(id))
      t.equal(takenFrom(organisation), 1, `${JSON.stringify(answer)} ${isCarriedOut}`)
      t.same(await typesOf(id), ['queued', 'deferred', 'sent'])
    }
  }
  await stop()
})

t.test('Mailgun cannot say whether it has an email: the email is not sent again', async (t) => {
  const { base, stop } = await startTestService(url, {
    roles: ['api', 'worker'],
    createEmailProvider: () => createMailgun(account),
  })
  const organisation = await aSender()
  const trouble = { status: 503, body: 'unavailable' }
  mailgun.expectTrouble(SEND, { isCarriedOut: true, answer: trouble })
  mailgun.expectTrouble(/^GET .*\/events/, { isCarriedOut: false, answer: trouble })
  const id = await send(base, organisation, { to: 'ann@example.com' })
  await passTime(id)
  await until('it to be asked for in vain', async () => {
    const deferrals = (await typesOf(id)).filter((type) => type === 'deferred')
    return deferrals.length === 2
  })
  t.equal(takenFrom(organisation), 1)
  await passTime(id)
  await until('it to be sent', isSent(id))
  t.equal(takenFrom(organisation), 1)
  await stop()
})

t.test('wrong Mailgun credentials: the email waits, and ops.why names the reason', async (t) => {
  const { base, stop } = await startTestService(url, {
    roles: ['api', 'worker'],
    createEmailProvider: () => createMailgun(account),
  })
  const organisation = await aSender()
  mailgun.expectTrouble(SEND, { isCarriedOut: false, answer: { status: 401, body: 'Forbidden' } })
  const id = await send(base, organisation, { to: 'ann@example.com' })
  await passTime(id)
  await until('it to be sent', isSent(id))
  const [, deferral] = await timelineOf(sql, id)
  t.match(deferral, { type: 'deferred', detail: { code: '401', text: 'Forbidden', attempt: 1 } })
  t.equal(takenFrom(organisation), 1)
  await stop()
})
