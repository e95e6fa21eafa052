import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, refusedIn, type Visit } from '../page.ts'
import {
  actionButton,
  count,
  field,
  nextLink,
  optionsOf,
  pageOf,
  status,
  table,
  time,
} from '../parts.ts'
import {
  atMost,
  type Endpoint,
  endpointSchema,
  eventType,
  MAX_WAITING,
  secretPage,
  settingsFields,
  settingsSchema,
  successOf,
  typesOf,
} from './webhook-parts.ts'

/** The largest number of deliveries that the progress of a replay counts. */
const MAX_LEFT = 10_000

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

/** A webhook endpoint: its state and events; members test, change, disable, delete and replay, owners rotate the secret. */
export function webhookPage(call: Call): Page {
  return {
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
}

/** A time as the browser's field for it takes it. */
const inputTime = (at: Date) => at.toISOString().slice(0, 19)

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
            options: optionsOf(enums.webhook_event_type),
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
        ${settingsFields(change, endpoint)}
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
