import { type Attack, type AttackRequest, anEmail, email } from '../attack.ts'

// Attacks by messages that are expensive to accept, render, store or send.

const UNVERIFIED_BATCHES = 60

export const unverifiedBatches: Attack = {
  name: 'unverified-batches',
  title: '60 batches of 1 000 emails to 150 recipients each, from an unverified domain',
  build({ attackers, repeat }) {
    const people = (list: string) => Array.from({ length: 50 }, (_, n) => `${list}${n}@a.example`)
    const one = {
      ...anEmail('unverified.example', people('to')),
      cc: people('cc'),
      bcc: people('bcc'),
    }
    const body = JSON.stringify({ emails: Array.from({ length: 1000 }, () => one) })
    const share = UNVERIFIED_BATCHES / attackers.length
    return () =>
      repeat(share, ({ key }) => ({ path: '/v1/emails/batch', key, body }), { count: share })
  },
}

export const storage: Attack = {
  name: 'storage',
  title: 'batches of 100 emails of 20 KB to the sandbox, 4 at a time',
  build({ attackers, repeat }) {
    // Random, so that the database cannot compress it.
    const text = Array.from({ length: 2000 }, () => Math.random().toString(36).slice(2, 12)).join(
      '',
    )
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const emails = Array.from({ length: 100 }, () => ({ ...anEmail(domain), text }))
        return [key, JSON.stringify({ emails })]
      }),
    )
    return () =>
      repeat(4, ({ key }) => ({ path: '/v1/emails/batch', key, body: bodies.get(key) ?? '' }))
  },
}

const PLACEHOLDERS = Array.from({ length: 200 }, (_, n) => `name${n}`)

export const template: Attack = {
  name: 'template',
  title: 'emails of a template with 200 placeholders, 10 000 characters for each, 20 at a time',
  async prepare(sql, organisation) {
    const html = PLACEHOLDERS.map((name) => `{{${name}}}`).join(' ')
    const [row] = await sql<{ id: string }[]>`
      select ops.create_template(${organisation}, 'large', 'Hello', ${html}, null) as id`
    return row ? [row.id] : []
  },
  build({ attackers, repeat }) {
    const variables = Object.fromEntries(PLACEHOLDERS.map((name) => [name, 'x'.repeat(10_000)]))
    const requests = new Map(
      attackers.map((attacker) => [
        attacker,
        email(attacker, {
          from: `hello@${attacker.domain}`,
          to: 'delivered@sandbox.postgram.test',
          templateId: attacker.ids[0],
          variables,
        }),
      ]),
    )
    return () => repeat(20, (attacker) => requests.get(attacker) as AttackRequest)
  },
}

export const slowSandbox: Attack = {
  name: 'slow-sandbox',
  title: 'batches of 1 000 emails to slow@ in the sandbox, 2 at a time',
  build({ attackers, repeat }) {
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const one = anEmail(domain, 'slow@sandbox.postgram.test')
        return [key, JSON.stringify({ emails: Array.from({ length: 1000 }, () => one) })]
      }),
    )
    return () =>
      repeat(2, ({ key }) => ({ path: '/v1/emails/batch', key, body: bodies.get(key) ?? '' }), {
        count: 20,
      })
  },
}

const LARGE_EMAILS = 400

export const largeEmails: Attack = {
  name: 'large-emails',
  title: '400 emails of 3 MB to slow@ in the sandbox, 8 at a time',
  build({ attackers, repeat }) {
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const one = anEmail(domain, 'slow@sandbox.postgram.test')
        return [
          key,
          JSON.stringify({ ...one, html: 'a'.repeat(2_000_000), text: 'a'.repeat(1_000_000) }),
        ]
      }),
    )
    return () =>
      repeat(8, ({ key }) => ({ path: '/v1/emails', key, body: bodies.get(key) ?? '' }), {
        count: LARGE_EMAILS / attackers.length,
      })
  },
}
