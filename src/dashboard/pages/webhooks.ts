import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'

/** Webhooks. */
export function webhookPages(_call: Call): Page[] {
  return [
    {
      path: '/dashboard/:organisation/webhooks',
      show: async () => ({ title: 'Webhooks', content: null }),
    },
  ]
}
