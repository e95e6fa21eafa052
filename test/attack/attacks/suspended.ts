import { type Attack, anEmail, email } from '../attack.ts'

export const suspended: Attack = {
  name: 'suspended',
  title: 'a suspended organisation sends as fast as it is refused, 50 at a time',
  async prepare(sql, organisation) {
    await sql`select ops.suspend(${organisation}, 'unpaid')`
    return []
  },
  aim({ flood }) {
    return () => flood(50, (attacker) => email(attacker, anEmail(attacker.domain)))
  },
}
