import { type Attack, anEmail } from '../attack.ts'

const EMAILS = 400

export const largeEmails: Attack = {
  name: 'large-emails',
  title: '400 emails of 3 MB to slow@ in the sandbox, 8 at a time',
  aim({ attackers, flood }) {
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
      flood(8, ({ key }) => ({ path: '/v1/emails', key, body: bodies.get(key) ?? '' }), {
        count: EMAILS / attackers.length,
      })
  },
}
