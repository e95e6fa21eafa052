import type { Call } from '../../db/call.ts'
import type { Page, Resource } from '../page.ts'

/** Message. */
export function messagePage(_call: Call): Page {
  return {
    path: '/dashboard/:organisation/messages/:id',
    show: async () => ({ title: 'Message', content: null }),
  }
}

/** Files and streams of this page. */
export function messageResources(_call: Call): Resource[] {
  return []
}
