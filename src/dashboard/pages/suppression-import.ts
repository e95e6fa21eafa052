import type { Call } from '../../db/call.ts'
import type { Form } from '../form.ts'
import { type Content, html } from '../html.ts'
import { type Outcome, pathOf, refusedIn, type Visit } from '../page.ts'
import { count, csvFileField, field, table } from '../parts.ts'
import {
  type BadLine,
  type ListEntry,
  MAX_LINES,
  slicesOf,
  suppressionListOf,
} from './suppression-list.ts'

const MAX_SHOWN_BAD_LINES = 100

/** The reasons that members give. */
export const REASONS = [
  { value: 'manual', label: 'manual: no email at all' },
  { value: 'unsubscribe', label: 'unsubscribe: no marketing email' },
]

/** The action that imports a list of addresses in slices. It shows the progress, then a report. */
export function importAction(call: Call) {
  return async (visit: Visit, form: Form): Promise<Outcome> => {
    const { session, organisation } = visit
    const { reason, list } = suppressionListOf(form)
    const result: Imported = { given: 0, added: 0, refusedLines: 0, bad: [] }
    const slices = slicesOf(list, (line) => {
      result.refusedLines += 1
      if (result.bad.length < MAX_SHOWN_BAD_LINES) result.bad.push(line)
    })
    const store = async (entries: readonly ListEntry[]) => {
      result.given += entries.length
      result.added += await call('dashboard_add_suppressions', {
        session,
        organisation,
        reason,
        emails: entries.map(({ email }) => email),
        notes: entries.map(({ note }) => note),
      })
    }
    // The first slice, even an empty one, is refused before the page begins.
    await store(slices.next().value ?? [])
    let slice = slices.next()
    const title = 'Import of addresses'
    if (slice.done) return { title, content: report(visit, result) }
    return { title, content: null, pieces: pieces() }

    async function* pieces() {
      for (; !slice.done; slice = slices.next()) {
        yield html`<p class="progress">${count(result.given)} addresses</p>`
        await store(slice.value)
      }
      yield report(visit, result)
    }
  }
}

/** The form of the import. */
export function importForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'import')
  return html`<details open=${refused !== null}>
    <summary>Import a list</summary>
    <form method="post" action=${pathOf(visit, 'suppressions/import')} enctype="multipart/form-data" class="stack">
      ${field({
        name: 'list',
        label: 'Addresses',
        refused,
        lines: 8,
        hint: html`One address on each line, or CSV whose first line is <code>email,note</code>; at most ${count(MAX_LINES)} lines.`,
      })}
      ${csvFileField()}
      ${field({ name: 'listReason', label: 'Reason', refused, options: REASONS })}
      <button>Import list</button>
    </form>
  </details>`
}

type Imported = { given: number; added: number; refusedLines: number; bad: BadLine[] }

function report(visit: Visit, { given, added, refusedLines, bad }: Imported): Content {
  return html`
    <div role="status"><ul>
      <li>${count(added)} added</li>
      <li>${count(given - added)} in the list already, or given twice</li>
      <li>${count(refusedLines)} not imported${refusedLines > 0 && ', because the line is wrong'}</li>
    </ul></div>
    ${
      bad.length > 0 &&
      html`<h2>${refusedLines > bad.length ? `The first ${bad.length} wrong lines` : 'Wrong lines'}</h2>
      ${table(
        'Wrong lines',
        bad,
        [
          { label: 'Line', cell: ({ line }) => String(line), isNumber: true },
          { label: 'Text', cell: ({ text }) => html`<code>${text}</code>` },
          { label: 'Problem', cell: ({ problem }) => problem },
        ],
        null,
      )}`
    }
    <p><a href=${pathOf(visit, 'suppressions')}>To the suppressions</a></p>`
}
