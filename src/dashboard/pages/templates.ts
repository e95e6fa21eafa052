import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'

/** Templates. */
export function templatePages(_call: Call): Page[] {
  return [
    {
      path: '/dashboard/:organisation/templates',
      show: async () => ({ title: 'Templates', content: null }),
    },
  ]
}
