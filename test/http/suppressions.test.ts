import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, isRefused, post } from '../fixtures/http.ts'
import {
  createOrganisation,
  type Reason,
  suppress,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

t.test('each suppression reason blocks what the API reference says', async (t) => {
  const blocks: Record<Reason, string[]> = {
    manual: ['transactional', 'marketing'],
    complaint: ['transactional', 'marketing'],
    hard_bounce: ['transactional', 'marketing'],
    unsubscribe: ['marketing'],
  }
  for (const [reason, blocked] of Object.entries(blocks)) {
    const organisation = await createOrganisation(sql)
    const { liveKey, domain } = organisation
    await suppress(sql, organisation, 'ann@c.example', reason as Reason)
    for (const emailClass of ['transactional', 'marketing', undefined]) {
      const body = anEmail(domain, { to: 'ann@c.example', class: emailClass })
      const response = await post(`${base}/v1/emails`, liveKey, body)
      const name = `${reason} and ${emailClass ?? 'no class'}`
      if (blocked.includes(emailClass ?? 'transactional')) {
        const fields = { to: [`ann@c.example: ${reason}`] }
        isRefused(t, response, 'recipient_suppressed', fields, { name })
      } else t.equal(response.status, 200, name)
    }
  }
})

t.test('a hard bounce blocks every organisation, another entry only its own', async (t) => {
  const one = await createOrganisation(sql)
  const two = await createOrganisation(sql)
  await sql`select ops.suppress_globally('gone@c.example', 'no such mailbox')`
  await suppress(sql, one, 'bob@c.example', 'manual')
  const send = ({ liveKey, domain }: TestOrganisation, to: string) =>
    post(`${base}/v1/emails`, liveKey, anEmail(domain, { to }))
  for (const organisation of [one, two]) {
    isRefused(t, await send(organisation, 'gone@c.example'), 'recipient_suppressed', {
      to: ['gone@c.example: hard_bounce'],
    })
  }
  isRefused(t, await send(one, 'bob@c.example'), 'recipient_suppressed', {
    to: ['bob@c.example: manual'],
  })
  t.equal((await send(two, 'bob@c.example')).status, 200)

  await sql`select ops.unsuppress_globally('gone@c.example')`
  t.equal((await send(two, 'gone@c.example')).status, 200, 'the removal takes effect at once')
})

t.test('a global entry together with an own unsubscribe blocks transactional email', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  await suppress(sql, organisation, 'both@c.example', 'unsubscribe')
  await sql`select ops.suppress_globally('both@c.example')`
  const response = await post(
    `${base}/v1/emails`,
    liveKey,
    anEmail(domain, { to: 'both@c.example' }),
  )
  isRefused(t, response, 'recipient_suppressed', { to: ['both@c.example: hard_bounce'] })
})

t.test('the refusal names each suppressed address of to, cc and bcc once, in order', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  await suppress(sql, organisation, 'ann@c.example', 'manual')
  await suppress(sql, organisation, 'bob@c.example', 'complaint')
  await suppress(sql, organisation, 'cat@xn--bcher-kva.example', 'manual')
  await sql`select ops.suppress_globally('dan@c.example')`
  await suppress(sql, organisation, 'news@c.example', 'unsubscribe')
  const before = await traces(sql)
  const recipients = {
    to: ['fine@c.example', 'Dan <DAN@C.example>', 'news@c.example'],
    cc: ['"Cat" <cat@BÜCHER.example>', 'ANN@c.example'],
    bcc: ['bob@c.example', 'ann@c.example', 'also.fine@c.example'],
  }
  const response = await post(`${base}/v1/emails`, liveKey, anEmail(domain, recipients))
  isRefused(t, response, 'recipient_suppressed', {
    to: [
      'ann@c.example: manual',
      'bob@c.example: complaint',
      'cat@xn--bcher-kva.example: manual',
      'dan@c.example: hard_bounce',
    ],
  })
  t.strictSame(await traces(sql), before, 'nothing is stored, also not for the other recipients')
})

t.test('an address that only resembles a suppressed one is accepted', async (t) => {
  const organisation = await createOrganisation(sql)
  const { liveKey, domain } = organisation
  await suppress(sql, organisation, 'ann@c.example', 'manual')
  for (const to of [
    'ann+news@c.example',
    'an_@c.example',
    'ann@sub.c.example',
    'ann@c.example.org',
  ]) {
    t.equal((await post(`${base}/v1/emails`, liveKey, anEmail(domain, { to }))).status, 200, to)
  }
})
