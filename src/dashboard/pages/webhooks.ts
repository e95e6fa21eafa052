import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, refusedIn, type Visit } from '../page.ts'
import { status, table } from '../parts.ts'
import { webhookPage } from './webhook.ts'
import { webhookEventPage } from './webhook-event.ts'
import {
  atMost,
  endpointSchema,
  MAX_WAITING,
  secretPage,
  settingsFields,
  settingsSchema,
  successOf,
  typesOf,
} from './webhook-parts.ts'

const createdSchema = v.object({ id: v.string(), secret: v.string() })

/** The list of webhook endpoints, an endpoint with its events, and an event with its attempts. */
export function webhookPages(call: Call): Page[] {
  const list: Page = {
    path: '/dashboard/:organisation/webhooks',

    async show(visit) {
      const { session, organisation } = visit
      const found = await call('dashboard_webhooks', { session, organisation })
      const endpoints = v.parse(v.array(endpointSchema), found)
      const isOwner = hasRole(visit, 'owner')
      const content = html`
        ${isOwner && createForm(visit)}
        ${table(
          'Webhook endpoints',
          endpoints,
          [
            {
              label: 'URL',
              cell: ({ id, url }) =>
                html`<a href=${pathOf(visit, `webhooks/${id}`)}><bdi>${url}</bdi></a>`,
            },
            { label: 'State', cell: ({ state }) => status(state) },
            { label: '24 h success', cell: successOf },
            {
              label: 'Waiting',
              cell: ({ waiting }) => atMost(waiting, MAX_WAITING),
              isNumber: true,
            },
            { label: 'Events', cell: ({ eventTypes }) => typesOf(eventTypes) },
            {
              label: 'Last error',
              cell: ({ lastError }) => lastError && html`<bdi>${lastError}</bdi>`,
            },
          ],
          html`<p>There is no webhook endpoint. Postgram posts events such as <code>email.delivered</code> to an endpoint of yours. ${isOwner ? 'Add one above.' : 'An owner adds one.'}</p>`,
        )}`
      return { title: 'Webhooks', content }
    },

    actions: {
      async create(visit, form) {
        const { session, organisation } = visit
        const { url, types } = parseForm(settingsSchema, form, ['types'])
        const made = await call('dashboard_create_webhook', {
          ...{ session, organisation, url, event_types: types },
        })
        const { id, secret } = v.parse(createdSchema, made)
        return secretPage(visit, id, 'The secret of your new endpoint', secret)
      },
    },
  }

  return [list, webhookEventPage(call), webhookPage(call)]
}

function createForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'create')
  return html`<details open=${refused !== null}>
    <summary>Add an endpoint</summary>
    <form method="post" action=${pathOf(visit, 'webhooks/create')} class="stack">
      ${settingsFields(refused, { url: '', eventTypes: enums.webhook_event_type })}
      <button>Add endpoint</button>
    </form>
  </details>`
}
