import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'

/** SMS. */
export function smsPage(_call: Call): Page {
  return {
    path: '/dashboard/:organisation/sms',
    show: async () => ({ title: 'SMS', content: null }),
  }
}
