import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, get, post, request } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { links } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'
import { startReceiver } from '../fixtures/webhooks.ts'

const SECRET = Buffer.alloc(32, 7).toString('base64')

/** Data of callers and recipients; each word names the place where it is used. */
const words = {
  body: 'inthebody',
  subject: 'inthesubject',
  name: 'inthename',
  local: 'inthelocalpart',
  tag: 'inthetag',
  header: 'intheheader',
  idempotency: 'intheidempotencykey',
  path: 'inthepath',
  query: 'inthequery',
  agent: 'intheagent',
  broken: 'inthebrokenjson',
  phone: '27820001234',
  wrongKey: 'f00dfeedf00dfeedf00dfeedf00dfeed',
  hook: 'inthehookspath',
  answer: 'inthehooksanswer',
}

type Line = Record<string, unknown> & { msg: string }

for (const level of ['info', 'debug']) {
  t.test(
    `at level ${level} the log has requests and message IDs, and no data of callers`,
    async (t) => {
      const { url, sql } = await createDatabase()
      const { id, liveKey, testKey, domain } = await createOrganisation(sql, { smsIncluded: 1000 })
      const receiver = await startReceiver((response) => response.writeHead(500).end(words.answer))
      const { base, output, end } = await spawnService(url, 'all', {
        LOG_LEVEL: level,
        SECRET_KEY: SECRET,
        WEBHOOK_ALLOW_PRIVATE: 'true',
        METRICS_PORT: '0',
      })
      const [endpoint] = await sql<{ secret: string }[]>`
      select secret from ops.create_webhook_endpoint(
        ${id}, ${`${receiver.url}/${words.hook}`}, array['email.sent', 'email.failed'])`
      const to = (kind: string) => `${kind}+${words.local}@sandbox.postgram.test`
      const email = (recipient: string) =>
        anEmail(domain, {
          to: `"${words.name}" <${recipient}>`,
          subject: words.subject,
          text: words.body,
          tags: [words.tag],
          headers: { 'X-Word': words.header },
        })
      const headers = { 'Idempotency-Key': words.idempotency, 'User-Agent': words.agent }

      const sent = await post(`${base}/v1/emails`, liveKey, email(to('delivered')), headers)
      t.equal(sent.status, 200)
      const rejected = await post(`${base}/v1/emails`, liveKey, email(to('reject')))
      const emails = [email(to('bounce')), email(to('complaint')), email('no address')]
      const batch = await post(`${base}/v1/emails/batch`, liveKey, { emails })
      t.equal(batch.status, 200)
      const sms = await post(
        `${base}/v1/sms`,
        liveKey,
        anSms({ to: `+${words.phone}`, body: words.body }),
      )
      t.equal(sms.status, 200)
      const wrongKey = `sk_live_${words.wrongKey}`
      const strangers = await Promise.all([
        post(`${base}/v1/emails`, wrongKey, email(to('delivered'))),
        get(`${base}/${words.path}@example.com?email=${words.query}@example.com`, null),
        get(`${base}/u/${words.path}`, null),
      ])
      const refused = await Promise.all([
        post(`${base}/v1/emails`, liveKey, { ...email(to('delivered')), [words.body]: 1 }),
        post(`${base}/v1/emails`, liveKey, email(to('slow')), headers),
        post(`${base}/v1/emails`, liveKey, `{"to": "${words.broken}@example.com`),
        get(`${base}/v1/emails/${words.path}@example.com`, liveKey),
        get(`${base}/v1/suppressions?limit=x&email=${words.query}@example.com`, liveKey),
      ])
      for (const { status } of [...refused, ...strangers])
        t.ok(status >= 400 && status < 500, String(status))
      const [ids] = await sql<{ organisation: string; message: string }[]>`
      select core.decode_id('org', ${id}) as organisation, core.decode_id('em', ${sent.json.id}) as message`
      const link = links.url({
        organisationId: String(ids?.organisation),
        messageId: String(ids?.message),
        email: to('delivered'),
      })
      await request('POST', `${base}${new URL(link).pathname}`, null)
      // Faults of the service.
      await sql`alter function api.get_message rename to get_message_away`
      const failed = await get(`${base}/v1/emails/${words.path}@example.com`, liveKey)
      t.equal(failed.status, 500)
      await sql`alter function api.get_message_away rename to get_message`
      await sql`alter function api.unsubscribe rename to unsubscribe_away`
      t.equal((await request('POST', `${base}${new URL(link).pathname}`, null)).status, 500)

      await until('all attempts', async () => {
        const waiting = await sql`select from ops.messages where status in ('queued') limit 1`
        return waiting.length === 0
      })
      t.equal(await end('SIGTERM'), 0)

      const text = output()
      const lines: Line[] = text
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line))
      const faults = lines.filter(
        ({ level, msg }) => (level === 'error' || level === 'fatal') && msg !== 'request failed',
      )
      t.same(faults, [], 'no errors except those of the failed requests')
      const requestId = (answer: { headers: Headers }) => answer.headers.get('x-request-id')
      const lineOf = (answer: { headers: Headers }, msg: string) =>
        lines.find((line) => line.msg === msg && line.requestId === requestId(answer))
      for (const answer of refused) t.ok(lineOf(answer, 'request'), `${answer.status} has a line`)
      // Requests without a valid key must not fill the log.
      for (const answer of strangers) {
        t.equal(
          Boolean(lineOf(answer, 'request')),
          level === 'debug',
          `${answer.status} of a stranger`,
        )
      }
      t.match(lineOf(failed, 'request'), {
        level: 'info',
        method: 'GET',
        route: '/v1/emails/:id',
        status: 500,
        organisation: id,
        durationMs: Number,
      })
      t.match(lineOf(failed, 'request failed'), {
        level: 'error',
        route: '/v1/emails/:id',
        err: { code: '42883' },
      })
      t.match(
        lines.find(
          ({ msg, message }) => msg === 'message attempted' && message === rejected.json.id,
        ),
        { level: 'info', provider: 'sandbox', outcome: 'failed' },
      )
      if (level === 'debug') {
        t.match(lineOf(sent, 'request'), {
          level: 'debug',
          status: 200,
          organisation: id,
          message: sent.json.id,
        })
        t.match(lineOf(batch, 'request'), { message: batch.json.results[0].data.id, messages: 2 })
        t.match(lineOf(sms, 'request'), { route: '/v1/sms', message: sms.json.id })
        t.ok(
          lines.some(({ msg, message }) => msg === 'message attempted' && message === sent.json.id),
        )
      } else {
        t.notOk(lineOf(sent, 'request'), 'a successful request is not logged')
      }

      const secrets = {
        ...words,
        liveKey: liveKey.slice(8),
        testKey: testKey.slice(8),
        // The test server may have no password.
        ...(new URL(url).password && { password: new URL(url).password }),
        secretKey: SECRET,
        signingSecret: endpoint?.secret.replace(/^\w+_/, '') ?? '',
        link: new URL(link).pathname.slice(3),
        domain,
      }
      for (const [where, secret] of Object.entries(secrets)) {
        t.ok(secret.length >= 8, where)
        t.notOk(text.includes(secret), where)
      }
      t.notMatch(text, /@(?!\d)[a-z0-9-]+\.[a-z]/i, 'no address of any kind')
    },
  )
}
