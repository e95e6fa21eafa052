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
  const values = [...(form ?? [])].flatMap(([name, sent]) => sent.map((value) => ({ name, value })))
  const content = html`
    <p>${reason} Nothing was changed. ${form ? 'This page keeps what you typed.' : 'The form was too large to be kept: fill it in again after the sign-in.'}</p>
    <p><a class="button" href="/login?again" target="_blank">Sign in in a new tab</a></p>
    ${
      form &&
      html`<p>Open the link of the email in this browser. Then come back to this page:</p>
        <form method="post" action=${path} enctype="multipart/form-data">
          ${values.map(({ name, value }) => html`<input type="hidden" name=${name} value=${value} />`)}
          <button>Send the form again</button>
        </form>
        <dl class="facts">${values
          .filter(({ value }) => value !== '')
          .map(
            ({ name, value }) =>
              html`<div><dt>${name}</dt><dd><bdi>${shortened(value)}</bdi></dd></div>`,
          )}</dl>`
    }`
  return { title: 'Sign in again', content }
}
