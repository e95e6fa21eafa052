import { type Attack, anEmail } from '../attack.ts'

export const unreadBodies: Attack = {
  name: 'unread-bodies',
  title: 'batches of 5 MB with a key that does not exist, 50 at a time',
  isKeyless: true,
  aim({ flood }) {
    const emails = Array.from({ length: 5 }, () => ({
      ...anEmail('a.example'),
      text: 'a'.repeat(1_000_000),
    }))
    const body = Buffer.from(JSON.stringify({ emails }))
    const key = `sk_live_${'a'.repeat(32)}`
    return () => flood(50, () => ({ path: '/v1/emails/batch', key, body }))
  },
}
