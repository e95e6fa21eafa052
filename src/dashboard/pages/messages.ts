import type { Call } from '../../db/call.ts'
import type { Page, Resource } from '../page.ts'

/** Messages. */
export function messagesPage(_call: Call): Page {
  return {
    path: '/dashboard/:organisation/messages',
    show: async () => ({ title: 'Messages', content: null }),
  }
}

/** Files and streams of this page. */
export function messagesResources(_call: Call): Resource[] {
  return []
}
