import { type Attack, anEmail, email } from '../attack.ts'
import { hardName } from './hard-names.ts'

export const unusualNames: Attack = {
  name: 'unusual-names',
  title: 'emails to 150 people with unusual names, 50 at a time',
  aim({ flood }) {
    const names = (from: number) => Array.from({ length: 50 }, (_, n) => hardName(from + n))
    const lists = { cc: names(50), bcc: names(100) }
    return () =>
      flood(50, (attacker) => email(attacker, { ...anEmail(attacker.domain, names(0)), ...lists }))
  },
}
