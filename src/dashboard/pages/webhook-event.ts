import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type Visit } from '../page.ts'
import { actionButton, status, table, time } from '../parts.ts'

const attemptSchema = v.object({
  attempt: v.number(),
  startedAt: v.string(),
  durationMs: v.number(),
  status: v.nullable(v.number()),
  error: v.nullable(v.string()),
  response: v.nullable(v.string()),
})

const eventSchema = v.object({
  id: v.string(),
  type: v.string(),
  occurredAt: v.string(),
  message: v.nullable(v.string()),
  body: v.string(),
  isReplayable: v.boolean(),
  endpoints: v.array(
    v.object({
      id: v.string(),
      url: v.string(),
      isDisabled: v.boolean(),
      state: v.string(),
      dueAt: v.nullable(v.string()),
      attempts: v.array(attemptSchema),
    }),
  ),
})
type Event = v.InferOutput<typeof eventSchema>
type Endpoint = Event['endpoints'][number]

const replaySchema = v.strictObject({ endpoint: v.string() })

/** A webhook event: the body that is posted, and at each endpoint its attempts with their responses. */
export function webhookEventPage(call: Call): Page {
  return {
    path: '/dashboard/:organisation/webhooks/events/:id',

    async show(visit) {
      const { session, organisation, id } = visit
      const found = await call('dashboard_webhook_event', { session, organisation, event: id })
      const event = v.parse(eventSchema, found)
      const { type, occurredAt, message, body, endpoints } = event
      const isUnderWay = endpoints.some(({ state }) => state === 'queued')
      const content = html`
        <p><code>${event.id}</code> · ${time(occurredAt)} · ${
          message
            ? html`<a href=${pathOf(visit, `messages/${message}`)}>${message}</a>`
            : 'a test event'
        }</p>
        <div id="attempts" data-refresh=${isUnderWay ? '' : null}>
          ${isUnderWay && html`<p><a href=${pathOf(visit, `webhooks/events/${id}`)}>Refresh</a></p>`}
          ${endpoints.map((endpoint) => endpointOf(visit, event, endpoint))}
          ${endpoints.length === 0 && html`<p class="empty">The organisation has no webhook endpoint.</p>`}
        </div>
        <h2>Request body</h2>
        <pre dir="auto">${body}</pre>`
      return { title: type, content }
    },

    actions: {
      async replay(visit, form) {
        const { session, organisation, id: event } = visit
        const { endpoint } = parseForm(replaySchema, form)
        await call('dashboard_replay_event', { session, organisation, event, endpoint })
        return { to: pathOf(visit, `webhooks/events/${event}`), notice: 'The event is replayed.' }
      },
    },
  }
}

function endpointOf(visit: Visit, event: Event, endpoint: Endpoint): Content {
  const { id, url, isDisabled, state, dueAt, attempts } = endpoint
  const canReplay = event.isReplayable && !isDisabled && hasRole(visit, 'member')
  return html`
    <h2><a href=${pathOf(visit, `webhooks/${id}`)}><bdi>${url}</bdi></a></h2>
    <p>${status(state)} ${state === 'deferred' && html`next attempt ${time(dueAt)}`}
      ${state === 'skipped' && 'It was not posted to this endpoint.'} ${isDisabled && 'The endpoint is disabled.'}
      ${' '}${canReplay && actionButton(pathOf(visit, `webhooks/events/${event.id}/replay`), 'Replay', { endpoint: id })}</p>
    ${
      attempts.length > 0 &&
      table(
        `Attempts at ${url}`,
        attempts,
        [
          { label: 'Attempt', cell: ({ attempt }) => attempt, isNumber: true },
          { label: 'Started', cell: ({ startedAt }) => time(startedAt) },
          { label: 'Took', cell: ({ durationMs }) => `${durationMs} ms`, isNumber: true },
          { label: 'Status', cell: ({ status }) => status ?? 'none' },
          { label: 'Error', cell: ({ error }) => error && html`<bdi>${error}</bdi>` },
          {
            label: 'Response body',
            cell: ({ response }) =>
              response
                ? html`<pre dir="auto">${response}</pre>`
                : response === ''
                  ? 'empty'
                  : 'none',
          },
        ],
        null,
      )
    }`
}
