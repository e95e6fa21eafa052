import { gzipSync } from 'node:zlib'
import { type Attack, anEmail } from '../attack.ts'

export const gzipSingles: Attack = {
  name: 'gzip-singles',
  title: 'emails of 3 KB that unpack to 3 MB each, 100 at a time',
  aim({ attackers, flood }) {
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const content = {
          ...anEmail(domain),
          html: 'a'.repeat(2_000_000),
          text: 'a'.repeat(1_000_000),
        }
        return [key, gzipSync(JSON.stringify(content))]
      }),
    )
    return () =>
      flood(100, ({ key }) => ({
        path: '/v1/emails',
        key,
        body: bodies.get(key) ?? '',
        headers: { 'content-encoding': 'gzip' },
      }))
  },
}
