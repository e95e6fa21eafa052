import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'

/** Usage. */
export function usagePage(_call: Call): Page {
  return {
    path: '/dashboard/:organisation/usage',
    show: async () => ({ title: 'Usage', content: null }),
  }
}
