import type { Attack } from '../attack.ts'

export const refusals: Attack = {
  name: 'refusals',
  title: 'bodies that are no email, as fast as they are refused, 50 at a time',
  aim({ flood }) {
    return () => flood(50, ({ key }) => ({ path: '/v1/emails', key, body: '{}' }))
  },
}
