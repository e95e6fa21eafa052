import type { Attack } from '../attack.ts'

export const suppressionDeletes: Attack = {
  name: 'suppression-deletes',
  title: 'deletes suppressions, which the provider hears of, as fast as they are taken',
  hasSlowProvider: true,
  async prepare(sql, organisation) {
    const rows = await sql<{ id: string }[]>`
      insert into app.suppressions (organisation_id, id, email, reason)
      select core.organisation_id(${organisation}), core.new_id(core.now()), 'user' || n || '@a.example', 'complaint'
      from generate_series(1, 1500) n
      returning core.encode_id('sup', id) as id`
    return rows.map(({ id }) => id)
  },
  aim({ flood }) {
    return () =>
      flood(
        20,
        ({ key, ids }, n) => ({ method: 'DELETE', path: `/v1/suppressions/${ids[n]}`, key }),
        { count: 1500 },
      )
  },
}
