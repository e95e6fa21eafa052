import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, refusedIn, type Visit } from '../page.ts'
import {
  actionButton,
  choices,
  copyable,
  count,
  field,
  nextLink,
  pageOf,
  status,
  table,
  time,
} from '../parts.ts'
import { webhookEventPage } from './webhook-event.ts'

const EVENT_TYPES = [
  'email.sent',
  'email.delivered',
  'email.bounced',
  'email.complained',
  'email.failed',
  'sms.sent',
  'sms.delivered',
  'sms.failed',
  'sms.opted_out',
] as const

/** The largest number of waiting deliveries that a list counts, and that the progress of a replay counts. */
const MAX_WAITING = 1000
const MAX_LEFT = 10_000

const endpointSchema = v.object({
  id: v.string(),
  url: v.string(),
  eventTypes: v.array(v.string()),
  state: v.picklist(['enabled', 'failing', 'disabled']),
  failingSince: v.nullable(v.string()),
  lastError: v.nullable(v.string()),
  disabledAt: v.nullable(v.string()),
  disabledReason: v.nullable(v.string()),
  oldSecretUntil: v.nullable(v.string()),
  createdAt: v.string(),
  waiting: v.number(),
  attempts: v.number(),
  succeeded: v.number(),
})
type Endpoint = v.InferOutput<typeof endpointSchema>

const pageSchema = v.object({
  endpoint: endpointSchema,
  events: v.array(
    v.object({
      id: v.string(),
      type: v.nullable(v.string()),
      occurredAt: v.nullable(v.string()),
      state: v.string(),
      dueAt: v.nullable(v.string()),
      attempt: v.nullable(v.number()),
      attemptedAt: v.nullable(v.string()),
      status: v.nullable(v.number()),
      error: v.nullable(v.string()),
    }),
  ),
  left: v.nullable(v.object({ deliveries: v.number(), failed: v.number() })),
})

const createdSchema = v.object({ id: v.string(), secret: v.string() })

const url = v.pipe(v.string('is required'), v.minLength(1, 'is required'))
const eventType = v.picklist(EVENT_TYPES, 'must be types of the list')
const settingsSchema = v.strictObject({ url, types: v.array(eventType) })
const disableSchema = v.strictObject({ reason: v.pipe(v.string(), v.minLength(1, 'is required')) })
const testSchema = v.strictObject({ type: eventType })

/** What the browser's field for a time sends, and a time in a query. Earlier years have no IDs. */
const utcMinute = v.pipe(
  v.string('is required'),
  v.regex(/^20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/, 'must be a time such as 2026-01-31T09:30'),
  v.transform((text) => new Date(`${text}Z`)),
  v.check((at) => !Number.isNaN(at.getTime()), 'must be a time such as 2026-01-31T09:30'),
)
const replaySchema = v.strictObject({
  since: utcMinute,
  until: utcMinute,
  only_missed: v.optional(v.literal('yes')),
})
const progressSchema = v.object({
  since: utcMinute,
  until: utcMinute,
  replayed: v.pipe(v.string(), v.regex(/^\d{1,9}$/), v.transform(Number)),
})

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

  const one: Page = {
    path: '/dashboard/:organisation/webhooks/:id',

    async show(visit) {
      const { session, organisation, id, query } = visit
      const { before } = query
      const replay = v.safeParse(progressSchema, query)
      const { endpoint, events, left } = v.parse(
        pageSchema,
        await call('dashboard_webhook', {
          ...{ session, organisation, endpoint: id },
          ...(before && { before }),
          ...(replay.success && { since: replay.output.since, until: replay.output.until }),
        }),
      )
      const { page, last } = pageOf(events)
      const path = pathOf(visit, `webhooks/${id}`)
      const content = html`
        ${factsOf(endpoint)}
        ${replay.success && left && progress(visit, replay.output.replayed, left)}
        ${hasRole(visit, 'member') && forms(visit, endpoint)}
        <h2>Events</h2>
        ${table(
          'Events',
          page,
          [
            {
              label: 'Event',
              cell: (event) =>
                html`<a href=${pathOf(visit, `webhooks/events/${event.id}`)}>${event.type ?? 'deleted'}</a>`,
            },
            { label: 'Occurred', cell: ({ occurredAt }) => time(occurredAt) },
            { label: 'Delivery', cell: ({ state }) => status(state) },
            { label: 'Last attempt', cell: ({ attemptedAt }) => time(attemptedAt, 'none yet') },
            { label: 'Response', cell: ({ status, error }) => html`${status} <bdi>${error}</bdi>` },
            { label: 'Next attempt', cell: ({ dueAt }) => time(dueAt) },
          ],
          html`<p>No event was posted to this endpoint yet. Send a test event to see one.</p>`,
        )}
        ${nextLink(last && `${path}?before=${last.id}`)}`
      return { title: 'Webhook endpoint', content }
    },

    actions: {
      async change(visit, form) {
        const { session, organisation, id: endpoint } = visit
        const { url, types } = parseForm(settingsSchema, form, ['types'])
        await call('dashboard_change_webhook', {
          ...{ session, organisation, endpoint, url, event_types: types },
        })
        return { to: pathOf(visit, `webhooks/${endpoint}`), notice: 'The endpoint is changed.' }
      },

      async rotate(visit) {
        const { session, organisation, id: endpoint } = visit
        const secret = await call('dashboard_rotate_secret', { session, organisation, endpoint })
        const note = 'For 24 hours events are signed with the old secret as well.'
        return secretPage(visit, endpoint, 'The new secret of your endpoint', secret, note)
      },

      async enable(visit) {
        const { session, organisation, id: endpoint } = visit
        const missed = await call('dashboard_enable_webhook', { session, organisation, endpoint })
        const notice =
          missed === 0
            ? 'The endpoint is enabled. It missed no event.'
            : `The endpoint is enabled. It missed ${count(missed)} of its events in the last 30 days; replay them below.`
        return { to: pathOf(visit, `webhooks/${endpoint}`), notice }
      },

      async disable(visit, form) {
        const { session, organisation, id: endpoint } = visit
        const { reason } = parseForm(disableSchema, form)
        await call('dashboard_disable_webhook', { session, organisation, endpoint, reason })
        return { to: pathOf(visit, `webhooks/${endpoint}`), notice: 'The endpoint is disabled.' }
      },

      async delete(visit) {
        const { session, organisation, id: endpoint } = visit
        await call('dashboard_delete_webhook', { session, organisation, endpoint })
        return { to: pathOf(visit, 'webhooks'), notice: 'The endpoint is deleted.' }
      },

      async test(visit, form) {
        const { session, organisation, id: endpoint } = visit
        const { type } = parseForm(testSchema, form)
        const event = await call('dashboard_test_event', { session, organisation, endpoint, type })
        return { to: pathOf(visit, `webhooks/events/${event}`), notice: 'The test event is sent.' }
      },

      async replay(visit, form) {
        const { session, organisation, id: endpoint } = visit
        const { since, until, only_missed } = parseForm(replaySchema, form)
        const replayed = await call('dashboard_replay_events', {
          ...{ session, organisation, endpoint, since, until },
          only_missed: only_missed !== undefined,
        })
        const period = { since: inputTime(since), until: inputTime(until) }
        const query = new URLSearchParams({ ...period, replayed: String(replayed) })
        return { to: `${pathOf(visit, `webhooks/${endpoint}`)}?${query}` }
      },
    },
  }

  return [list, webhookEventPage(call), one]
}

function secretPage(visit: Visit, id: string, title: string, secret: string, note?: string) {
  const content = html`
    <p>Copy the secret now. It is shown only once. Your endpoint verifies the signature of each event with it.</p>
    <p>${copyable(secret)}</p>
    ${note && html`<p>${note}</p>`}
    <p><a href=${pathOf(visit, `webhooks/${id}`)}>To the endpoint</a></p>`
  return { title, content }
}

/** The share of attempts that the endpoint took. */
function successOf({ attempts, succeeded }: Endpoint): Content {
  if (attempts === 0) return 'no attempts'
  // Rounded down: 100 % means every attempt.
  const percent = Math.floor((succeeded / attempts) * 1000) / 10
  return `${percent} % of ${count(attempts)}`
}

const atMost = (value: number, limit: number) =>
  value > limit ? `over ${count(limit)}` : count(value)

const typesOf = (types: readonly string[]) =>
  types.length === EVENT_TYPES.length ? 'all' : types.join(', ')

/** A time as the browser's field for it takes it. */
const inputTime = (at: Date) => at.toISOString().slice(0, 19)

function createForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'create')
  return html`<details open=${refused !== null}>
    <summary>Add an endpoint</summary>
    <form method="post" action=${pathOf(visit, 'webhooks/create')} class="stack">
      ${settings(refused, { url: '', eventTypes: EVENT_TYPES })}
      <button>Add endpoint</button>
    </form>
  </details>`
}

function settings(
  refused: Visit['refused'],
  { url, eventTypes }: Pick<Endpoint, 'url'> & { eventTypes: readonly string[] },
): Content {
  return html`
    ${field({ name: 'url', label: 'URL', type: 'url', refused, isRequired: true, value: url, hint: 'https, at a public address' })}
    ${choices({ name: 'types', legend: 'Events', values: EVENT_TYPES, chosen: eventTypes, refused })}`
}

function factsOf(endpoint: Endpoint): Content {
  const { id, url, state, failingSince, lastError, disabledAt, disabledReason } = endpoint
  const { oldSecretUntil, waiting, eventTypes, createdAt } = endpoint
  return html`<dl class="facts">
    <div><dt>URL</dt><dd><bdi>${url}</bdi></dd></div>
    <div><dt>ID</dt><dd><code>${id}</code></dd></div>
    <div><dt>State</dt><dd>${status(state)}</dd></div>
    ${disabledAt && html`<div><dt>Disabled</dt><dd>${time(disabledAt)}: <bdi>${disabledReason ?? 'deliveries failed for 3 days'}</bdi></dd></div>`}
    ${failingSince && html`<div><dt>Failing since</dt><dd>${time(failingSince)}</dd></div>`}
    ${lastError && html`<div><dt>Last error</dt><dd><bdi>${lastError}</bdi></dd></div>`}
    <div><dt>24 h success</dt><dd>${successOf(endpoint)}</dd></div>
    <div><dt>Waiting</dt><dd>${atMost(waiting, MAX_WAITING)}</dd></div>
    <div><dt>Events</dt><dd>${typesOf(eventTypes)}</dd></div>
    <div><dt>Added</dt><dd>${time(createdAt)}</dd></div>
    ${oldSecretUntil && html`<div><dt>Old secret</dt><dd>signs as well until ${time(oldSecretUntil)}</dd></div>`}
  </dl>`
}

/** How many of the replayed deliveries are left. Script refreshes it until none is. */
function progress(
  visit: Visit,
  replayed: number,
  { deliveries, failed }: { deliveries: number; failed: number },
): Content {
  const isDone = deliveries === 0
  const waits =
    failed > 0 && ` ${atMost(failed, MAX_LEFT)} of them failed and wait for the next attempt.`
  return html`<div id="replay" class="notice" role="status" data-refresh=${isDone ? null : ''}>
    <p>${count(replayed)} ${replayed === 1 ? 'event' : 'events'} of the period replayed; ${
      isDone ? 'none is left.' : `${atMost(deliveries, MAX_LEFT)} left.`
    }${waits}</p>
    ${!isDone && deliveries <= MAX_LEFT && html`<progress max=${Math.max(replayed, deliveries)} value=${replayed - deliveries}></progress>`}
    ${!isDone && html`<a href=${visit.ctx.url}>Refresh</a>`}
  </div>`
}

function forms(visit: Visit, endpoint: Endpoint): Content {
  const { id, state, eventTypes } = endpoint
  const path = pathOf(visit, `webhooks/${id}`)
  const change = refusedIn(visit, 'change')
  const disable = refusedIn(visit, 'disable')
  const replay = refusedIn(visit, 'replay')
  const now = Date.now()
  return html`
    ${state === 'disabled' && html`<p>${actionButton(`${path}/enable`, 'Enable')}</p>`}
    ${
      state !== 'disabled' &&
      html`<details open=${refusedIn(visit, 'test') !== null}>
        <summary>Send a test event</summary>
        <form method="post" action=${`${path}/test`} class="stack">
          ${field({
            name: 'type',
            label: 'Type',
            refused: refusedIn(visit, 'test'),
            options: EVENT_TYPES.map((type) => ({ value: type, label: type })),
            value: eventTypes[0] ?? '',
          })}
          <button>Send test event</button>
        </form>
      </details>
      <details open=${replay !== null}>
        <summary>Replay events of a period</summary>
        <form method="post" action=${`${path}/replay`} class="stack">
          <p class="hint">Events of the last 30 days, at most 50${'\u202f'}000 at a time, with the same IDs and bodies. A single event is replayed on its own page.</p>
          ${field({ name: 'since', label: 'Since (UTC)', type: 'datetime-local', refused: replay, isRequired: true, value: inputTime(new Date(now - 86_400_000)).slice(0, 16) })}
          ${field({ name: 'until', label: 'Until (UTC)', type: 'datetime-local', refused: replay, isRequired: true, value: inputTime(new Date(now + 60_000)).slice(0, 16) })}
          <div class="choices"><label><input type="checkbox" name="only_missed" value="yes" checked=${replay ? replay.form.has('only_missed') : true} /> Only events that were not delivered</label></div>
          <button>Replay events</button>
        </form>
      </details>`
    }
    <details open=${change !== null}>
      <summary>Change URL or events</summary>
      <form method="post" action=${`${path}/change`} class="stack">
        ${settings(change, endpoint)}
        <button>Save</button>
      </form>
    </details>
    ${
      hasRole(visit, 'owner') &&
      html`<details>
        <summary>Rotate the secret</summary>
        <p>The new secret is shown once. The old one signs as well for 24 hours.</p>
        ${actionButton(`${path}/rotate`, 'Rotate secret')}
      </details>`
    }
    ${
      state !== 'disabled' &&
      html`<details open=${disable !== null}>
        <summary>Disable</summary>
        <form method="post" action=${`${path}/disable`} class="stack">
          <p class="hint">Events are kept for 30 days and can be replayed after the endpoint is enabled.</p>
          ${field({ name: 'reason', label: 'Reason', refused: disable, isRequired: true })}
          <button class="danger">Disable endpoint</button>
        </form>
      </details>`
    }
    <details>
      <summary>Delete</summary>
      <p>Waiting deliveries are removed. Nothing is posted to the URL from then on.</p>
      ${actionButton(`${path}/delete`, 'Delete endpoint', {}, 'danger')}
    </details>`
}
