import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { html } from '../html.ts'
import type { Page } from '../page.ts'
import { actionButton, nextLink, pageOf, status, table, time } from '../parts.ts'
import { linkTo, nullableTimestamp, timestamp } from './rows.ts'

const domainSchema = v.object({
  name: v.string(),
  organisation: v.string(),
  status: v.string(),
  since: timestamp,
  fails_at: timestamp,
  not_found: v.array(v.string()),
  last_checked_at: nullableTimestamp,
})

const endpointSchema = v.object({
  id: v.string(),
  organisation: v.string(),
  url: v.string(),
  state: v.string(),
  failing_since: nullableTimestamp,
  last_error: v.nullable(v.string()),
  disables_at: nullableTimestamp,
  missed: v.number(),
})

/** api.dashboard_risks counts one more. */
const MOST_MISSED = 100

const nameSchema = v.strictObject({ name: v.string() })
const endpointForm = v.strictObject({ endpoint: v.string(), replay: v.optional(v.string()) })

/** Domains that fail soon unless their records are corrected. */
export function domainsPage(call: Call): Page {
  return {
    path: '/operator/domains',
    async show({ session }) {
      const rows = v.parse(
        v.array(domainSchema),
        await call('dashboard_risks', { session, report: 'domains' }),
      )
      const content = table(
        'Domains at risk',
        rows,
        [
          { label: 'Domain', cell: ({ name }) => name },
          { label: 'Organisation', cell: ({ organisation }) => linkTo(organisation) },
          { label: 'Status', cell: (row) => status(row.status) },
          { label: 'Not found', cell: ({ not_found }) => not_found.join(', ') },
          { label: 'Since', cell: ({ since }) => time(since) },
          { label: 'Fails', cell: ({ fails_at }) => time(fails_at) },
          { label: 'Last check', cell: ({ last_checked_at }) => time(last_checked_at, 'never') },
          {
            label: '',
            cell: (row) =>
              row.status !== 'verified' &&
              actionButton('/operator/domains/release', 'Release', { name: row.name }, 'danger'),
          },
        ],
        'No domain is pending or has wrong records.',
      )
      return { title: 'Domains at risk', content }
    },
    actions: {
      async release({ session }, form) {
        const { name } = parseForm(nameSchema, form)
        await call('dashboard_release_domain', { session, name })
        return { to: '/operator/domains', notice: `${name} is released.` }
      },
    },
  }
}

/** Webhook endpoints that fail or are disabled. */
export function endpointsPage(call: Call): Page {
  return {
    path: '/operator/endpoints',
    async show({ session, query }) {
      const rows = v.parse(
        v.array(endpointSchema),
        await call('dashboard_risks', { session, report: 'endpoints', after: query.after ?? '' }),
      )
      const { page, last } = pageOf(rows)
      const list = table(
        'Endpoints failing',
        page,
        [
          { label: 'URL', cell: ({ url }) => url },
          { label: 'Organisation', cell: ({ organisation }) => linkTo(organisation) },
          { label: 'State', cell: ({ state }) => status(state) },
          { label: 'Failing since', cell: ({ failing_since }) => time(failing_since) },
          { label: 'Last error', cell: ({ last_error }) => last_error },
          {
            label: 'Missed events',
            isNumber: true,
            cell: ({ missed }) => (missed > MOST_MISSED ? `more than ${MOST_MISSED}` : missed),
          },
          {
            label: 'Disabled',
            cell: ({ disables_at, state }) => (state === 'disabled' ? 'now' : time(disables_at)),
          },
          {
            label: '',
            cell: ({ id, state }) =>
              state === 'disabled' &&
              html`${actionButton('/operator/endpoints/enable', 'Enable', { endpoint: id })}${' '}
                ${actionButton('/operator/endpoints/enable', 'Enable and replay', { endpoint: id, replay: 'yes' })}`,
          },
        ],
        'No endpoint fails.',
      )
      const content = html`${list}
        ${nextLink(last && `/operator/endpoints?after=${last.id}`, 'More endpoints')}`
      return { title: 'Endpoints failing', content }
    },
    actions: {
      async enable({ session }, form) {
        const { endpoint, replay } = parseForm(endpointForm, form)
        await call('dashboard_enable_endpoint', { session, endpoint, replay: replay === 'yes' })
        return { to: '/operator/endpoints', notice: 'The endpoint is enabled.' }
      },
    },
  }
}
