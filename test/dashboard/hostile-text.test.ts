import t from 'tap'
import { routes, signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { send, sendSms } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { createEndpoint, recordEvents } from '../fixtures/webhooks.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const SCRIPT = '<script>alert(1)</script>'
/** Ends attributes and elements, and reverses what follows on the line. */
const HOSTILE = `"'></textarea></title>${SCRIPT}\u202e\u05d0`

t.test('text that people write runs on no page and breaks none', async (t) => {
  const organisation = await createOrganisation(sql, { name: HOSTILE })
  const { id, domain } = organisation
  const email = 'owner@hostile.example'
  const owner = await signInAs(sql, base, { organisation: id, role: 'owner', email })
  await sql`select ops.make_operator(${email})`
  const [template] = await sql<{ id: string }[]>`
    select ops.create_template(${id}, ${HOSTILE}, ${HOSTILE}, ${HOSTILE}, ${HOSTILE}) as id`
  await sql`select ops.grant_credits(${id}, 100, ${HOSTILE})`
  await sql`select ops.record_consent(${id}, '+27821234567', ${HOSTILE})`
  await sql`select ops.withdraw_consent(${id}, '+27821234567')`
  const endpoint = await createEndpoint(sql, organisation)
  await sql`select ops.disable_webhook_endpoint(${endpoint.id}, ${HOSTILE})`
  const [event = ''] = await recordEvents(sql, organisation, 'email.sent', [new Date()])
  const message = await send(base, organisation, {
    to: 'jane@example.org',
    from: `"${HOSTILE.replace('"', '')}" <hello@${domain}>`,
    subject: HOSTILE,
    html: `<p>${HOSTILE}</p>`,
    text: HOSTILE,
    tags: [HOSTILE.slice(0, 40)],
  })
  await sendSms(base, organisation, { body: HOSTILE })
  const note = { email: 'jane@example.org', note: HOSTILE }
  await owner.post(`/dashboard/${id}/suppressions/add`, note)
  await sql`
    update app.messages set created_at = created_at - interval '2 minutes', error_code = 'provider_rejected',
      error_message = ${HOSTILE}`
  await sql`select ops.pause(${id}, ${HOSTILE})`

  const ids: Record<string, string> = {
    templates: template?.id ?? '',
    messages: message,
    webhooks: endpoint.id,
    organisations: id,
  }
  for (const { path } of routes().pages) {
    const [, noun = ''] = /\/(\w+)\/(?:events\/)?:id/.exec(path) ?? []
    const oneId = path.includes('/events/:id') ? event : (ids[noun] ?? '')
    const target = path.replace(':organisation', id).replace(':id', oneId)
    const { status, html } = await owner.get(target)
    t.equal(status, 200, path)
    t.notMatch(html, SCRIPT, path)
    t.match(html, /<\/main>[\s\S]*<\/body>\s*<\/html>\s*$/, `${path} is whole`)
  }
})
