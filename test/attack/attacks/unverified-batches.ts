import { type Attack, anEmail } from '../attack.ts'

const BATCHES = 60

export const unverifiedBatches: Attack = {
  name: 'unverified-batches',
  title: '60 batches of 1 000 emails to 150 recipients each, from a domain that is not verified',
  aim({ attackers, flood }) {
    const people = (list: string) => Array.from({ length: 50 }, (_, n) => `${list}${n}@a.example`)
    const one = {
      ...anEmail('unverified.example', people('to')),
      cc: people('cc'),
      bcc: people('bcc'),
    }
    const body = JSON.stringify({ emails: Array.from({ length: 1000 }, () => one) })
    const share = BATCHES / attackers.length
    return () =>
      flood(share, ({ key }) => ({ path: '/v1/emails/batch', key, body }), { count: share })
  },
}
