import t from 'tap'
import { type Occasion, writeNotice } from '../../src/notifications/notices.ts'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

const createdAt = new Date('2026-11-20T09:05:30Z')
const write = (kind: Occasion['kind'], detail: unknown) =>
  writeNotice({ kind, detail, createdAt, organisationName: 'Acme' }, 'https://postgram.test')

const records = ['CNAME pg1._domainkey.acme.example: missing', 'MX mail.acme.example: mismatch']

t.test('org_paused: figures, effect and what to do', (t) => {
  const { subject, text } = write('org_paused', { complaints: 3, sent: 1234 })
  t.equal(subject, 'Sending is paused: too many recipients complained')
  t.match(text, 'Sending for Acme has been paused since 2026-11-20 09:05 UTC')
  t.match(text, 'Complaints within 24 hours: 3\nEmails sent within 24 hours: 1234\n')
  t.match(text, '423 org_paused')
  t.match(text, '\nhttps://postgram.test/docs/errors#org_paused\n')
  t.end()
})

t.test('sign_in: has the link, and until when it works', (t) => {
  const { subject, text } = write('sign_in', { token: 'secret' })
  t.equal(subject, 'Sign in to Postgram')
  t.match(text, '\nhttps://postgram.test/login/secret\n')
  t.match(text, 'It works once, until 2026-11-20 09:20 UTC.')
  t.end()
})

t.test('invited: names the inviter, the organisation and the role', (t) => {
  const { subject, text } = write('invited', { role: 'viewer', invitedBy: 'ann@acme.example' })
  t.equal(subject, 'ann@acme.example invites you to Acme on Postgram')
  t.match(text, 'the role viewer')
  t.match(text, '\nhttps://postgram.test/login\n')
  t.end()
})

t.test('domain_failed: names the records', (t) => {
  const { subject, text } = write('domain_failed', { domain: 'acme.example', records })
  t.equal(subject, 'acme.example can no longer send: its DNS records are gone')
  t.match(text, 'Acme can no longer send from acme.example.')
  t.match(
    text,
    '\n  CNAME pg1._domainkey.acme.example: missing\n  MX mail.acme.example: mismatch\n',
  )
  t.match(text, '\nhttps://postgram.test/docs/errors#domain_not_verified\n')
  t.end()
})

t.test('domain_not_found: names the missing records', (t) => {
  const { subject, text } = write('domain_not_found', { domain: 'acme.example', records })
  t.equal(subject, 'acme.example is not verified: its DNS records were not found')
  t.match(
    text,
    '\n  CNAME pg1._domainkey.acme.example: missing\n  MX mail.acme.example: mismatch\n',
  )
  t.match(text, 'POST /v1/domains/{id}/verify')
  const unconfirmed = write('domain_not_found', { domain: 'acme.example', records: [] })
  t.match(unconfirmed.text, '\n  none: DNS has all records, but')
  t.end()
})

const endpoint = {
  endpoint: 'we_01',
  url: 'https://hooks.acme.example/postgram',
  failingSince: '2026-11-17T09:04:59.123Z',
  lastError: 'responded 500',
}

t.test('webhook_failing: has the result of the last attempt', (t) => {
  const { subject, text } = write('webhook_failing', endpoint)
  t.equal(subject, 'A webhook endpoint has been failing for a day')
  t.match(
    text,
    'No event of Acme could be delivered to https://hooks.acme.example/postgram (we_01) since 2026-11-17 09:04 UTC.',
  )
  t.match(text, '\n\nResult of the last attempt: responded 500\n')
  t.match(text, 'within 10 seconds')
  t.match(text, '\nhttps://postgram.test/docs/webhooks#retries\n')
  t.end()
})

t.test('webhook_disabled: explains what happens to its events', (t) => {
  const { subject, text } = write('webhook_disabled', { ...endpoint, lastError: null })
  t.equal(subject, 'A webhook endpoint was disabled: it failed for three days')
  t.match(text, 'https://hooks.acme.example/postgram (we_01) since 2026-11-17 09:04 UTC')
  t.match(text, 'Result of the last attempt: no response')
  t.match(text, 'stored for 30 days')
  t.match(text, '\nhttps://postgram.test/docs/webhooks#disabled-endpoints\n')
  t.end()
})

t.test('writeNotice(): has a text for every kind, and refuses malformed details', async (t) => {
  const kinds = await sql<{ kind: Occasion['kind'] }[]>`
    select unnest(enum_range(null::app.notice_kind)) as kind`
  t.equal(kinds.length, 7)
  const detail = {
    ...{ ...endpoint, complaints: 1, sent: 1, domain: 'acme.example', records: [] },
    ...{ token: 'secret', role: 'member', invitedBy: 'owner@acme.example' },
  }
  for (const { kind } of kinds) {
    t.match(write(kind, detail), {
      subject: /^.{10,100}$/,
      text: /(Acme|Postgram|postgram).*\n$/s,
    })
    t.throws(() => write(kind, {}), { name: 'ValiError' })
  }
})
