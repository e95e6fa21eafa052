import type { Attack } from '../attack.ts'

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
  aim({ flood }) {
    return () => flood(50, ({ key }) => ({ method: 'GET', path: '/v1/suppressions?email=zq', key }))
  },
}
