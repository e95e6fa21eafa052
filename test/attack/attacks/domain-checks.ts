import type { Attack } from '../attack.ts'

export const domainChecks: Attack = {
  name: 'domain-checks',
  title: 'checks of its domain, for which the provider is asked, as fast as they are taken',
  hasSlowProvider: true,
  async prepare(sql, organisation) {
    const rows = await sql<{ id: string }[]>`
      select core.encode_id('dom', id) as id from app.domains
      where organisation_id = core.organisation_id(${organisation})`
    return rows.map(({ id }) => id)
  },
  aim({ flood }) {
    return () =>
      flood(50, ({ key, ids }) => ({ path: `/v1/domains/${ids[0]}/verify`, key, body: '{}' }))
  },
}
