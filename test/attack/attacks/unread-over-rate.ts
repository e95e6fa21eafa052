import { type Attack, anEmail } from '../attack.ts'

export const unreadOverRate: Attack = {
  name: 'unread-over-rate',
  title: 'batches of 5 MB far over the rate limit, 150 at a time',
  aim({ attackers, flood }) {
    const emails = Array.from({ length: 5 }, () => ({
      ...anEmail('unverified.example'),
      text: 'a'.repeat(1_000_000),
    }))
    const body = Buffer.from(JSON.stringify({ emails }))
    return () =>
      flood(150 / attackers.length, ({ key }) => ({ path: '/v1/emails/batch', key, body }))
  },
}
