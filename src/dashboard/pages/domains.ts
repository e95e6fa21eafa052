import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'

/** Domains. */
export function domainPages(_call: Call): Page[] {
  return [
    {
      path: '/dashboard/:organisation/domains',
      show: async () => ({ title: 'Domains', content: null }),
    },
  ]
}
