import { Refusal } from '../errors.ts'
import { html } from './html.ts'
import { layout } from './layout.ts'
import type { Frame } from './page.ts'

/** What a user reads when the service is at fault. */
export const FAILED =
  'The service failed, and the failure was logged. Try again; if it fails again, tell the operator.'

const TITLES: Record<number, string> = {
  403: 'You may not do this',
  404: 'Not found',
  429: 'Too many requests',
}

/** Returns the HTML document that says why a request was refused. `frame` is null before the sign-in. */
export function errorPage(refusal: Refusal, frame: Frame | null, path: string): string {
  const title =
    TITLES[refusal.status] ?? (refusal.status < 500 ? 'This is not possible' : 'Something failed')
  const problem = refusal.fields?._?.join('; ')
  const message = refusal.status < 500 ? (problem ?? refusal.message) : FAILED
  const content = html`<p>${message}</p><p><a href="/dashboard">To the dashboard</a></p>`
  return layout({ title, content, frame, path })
}

/** Refuses a path that has no page, or one that the user may not see. */
export function notFound(): never {
  throw new Refusal('not_found', null, {
    message: 'This page does not exist, or you may not see it.',
  })
}
