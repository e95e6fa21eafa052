import type { Attack } from '../attack.ts'

export const manyKeys: Attack = {
  name: 'many-keys',
  title: 'bodies with 2 million keys that mean nothing, 4 at a time',
  aim({ flood }) {
    const keys = Array.from({ length: 2_000_000 }, (_, n) => `"${n.toString(36)}":1`)
    const body = Buffer.from(`{${keys.join()}}`)
    return () => flood(4, ({ key }) => ({ path: '/v1/emails/batch', key, body }))
  },
}
