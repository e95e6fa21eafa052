import { type Attack, anEmail } from '../attack.ts'

export const storage: Attack = {
  name: 'storage',
  title: 'batches of 100 emails of 20 KB to the sandbox, 4 at a time',
  aim({ attackers, flood }) {
    // Random, so that the database cannot make it small.
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
      flood(4, ({ key }) => ({ path: '/v1/emails/batch', key, body: bodies.get(key) ?? '' }))
  },
}
