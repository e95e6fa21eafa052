import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { html } from '../html.ts'
import type { Page } from '../page.ts'
import { count, field, nextLink, pageOf, status, table, time } from '../parts.ts'
import { organisationRow } from './rows.ts'

const createSchema = v.strictObject({ name: v.string(), owner_email: v.string(), plan: v.string() })

/** All organisations, newest first, found by name, owner or ID. */
export function organisationsPage(call: Call): Page {
  return {
    path: '/operator/organisations',
    async show({ session, query, refused }) {
      const { q = '', after = '' } = query
      const rows = v.parse(
        v.array(organisationRow),
        await call('dashboard_organisations', { session, search: q, after }),
      )
      const { page, last } = pageOf(rows)
      const content = html`
        <form method="get" action="/operator/organisations" class="row" role="search">
          ${field({ name: 'q', label: 'Name, owner or ID', type: 'search', value: q, refused: null })}
          <button>Search</button>
        </form>
        <details open=${refused !== null}>
          <summary>Create an organisation</summary>
          <form method="post" action="/operator/organisations/create" class="stack">
            ${field({ name: 'name', label: 'Name', refused, isRequired: true })}
            ${field({ name: 'owner_email', label: 'Address of its owner', type: 'email', refused, isRequired: true })}
            ${field({ name: 'plan', label: 'Plan', refused, value: 'starter', isRequired: true })}
            <button>Create organisation</button>
          </form>
        </details>
        ${table(
          'Organisations',
          page,
          [
            {
              label: 'Name',
              cell: ({ id, name }) => html`<a href=${`/operator/organisations/${id}`}>${name}</a>`,
            },
            { label: 'Owner', cell: ({ owner_email }) => owner_email },
            { label: 'State', cell: ({ state }) => status(state) },
            { label: 'Plan', cell: ({ plan }) => plan },
            {
              label: 'Emails',
              isNumber: true,
              cell: (row) => `${count(row.emails_used)} of ${count(row.emails_included)}`,
            },
            {
              label: 'SMS',
              isNumber: true,
              cell: (row) => `${count(row.sms_used)} of ${count(row.sms_included)}`,
            },
            { label: 'Credits', isNumber: true, cell: ({ sms_credits }) => count(sms_credits) },
            {
              label: 'Waiting',
              isNumber: true,
              cell: ({ messages_waiting }) => count(messages_waiting),
            },
            { label: 'Created', cell: ({ created_at }) => time(created_at) },
          ],
          q
            ? 'No organisation matches the search.'
            : 'There is no organisation. Create the first above.',
        )}
        ${nextLink(last && `/operator/organisations?${new URLSearchParams({ q, after: last.id })}`)}`
      return { title: 'Organisations', content }
    },

    actions: {
      async create({ session }, form) {
        const values = parseForm(createSchema, form)
        const id = await call('dashboard_create_organisation', { session, ...values })
        return { to: `/operator/organisations/${id}`, notice: 'The organisation is created.' }
      },
    },
  }
}
