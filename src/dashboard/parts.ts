/** Parts of pages that several pages show. */
import { type Refused, textOf } from './form.ts'
import { type Content, html } from './html.ts'

/** A time in UTC; script shows it in the reader's zone, with UTC in the title. */
export function time(iso: string | null, none = '–'): Content {
  if (iso === null) return none
  const utc = `${iso.slice(0, 10)} ${iso.slice(11, 16)}`
  return html`<time datetime=${iso} title=${`${utc}:${iso.slice(17, 19)} UTC`}>${utc}</time>`
}

/** The colour of a status: good, bad, busy (it will change by itself) or plain. */
const TONES: Record<string, string> = {
  delivered: 'good',
  verified: 'good',
  active: 'good',
  enabled: 'good',
  ok: 'good',
  sent: 'busy',
  queued: 'busy',
  scheduled: 'busy',
  pending: 'busy',
  deferred: 'busy',
  paused: 'bad',
  suspended: 'bad',
  bounced: 'bad',
  complained: 'bad',
  failed: 'bad',
  expired: 'bad',
  rejected: 'bad',
  missing: 'bad',
  mismatch: 'bad',
  disabled: 'bad',
  failing: 'bad',
}

/** A status as a word with a colour. */
export function status(name: string): Content {
  return html`<span class=${`status ${TONES[name] ?? 'plain'}`}>${name}</span>`
}

/** A number with thin spaces between thousands: 12 345. */
export function count(value: number): string {
  return value.toLocaleString('en-GB').replaceAll(',', '\u202f')
}

type Column<Row> = {
  label: string
  cell(row: Row): Content
  /** A number, aligned to the right. */
  isNumber?: boolean
}

/**
 * A table of rows, which is a list of cards on a phone. `empty` replaces a table without rows: it says what to
 * do next.
 */
export function table<Row>(
  label: string,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  empty: Content,
): Content {
  if (rows.length === 0) return html`<div class="empty">${empty}</div>`
  return html`<div class="table-frame">
    <table aria-label=${label}>
      <thead><tr>${columns.map(({ label, isNumber }) =>
        // A column of buttons needs no header, and an empty header would be read out.
        label === ''
          ? html`<td></td>`
          : html`<th scope="col" class=${isNumber ? 'number' : null}>${label}</th>`,
      )}</tr></thead>
      <tbody>${rows.map(
        (row) =>
          html`<tr>${columns.map(
            ({ label, cell, isNumber }) =>
              html`<td data-label=${label} class=${isNumber ? 'number' : null}><div>${cell(row)}</div></td>`,
          )}</tr>`,
      )}</tbody>
    </table>
  </div>`
}

type FieldOptions = {
  name: string
  /** The action of its form; absent unless another form of the page has a field of this name. */
  action?: string
  label: string
  refused: Refused | null
  hint?: Content
  type?: 'text' | 'email' | 'url' | 'number' | 'search' | 'tel' | 'date' | 'datetime-local'
  value?: string
  isRequired?: boolean
  maxLength?: number
  /** Lines of a text area; absent: one line. */
  lines?: number
  /** The choices of a select; absent: a text. */
  options?: readonly { value: string; label: string }[]
  autocomplete?: string
}

/** The choices of a select whose labels are its values. */
export const optionsOf = (values: readonly string[]) =>
  values.map((value) => ({ value, label: value }))

/** A labelled field. After a refusal it shows what was typed, with its problems beside it. */
export function field(options: FieldOptions): Content {
  const { name, label, refused, hint, type = 'text', lines, isRequired = false } = options
  const problems = refused?.problems[name] ?? []
  const value = refused?.form.has(name) ? textOf(refused.form, name) : (options.value ?? '')
  const id = options.action ? `field-${options.action}-${name}` : `field-${name}`
  const describedBy = [hint && `${id}-hint`, problems.length > 0 && `${id}-problem`].filter(Boolean)
  const common = {
    id,
    name,
    required: isRequired,
    maxlength: options.maxLength,
    'aria-invalid': problems.length > 0 ? 'true' : null,
    'aria-describedby': describedBy.join(' ') || null,
  }
  const control = options.options
    ? html`<select ...${common}>${options.options.map(
        (option) =>
          html`<option value=${option.value} selected=${option.value === value}>${option.label}</option>`,
      )}</select>`
    : lines
      ? html`<textarea ...${common} rows=${lines}>${value}</textarea>`
      : html`<input ...${common} type=${type} value=${value} autocomplete=${options.autocomplete ?? 'off'} />`
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${control}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    ${problems.length > 0 && html`<p class="problem" id=${`${id}-problem`}>${problems.join('; ')}</p>`}
  </div>`
}

/** Check boxes of one name. */
export function choices(options: {
  name: string
  legend: string
  values: readonly string[]
  chosen: readonly string[]
  refused: Refused | null
}): Content {
  const { name, legend, values, refused } = options
  const chosen = refused ? (refused.form.get(name) ?? []) : options.chosen
  const problems = refused?.problems[name] ?? []
  return html`<fieldset class="choices">
    <legend>${legend}</legend>
    ${values.map(
      (value) =>
        html`<label><input type="checkbox" name=${name} value=${value} checked=${chosen.includes(value)} /> ${value}</label>`,
    )}
    ${problems.length > 0 && html`<p class="problem">${problems.join('; ')}</p>`}
  </fieldset>`
}

/** The field `file` of an import. */
export function csvFileField(): Content {
  return html`<div class="field">
    <label for="field-file">Or a CSV file</label>
    <input type="file" id="field-file" name="file" accept=".csv,.txt,text/csv,text/plain" />
  </div>`
}

/** A form of one button, which posts hidden fields to an action. */
export function actionButton(
  action: string,
  label: string,
  fields: Readonly<Record<string, string>> = {},
  kind: 'plain' | 'danger' = 'plain',
): Content {
  return html`<form method="post" action=${action} class="inline">
    ${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name=${name} value=${value} />`)}
    <button class=${kind}>${label}</button>
  </form>`
}

/** The beginning of a text that could fill the page, such as 50 recipients. */
export function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 79).toWellFormed()}…` : text
}

/** A text that script can copy; without script it can be selected. */
export function copyable(text: string): Content {
  return html`<code class="copyable" data-copy>${text}</code>`
}

/** Rows that a page shows of a list, as core.page_rows returns them. Functions of api return at most one more. */
export const PAGE_ROWS = 50

/** Returns the page of rows of which at least one more was read, and its last row if there is a next page. */
export function pageOf<Row>(
  rows: readonly Row[],
  size = PAGE_ROWS,
): { page: readonly Row[]; last: Row | null } {
  const page = rows.slice(0, size)
  return { page, last: rows.length > size ? (page.at(-1) ?? null) : null }
}

/** The ID of a row, such as of the audit, in the path of an older page. */
export const ROW_ID = /^\d{1,18}$/

/** Links to the next page of a list; null on the last one. */
export function nextLink(href: string | null, label = 'Older'): Content {
  return href && html`<p class="pager"><a rel="next" href=${href}>${label}</a></p>`
}
