/** What the list of webhook endpoints and the page of an endpoint share. */
import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import { type Content, html } from '../html.ts'
import { pathOf, type View, type Visit } from '../page.ts'
import { choices, copyable, count, field } from '../parts.ts'

/** The largest number of waiting deliveries that core.webhook_endpoint_object counts. */
export const MAX_WAITING = 1000

export const endpointSchema = v.object({
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
export type Endpoint = v.InferOutput<typeof endpointSchema>

const url = v.pipe(v.string('is required'), v.minLength(1, 'is required'))
export const eventType = v.picklist(enums.webhook_event_type, 'must be types of the list')
export const settingsSchema = v.strictObject({ url, types: v.array(eventType) })

/** A page that shows a new secret once. */
export function secretPage(
  visit: Visit,
  id: string,
  title: string,
  secret: string,
  note?: string,
): View {
  const content = html`
    <p>Copy the secret now. It is shown only once. Your endpoint verifies the signature of each event with it.</p>
    <p>${copyable(secret)}</p>
    ${note && html`<p>${note}</p>`}
    <p><a href=${pathOf(visit, `webhooks/${id}`)}>To the endpoint</a></p>`
  return { title, content }
}

/** The share of the attempts of 24 hours that succeeded. */
export function successOf({ attempts, succeeded }: Endpoint): Content {
  if (attempts === 0) return 'no attempts'
  // Rounded down: 100 % means every attempt.
  const percent = Math.floor((succeeded / attempts) * 1000) / 10
  return `${percent} % of ${count(attempts)}`
}

/** A number that is counted up to a limit. */
export const atMost = (value: number, limit: number) =>
  value > limit ? `over ${count(limit)}` : count(value)

/** The event types of an endpoint. */
export const typesOf = (types: readonly string[]) =>
  types.length === enums.webhook_event_type.length ? 'all' : types.join(', ')

/** The fields of the form that makes or changes an endpoint. */
export function settingsFields(
  refused: Visit['refused'],
  { url, eventTypes }: Pick<Endpoint, 'url'> & { eventTypes: readonly string[] },
): Content {
  return html`
    ${field({ name: 'url', label: 'URL', type: 'url', refused, isRequired: true, value: url, hint: 'https, at a public address' })}
    ${choices({ name: 'types', legend: 'Events', values: enums.webhook_event_type, chosen: eventTypes, refused })}`
}
