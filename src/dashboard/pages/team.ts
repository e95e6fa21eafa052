import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'

/** Team. */
export function teamPage(_call: Call): Page {
  return {
    path: '/dashboard/:organisation/team',
    show: async () => ({ title: 'Team', content: null }),
  }
}
