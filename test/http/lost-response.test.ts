import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import type { Context, Next } from 'koa'
import Koa from 'koa'
import { pino } from 'pino'
import t from 'tap'
import { Unreachable } from '../../src/db/connection-errors.ts'
import { OutcomeUnknown, TimedOut } from '../../src/db/repeated-call.ts'
import { renderErrors } from '../../src/http/errors.ts'
import { requestId } from '../../src/http/request-id.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, get, post, request } from '../fixtures/http.ts'
import { listen } from '../fixtures/network.ts'
import { createOrganisation, holdSecond } from '../fixtures/organisation.ts'
import { startDatabaseProxy } from '../fixtures/postgres.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const proxy = await startDatabaseProxy(url)
const { base } = await startTestService(proxy.url, { roles: ['api'] })
const { liveKey, domain } = await createOrganisation(sql)

/** Returns the number of messages with this subject. */
async function count(subject: string): Promise<number> {
  const rows = await sql`select from app.messages where subject = ${subject}`
  return rows.length
}

t.test(
  'POST /v1/emails: a send whose database connection broke after the commit is accepted once',
  async (t) => {
    for (const headers of [{}, { 'Idempotency-Key': 'lost' }]) {
      const subject = `lost ${JSON.stringify(headers)}`
      proxy.loseAnswerTo(subject.slice(0, 6))
      const response = await post(
        `${base}/v1/emails`,
        liveKey,
        anEmail(domain, { subject }),
        headers,
      )
      t.equal(response.status, 200)
      t.equal(await count(subject), 1)
    }
  },
)

t.test(
  'POST /v1/emails: our own repetition without an Idempotency-Key is not shown as a replay',
  async (t) => {
    proxy.loseAnswerTo('no replay')
    const email = anEmail(domain, { subject: 'no replay' })
    const response = await post(`${base}/v1/emails`, liveKey, email)
    t.equal(response.status, 200)
    t.equal(response.headers.get('idempotent-replayed'), null)
  },
)

t.test(
  'POST /v1/emails: a send that was accepted with its admission and then lost is accepted once',
  async (t) => {
    const organisation = await createOrganisation(sql)
    t.equal((await get(`${base}/v1/usage`, organisation.liveKey)).status, 200)
    await holdSecond(sql, organisation, 0)
    const subject = 'lost with its admission'
    proxy.loseAnswerTo(subject)
    const email = anEmail(organisation.domain, { subject })
    const response = await post(`${base}/v1/emails`, organisation.liveKey, email)
    t.equal(response.status, 200)
    t.equal(response.headers.get('idempotent-replayed'), null)
    t.equal(await count(subject), 1)
    t.ok(Number(response.headers.get('x-ratelimit-remaining')) >= 98, 'counted twice at most')
  },
)

t.test(
  'POST /v1/emails: a lost send that is not admitted again gets 500, which says that the outcome is unknown',
  async (t) => {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    t.equal((await get(`${base}/v1/usage`, liveKey)).status, 200)
    await holdSecond(sql, organisation, 99)
    // The admission has the hash of the key.
    proxy.loseAnswerTo(hash('sha256', liveKey))
    const response = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
    t.equal(response.status, 500)
    t.match(response.json.error.message, /it is unknown whether this request took effect/)
  },
)

t.test('POST /v1/domains: an addition whose database connection broke is made once', async (t) => {
  proxy.loseAnswerTo('_domainkey.found.example')
  const headers = { 'Idempotency-Key': 'a domain' }
  const response = await post(`${base}/v1/domains`, liveKey, { name: 'found.example' }, headers)
  t.equal(response.status, 201)
})

t.test(
  'DELETE /v1/suppressions: after a lost connection 500 says that the outcome is unknown',
  async (t) => {
    const { json } = await post(`${base}/v1/suppressions`, liveKey, { email: 'lost@b.example' })
    proxy.loseAnswerTo(json.id)
    const path = `${base}/v1/suppressions/${json.id}`
    const response = await request('DELETE', path, liveKey)
    t.equal(response.status, 500)
    t.match(response.json.error, {
      code: 'internal_error',
      message: /it is unknown whether.*not_found/,
    })
    t.equal((await request('DELETE', path, liveKey)).status, 404, 'the deletion was committed')
  },
)

t.test(
  'POST /v1/emails: a send that the database cancels gets 500 and is not stored',
  async (t) => {
    const subject = 'cancelled'
    const response = await sql.begin(async (tx) => {
      await tx`select from app.allowances for update`
      const response = post(`${base}/v1/emails`, liveKey, anEmail(domain, { subject }))
      // As statement_timeout cancels it after 8 s.
      await until('the accept to be cancelled', async () => {
        const [row] = await sql`
        select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%accept_emails%'`
        return row
      })
      return response
    })
    t.equal(response.status, 500)
    t.match(response.json.error.message, /nothing was sent/)
    t.equal(await count(subject), 0)
  },
)

t.test('renderErrors(): says that nothing was sent only where that is certain', async (t) => {
  const errors = {
    certain: new Unreachable('no'),
    cancelled: new TimedOut('late'),
    unknown: new OutcomeUnknown('lost'),
  }
  const app = new Koa()
  app.use(requestId)
  app.use(
    renderErrors({ log: pino({ level: 'silent' }), publicUrl: 'https://postgram.test' }).middleware,
  )
  app.use(async (ctx: Context, _: Next) => {
    throw errors[ctx.path.slice(1) as keyof typeof errors]
  })
  const server = createServer(app.callback())
  const { port } = await listen(server)
  const send = async (path: string, headers: Record<string, string> = {}) => {
    const {
      status,
      json,
      headers: given,
    } = await post(`http://127.0.0.1:${port}/${path}`, null, {}, headers)
    t.equal(status, 500)
    return { message: json.error.message as string, requestId: given.get('x-request-id') ?? '' }
  }
  t.match((await send('certain')).message, /nothing was sent/)
  t.match((await send('cancelled')).message, /nothing was sent/)
  const { message, requestId: id } = await send('unknown')
  t.match(message, /it is unknown whether this request took effect/)
  t.ok(message.includes(id), 'with the request id to look it up by')
  t.match((await send('unknown', { 'Idempotency-Key': 'k' })).message, /same Idempotency-Key/)
})
