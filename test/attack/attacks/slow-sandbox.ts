import { type Attack, anEmail } from '../attack.ts'

export const slowSandbox: Attack = {
  name: 'slow-sandbox',
  title: 'batches of 1 000 emails to slow@ in the sandbox, 2 at a time',
  aim({ attackers, flood }) {
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const one = anEmail(domain, 'slow@sandbox.postgram.test')
        return [key, JSON.stringify({ emails: Array.from({ length: 1000 }, () => one) })]
      }),
    )
    return () =>
      flood(2, ({ key }) => ({ path: '/v1/emails/batch', key, body: bodies.get(key) ?? '' }), {
        count: 20,
      })
  },
}
