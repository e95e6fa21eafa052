import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'

/** Home. */
export function homePage(_call: Call): Page {
  return { path: '/dashboard/:organisation', show: async () => ({ title: 'Home', content: null }) }
}
