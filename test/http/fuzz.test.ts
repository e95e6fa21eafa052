import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { fuzz } from '../fixtures/fuzz.ts'
import { anEmail, anSms } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { liftRate } from '../fixtures/rate.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

/** What objects inherit, and what items get on their way to SQL. */
const SPECIAL = ['__proto__', 'constructor', 'call', 'index', 'error', 'is_rehearsal']

t.test('emails of any kind are accepted or refused, never at fault', async (t) => {
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
    async used() {
      const [recipients] = await sql`
        select coalesce(sum(recipients), 0)::integer as used from app.messages
        where mode = 'live' and channel = 'email'`
      return recipients?.used
    },
  })
})

t.test('SMS of any kind are accepted or refused, never at fault', async (t) => {
  const organisation = await createOrganisation(sql, { smsIncluded: 1_000_000 })
  await liftRate(sql, organisation)
  await sql`
    insert into app.senders (organisation_id, sender, approved_at)
    values (core.decode_id('org', ${organisation.id}), 'Acme', now())`
  const [earlier] = await sql`
    select coalesce(sum(emails_used), 0)::integer as used from app.allowances`
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
    async used() {
      const [segments] = await sql`
        select coalesce(sum(segments), 0)::integer as used from app.messages
        where mode = 'live' and channel = 'sms'`
      return earlier?.used + segments?.used
    },
  })
  const [ledger] = await sql`
    select count(*)::integer as rows from app.credit_ledger where kind = 'sms'`
  const [live] = await sql`
    select count(*)::integer as rows from app.messages where mode = 'live' and channel = 'sms'`
  t.equal(ledger?.rows, live?.rows)
})
