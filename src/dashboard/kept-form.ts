import type { Form } from './form.ts'
import { html } from './html.ts'
import type { View } from './page.ts'
import { shortened } from './parts.ts'

/**
 * Returns the page after a form that arrived without a session, or with a sign-in that is too old for it. The page has
 * what was typed, never in a URL, so that the user can send it again after a sign-in in another tab. The form is null
 * if it was too large to be kept.
 */
export function keptForm(path: string, form: Form | null, reason: string): View {
  const fields = [...(form ?? [])]
  const content = html`
    <p>${reason} Nothing was changed. ${form ? 'This page keeps what you typed.' : 'The form was too large to be kept: fill it in again after the sign-in.'}</p>
    <p><a class="button" href="/login?again" target="_blank">Sign in in a new tab</a></p>
    ${
      form &&
      html`<p>Open the link of the email in this browser. Then come back to this page:</p>
        <form method="post" action=${path} enctype="multipart/form-data" class="stack">
          <dl class="facts">${fields.map(
            ([name, values]) =>
              values.join('') !== '' &&
              html`<div><dt>${name}</dt><dd><bdi>${shortened(values.join(', '))}</bdi></dd></div>`,
          )}</dl>
          ${fields.flatMap(([name, values]) => values.map((value) => html`<input type="hidden" name=${name} value=${value} />`))}
          <button>Send the form again</button>
        </form>`
    }`
  return { title: 'Sign in again', content }
}
