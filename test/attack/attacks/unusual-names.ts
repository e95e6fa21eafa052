import { type Attack, anEmail, email, type Shot } from '../attack.ts'
import { hardName } from './hard-names.ts'

export const unusualNames: Attack = {
  name: 'unusual-names',
  title: 'emails to 150 people with unusual names, 50 at a time',
  aim({ attackers, flood }) {
    const names = (from: number) => Array.from({ length: 50 }, (_, n) => hardName(from + n))
    const lists = { cc: names(50), bcc: names(100) }
    const shots = new Map(
      attackers.map((attacker) => [
        attacker,
        email(attacker, { ...anEmail(attacker.domain, names(0)), ...lists }),
      ]),
    )
    return () => flood(50, (attacker) => shots.get(attacker) as Shot)
  },
}
