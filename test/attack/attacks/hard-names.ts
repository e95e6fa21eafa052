import { type Attack, anEmail } from '../attack.ts'

/** Of quoted and plain words, so that no short cut of the parser fits. */
export const hardName = (n: number) => `${'"a" b '.repeat(15)}${n} <a${n}@b.example>`

export const hardNames: Attack = {
  name: 'hard-names',
  title: 'batches of 17 MB that are names of quoted and plain words, one at a time',
  aim({ attackers, flood }) {
    const names = (from: number) => Array.from({ length: 50 }, (_, n) => hardName(from + n))
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const one = { ...anEmail(domain, names(0)), cc: names(50), bcc: names(100) }
        return [key, JSON.stringify({ emails: Array.from({ length: 1000 }, () => one) })]
      }),
    )
    return () =>
      flood(1, ({ key }) => ({ path: '/v1/emails/batch', key, body: bodies.get(key) ?? '' }))
  },
}
