import { randomBytes } from 'node:crypto'
import { type Attack, anEmail, email } from '../attack.ts'

// Attacks by many requests, and by requests that are expensive for the database or the provider.

export const refusals: Attack = {
  name: 'refusals',
  title: 'invalid emails, 50 at a time',
  build({ repeat }) {
    return () => repeat(50, ({ key }) => ({ path: '/v1/emails', key, body: '{}' }))
  },
}

export const suspended: Attack = {
  name: 'suspended',
  title: 'emails of a suspended organisation, 50 at a time',
  async prepare(sql, organisation) {
    await sql`select ops.suspend(${organisation}, 'unpaid')`
    return []
  },
  build({ repeat }) {
    return () => repeat(50, (attacker) => email(attacker, anEmail(attacker.domain)))
  },
}

export const inventedKeys: Attack = {
  name: 'invented-keys',
  title: 'emails with a different unknown key each, 1 000 at a time',
  isKeyless: true,
  build({ repeat }) {
    const body = JSON.stringify(anEmail('a.example'))
    const invent = () => `sk_live_${randomBytes(16).toString('hex')}`
    return () => repeat(1000, () => ({ path: '/v1/emails', key: invent(), body }))
  },
}

const SUPPRESSIONS = 400_000

export const suppressionSearch: Attack = {
  name: 'suppression-search',
  title: 'searches of 400 000 suppressions by two letters that match nothing, 50 at a time',
  async prepare(sql, organisation, share) {
    await sql`
      insert into app.suppressions (organisation_id, id, email, reason)
      select core.organisation_id(${organisation}), core.new_id(core.now()), 'user' || n || '@a.example', 'manual'
      from generate_series(1, ${SUPPRESSIONS / share}::integer) n`
    return []
  },
  build({ repeat }) {
    return () =>
      repeat(50, ({ key }) => ({ method: 'GET', path: '/v1/suppressions?email=zq', key }))
  },
}

export const suppressionDeletes: Attack = {
  name: 'suppression-deletes',
  title: 'deletions of suppressions, which are forwarded to the provider, 20 at a time',
  hasSlowProvider: true,
  async prepare(sql, organisation) {
    const rows = await sql<{ id: string }[]>`
      insert into app.suppressions (organisation_id, id, email, reason)
      select core.organisation_id(${organisation}), core.new_id(core.now()), 'user' || n || '@a.example', 'complaint'
      from generate_series(1, 1500) n
      returning core.encode_id('sup', id) as id`
    return rows.map(({ id }) => id)
  },
  build({ repeat }) {
    return () =>
      repeat(
        20,
        ({ key, ids }, n) => ({ method: 'DELETE', path: `/v1/suppressions/${ids[n]}`, key }),
        { count: 1500 },
      )
  },
}

export const domainChecks: Attack = {
  name: 'domain-checks',
  title: 'checks of a domain, which call the provider, 50 at a time',
  hasSlowProvider: true,
  async prepare(sql, organisation) {
    const rows = await sql<{ id: string }[]>`
      select core.encode_id('dom', id) as id from app.domains
      where organisation_id = core.organisation_id(${organisation})`
    return rows.map(({ id }) => id)
  },
  build({ repeat }) {
    return () =>
      repeat(50, ({ key, ids }) => ({ path: `/v1/domains/${ids[0]}/verify`, key, body: '{}' }))
  },
}
