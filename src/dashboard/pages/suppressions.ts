import type { Call } from '../../db/call.ts'
import type { Page, Resource } from '../page.ts'

/** Suppressions. */
export function suppressionPages(_call: Call): Page[] {
  return [
    {
      path: '/dashboard/:organisation/suppressions',
      show: async () => ({ title: 'Suppressions', content: null }),
    },
  ]
}

/** Files and streams of this page. */
export function suppressionResources(_call: Call): Resource[] {
  return []
}
