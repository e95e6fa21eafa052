import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'

/** The pages of operators. */
export function operatorPages(_call: Call): Page[] {
  return [{ path: '/operator', show: async () => ({ title: 'Now', content: null }) }]
}
