import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, anSms } from '../fixtures/http.ts'
import { fuzz } from '../fixtures/load.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

/** Names that objects inherit, and names that the service adds to items for SQL. */
const SPECIAL = ['__proto__', 'constructor', 'call', 'index', 'error', 'is_sandbox']

t.test('POST /v1/emails: random bodies are accepted or refused, never 500', async (t) => {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  const { id, domain } = organisation
  const [row] = await sql`
    select ops.create_template(${id}, 'A', 'Hi {{name}}', '<p>{{name}}</p>', null) as template`
  const template = row?.template
  await fuzz(t, sql, base, organisation, {
    path: '/v1/emails',
    list: 'emails',
    prefix: 'em',
    good: [
      anEmail(domain),
      anEmail(domain, {
        html: '<p>a</p>',
        tags: ['a'],
        headers: { 'X-A': 'b' },
        cc: ['b@c.example'],
      }),
      {
        from: `a@${domain}`,
        to: ['a@c.example'],
        templateId: template,
        variables: { name: 'x' },
      },
    ],
    fields: [
      ...['from', 'to', 'cc', 'bcc', 'replyTo', 'subject', 'html', 'text', 'templateId'],
      ...['variables', 'headers', 'tags', 'class', 'attachments'],
      ...SPECIAL,
    ],
    nasty: [`"${template}"`],
    async written() {
      const [row] = await sql`
        select coalesce(sum(recipients), 0)::integer as used from app.messages where mode = 'live'`
      return { used: row?.used, events: 0, ledger: 0 }
    },
  })
})

t.test('POST /v1/sms: random bodies are accepted or refused, never 500', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 1_000_000 })
  await liftRate(sql, organisation)
  await sql`
    insert into app.senders (organisation_id, sender, approved_at)
    values (core.decode_id('org', ${organisation.id}), 'Acme', now())`
  const earlier = await traces(sql)
  await fuzz(t, sql, base, organisation, {
    path: '/v1/sms',
    list: 'messages',
    prefix: 'sm',
    good: [
      anSms(),
      anSms({ body: 'Grüße 💌', tags: ['a'], senderId: 'Acme' }),
      anSms({ class: 'marketing', body: 'ж'.repeat(200) }),
    ],
    fields: [
      ...['to', 'body', 'class', 'senderId', 'scheduledAt', 'tags', 'segments', 'mode'],
      ...SPECIAL,
    ],
    nasty: [`"${'x'.repeat(1530)}"`, `"${'x'.repeat(1531)}"`, `"${'€'.repeat(765)}"`],
    async written() {
      const [row] = await sql`
        select
          coalesce(sum(segments) filter (where mode = 'live'), 0)::integer as segments,
          count(*) filter (where mode = 'live')::integer as ledger,
          count(*) filter (where status = 'rejected')::integer as events
        from app.messages where channel = 'sms'`
      return { used: earlier.used + row?.segments, events: row?.events, ledger: row?.ledger }
    },
  })
})
