import * as v from 'valibot'
import { type Form, parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, pathOf, type Visit } from '../page.ts'
import { field } from '../parts.ts'

/** In front of the names of fields with the values of variables. */
export const VARIABLE = 'variable.'

/** Who made a version and when, with what a list shows of it. */
export const changeEntries = {
  version: v.number(),
  name: v.string(),
  subject: v.string(),
  changedAt: v.string(),
  changedBy: v.nullable(v.string()),
}

/** What api.dashboard_template returns. */
export const templateSchema = v.object({
  id: v.string(),
  version: v.number(),
  shown: v.object({
    ...changeEntries,
    html: v.string(),
    text: v.string(),
    variables: v.array(v.string()),
  }),
  versions: v.array(v.object(changeEntries)),
  domains: v.array(v.string()),
})
export type Template = v.InferOutput<typeof templateSchema>

const MAX_VERSION = 2 ** 31 - 1

/** The number of a version in a form or a query. */
export const versionNumber = v.pipe(
  v.string(),
  v.regex(/^\d+$/, 'must be a number'),
  v.transform(Number),
  v.maxValue(MAX_VERSION, 'is not a version'),
)

/** All fields of the editor: each of its buttons sends all of them. */
const draftSchema = v.strictObject({
  version: v.optional(versionNumber),
  name: v.string('is required'),
  subject: v.string('is required'),
  html: v.optional(v.string(), ''),
  text: v.optional(v.string(), ''),
  from: v.optional(v.string(), ''),
  to: v.optional(v.string(), ''),
})

/** Returns what the editor has, without the values of variables. */
export function draftOf(form: Form) {
  const others = [...form].filter(([name]) => !name.startsWith(VARIABLE))
  return parseForm(draftSchema, new Map(others))
}

/** Returns the names of the variables for which the form has a value. */
export function variablesOf(form: Form): string[] {
  return [...form.keys()]
    .filter((name) => name.startsWith(VARIABLE))
    .map((name) => name.slice(VARIABLE.length))
}

/** The form of a template beside the frame with its preview. A new template is null. */
export function editor(visit: Visit, template: Template | null): Content {
  const { refused } = visit
  const path = pathOf(visit, `templates/${template?.id ?? 'new'}`)
  const names = [
    ...new Set([...(template?.shown.variables ?? []), ...variablesOf(refused?.form ?? new Map())]),
  ]
  const isMember = hasRole(visit, 'member')
  return html`<div class="editor">
    <form method="post" action=${`${path}/${template ? 'change' : 'create'}`} class="stack" data-preview="preview">
      ${template && html`<input type="hidden" name="version" value=${template.version} />`}
      ${field({ name: 'name', label: 'Name', refused, isRequired: true, value: template?.shown.name ?? '' })}
      ${field({ name: 'subject', label: 'Subject', refused, isRequired: true, value: template?.shown.subject ?? '' })}
      ${field({ name: 'html', label: 'HTML', refused, lines: 14, value: template?.shown.html ?? '' })}
      ${field({ name: 'text', label: 'Text', refused, lines: 8, value: template?.shown.text ?? '' })}
      <fieldset class="variables" data-variables>
        <legend>Values of the variables in the preview and in the test email</legend>
        ${names.map((name) => field({ name: VARIABLE + name, label: name, refused: valuesOf(refused, name), value: name }))}
      </fieldset>
      <div class="row">
        ${isMember && html`<button>Save</button>`}
        <button class="plain" formaction=${pathOf(visit, 'templates/preview')} formtarget="preview" formnovalidate data-preview-button>Preview</button>
      </div>
      ${isMember && template && testFields(visit, template, path)}
    </form>
    <iframe name="preview" title="Preview" sandbox="" src=${template ? `${path}/preview` : null} class="preview"></iframe>
  </div>`
}

/** Problems of a variable are named by the variable, not by its field. */
function valuesOf(refused: Visit['refused'], name: string): Visit['refused'] {
  if (!refused) return null
  const problems = refused.problems[`variables.${name}`]
  return { ...refused, problems: problems ? { [VARIABLE + name]: problems } : {} }
}

function testFields(visit: Visit, { domains }: Template, path: string): Content {
  const { refused, frame } = visit
  const [domain] = domains
  if (!domain) {
    return html`<h2>Send a test</h2>
      <p class="hint">A test email needs a verified domain. <a href=${pathOf(visit, 'domains')}>Add a domain</a></p>`
  }
  const hint = `At a verified domain: ${domains.slice(0, 5).join(', ')}${domains.length > 5 ? ' …' : ''}`
  return html`<h2>Send a test</h2>
    <p class="hint">It sends what the fields above have, saved or not. It is a live email and counts against the allowance.</p>
    ${field({ name: 'from', label: 'From', refused, hint, value: `test@${domain}` })}
    ${field({ name: 'to', label: 'To', refused, type: 'email', value: frame.email })}
    <button class="plain" formaction=${`${path}/test`}>Send test</button>`
}
