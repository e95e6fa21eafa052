import { randomBytes } from 'node:crypto'
import { type Attack, anEmail } from '../attack.ts'

export const inventedKeys: Attack = {
  name: 'invented-keys',
  title: 'emails with a new key each that does not exist, 1 000 at a time',
  isKeyless: true,
  aim({ flood }) {
    const body = JSON.stringify(anEmail('a.example'))
    const invent = () => `sk_live_${randomBytes(16).toString('hex')}`
    return () => flood(1000, () => ({ path: '/v1/emails', key: invent(), body }))
  },
}
