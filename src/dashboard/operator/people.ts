import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import { parseForm } from '../form.ts'
import { html } from '../html.ts'
import { type Page, refusedIn } from '../page.ts'
import { count, field, table, time } from '../parts.ts'
import { nullableTimestamp, timestamp } from './rows.ts'

const recordsSchema = v.array(
  v.object({
    kind: v.string(),
    organisation: v.nullable(v.string()),
    id: v.nullable(v.string()),
    at: nullableTimestamp,
    data: v.unknown(),
  }),
)

const erasuresSchema = v.array(
  v.object({
    person: v.nullable(v.string()),
    requested_by: v.string(),
    requested_at: timestamp,
    error: v.nullable(v.string()),
    finished_at: nullableTimestamp,
    rows: v.nullable(v.number()),
  }),
)

type Erasure = v.InferOutput<typeof erasuresSchema>[number]

const exportSchema = v.strictObject({ person: v.string() })
const eraseSchema = v.strictObject({ person: v.string(), again: v.string() })

/** What is stored about a person, and its erasure. */
export function peoplePage(call: Call): Page {
  return {
    path: '/operator/people',
    async show(visit) {
      const { session } = visit
      const erasures = v.parse(erasuresSchema, await call('dashboard_erasures', { session }))
      const person = (action: string) => {
        const refused = refusedIn(visit, action)
        const label = 'Email address, or number in E.164'
        return field({ name: 'person', action, label, refused, isRequired: true })
      }
      const content = html`
        <h2>Export</h2>
        <form method="post" action="/operator/people/export" class="stack">
          ${person('export')}
          <button>Export</button>
        </form>
        <h2>Erase</h2>
        <p>
          Erasing removes the person from messages, events, suppressions, consents and notes of all organisations.${' '}
          It cannot be undone. That nothing may be sent to the person is kept as a hash. The clock erases within a minute of the request; this takes some 5 s for each million messages.
        </p>
        <form method="post" action="/operator/people/erase" class="stack">
          ${person('erase')}
          ${field({ name: 'again', label: 'The same again', refused: refusedIn(visit, 'erase'), isRequired: true })}
          <button class="danger">Erase</button>
        </form>
        ${table(
          'Requested erasures',
          erasures,
          [
            { label: 'Person', cell: ({ person }) => person ?? '(erased)' },
            { label: 'Requested', cell: (row) => time(row.requested_at) },
            { label: 'By', cell: (row) => row.requested_by },
            { label: 'Finished', cell: (row) => time(row.finished_at) },
            { label: 'Result', cell: resultOf },
          ],
          'No erasure was requested here.',
        )}`
      return { title: 'People', content }
    },

    actions: {
      async export({ session }, form) {
        const { person } = parseForm(exportSchema, form)
        const records = v.parse(
          recordsSchema,
          await call('dashboard_export_person', { session, person }),
        )
        const content = html`
          <p>${count(records.length)} records of ${person}. <a href="/operator/people">Back</a></p>
          ${table(
            'Records',
            records,
            [
              { label: 'Kind', cell: ({ kind }) => kind },
              { label: 'Organisation', cell: ({ organisation }) => organisation },
              { label: 'ID', cell: ({ id }) => id },
              { label: 'Time', cell: ({ at }) => time(at) },
              {
                label: 'Record',
                cell: ({ data }) => html`<pre>${JSON.stringify(data, null, 1)}</pre>`,
              },
            ],
            'Nothing is stored about this person.',
          )}`
        return { title: 'Export of a person', content }
      },

      async erase({ session }, form) {
        const { person, again } = parseForm(eraseSchema, form)
        if (person.toLowerCase() !== again.toLowerCase()) {
          throw new Refusal('validation_error', { again: ['is not the same'] })
        }
        await call('dashboard_erase_person', { session, person })
        return { to: '/operator/people', notice: 'The erasure is requested.' }
      },
    },
  }
}

function resultOf({ rows, error }: Erasure): string {
  if (rows !== null) return `erased from ${count(rows)} rows`
  return error === null ? 'waits for the clock' : `tried again: ${error}`
}
