import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type Visit } from '../page.ts'
import { actionButton, copyable, status, table, time } from '../parts.ts'
import { retryMessages, retryNotice } from './messages.ts'

const text = v.string()
const textOrNull = v.nullable(v.string())

const eventSchema = v.object({
  type: text,
  occurredAt: text,
  detail: v.looseObject({
    attempt: v.exactOptional(v.number()),
    provider: v.exactOptional(text),
    code: v.exactOptional(v.union([text, v.number()])),
    text: v.exactOptional(text),
    recipient: v.exactOptional(text),
    isAmbiguous: v.exactOptional(v.boolean()),
  }),
})

const deliverySchema = v.object({
  event: text,
  type: text,
  occurredAt: text,
  endpoint: text,
  url: text,
  isDisabled: v.boolean(),
  dueAt: textOrNull,
  attempts: v.array(
    v.object({
      attempt: v.number(),
      startedAt: text,
      status: v.nullable(v.number()),
      error: textOrNull,
      response: textOrNull,
      durationMs: v.number(),
    }),
  ),
})

const messageSchema = v.object({
  id: text,
  channel: v.picklist(enums.channel),
  class: text,
  mode: v.picklist(enums.mode),
  status: text,
  to: text,
  from: text,
  subject: textOrNull,
  tags: v.array(text),
  error: v.nullable(v.object({ code: text, message: textOrNull })),
  createdAt: text,
  sentAt: textOrNull,
  deliveredAt: textOrNull,
  segments: v.exactOptional(v.number()),
  credits: v.exactOptional(v.number()),
  scheduledAt: v.exactOptional(textOrNull),
  provider: textOrNull,
  attempts: v.number(),
  isSandbox: v.boolean(),
  version: text,
  mayChange: v.boolean(),
  canRetry: v.boolean(),
  why: textOrNull,
  events: v.array(eventSchema),
  deliveries: v.array(deliverySchema),
  body: v.nullable(
    v.object({
      sender: text,
      to: v.array(text),
      cc: v.array(text),
      bcc: v.array(text),
      replyTo: textOrNull,
      headers: v.nullable(v.record(text, text)),
      hasHtml: v.boolean(),
      hasText: v.boolean(),
    }),
  ),
  recipients: v.nullable(v.array(v.object({ email: text, suppressed: textOrNull }))),
})

type Message = v.InferOutput<typeof messageSchema>
type Event = Message['events'][number]
type Delivery = Message['deliveries'][number]

const suppressSchema = v.strictObject({ email: text })

/** A message: what happened to it, why it waits or failed, what was sent; members retry it and suppress its recipients. */
export function messagePage(call: Call): Page {
  return {
    path: '/dashboard/:organisation/messages/:id',

    async show(visit) {
      const { session, organisation, id } = visit
      const found = await call('dashboard_message', { session, organisation, message: id })
      const message = v.parse(messageSchema, found)
      const content = html`
        ${live(visit, message)}
        ${recipients(visit, message)}
        ${body(visit, message)}`
      return { title: message.subject ?? 'SMS', content }
    },

    actions: {
      async retry(visit) {
        const problems = await retryMessages(call, visit, [visit.id])
        return { to: messagePath(visit), notice: retryNotice(1, problems) }
      },

      async suppress(visit, form) {
        const { session, organisation, id } = visit
        const { email } = parseForm(suppressSchema, form)
        await call('dashboard_suppress_recipient', { session, organisation, message: id, email })
        return { to: messagePath(visit), notice: `${email} is suppressed.` }
      },
    },
  }
}

const messagePath = (visit: Visit) => `${pathOf(visit, 'messages')}/${visit.id}`

/** The part of the page that script replaces when the message has changed. */
function live(visit: Visit, message: Message): Content {
  const { mayChange, version, events, deliveries } = message
  const path = messagePath(visit)
  return html`<div id="live" data-page=${path} data-stream=${mayChange ? `${path}/events?seen=${version}` : null}>
    <div aria-live="polite">
      <p>${status(message.status)} ${message.mode === 'test' && 'test message'} ${message.isSandbox && 'sandbox message'}</p>
      ${reason(message)}
    </div>
    ${message.canRetry && hasRole(visit, 'member') && html`<p>${actionButton(`${path}/retry`, 'Retry now')}</p>`}
    ${facts(message)}
    <h2>Timeline</h2>
    <ol class="timeline">${events.map(
      (event) =>
        html`<li>${time(event.occurredAt)} ${status(event.type)}${' '}
          ${event.detail.recipient && html`<bdi>${event.detail.recipient}</bdi> `}${words(event)}</li>`,
    )}</ol>
    <h2>Attempts</h2>
    ${attempts(message)}
    <h2>Webhook deliveries</h2>
    ${table('Webhook deliveries', deliveries, DELIVERY_COLUMNS, 'No webhook endpoint gets an event of this message.')}
  </div>`
}

/** One sentence about why it waits or failed, with a link to its error. */
function reason({ error, why }: Message): Content {
  if (error) {
    return html`<p>${sentence(error.message)} <a href=${`/docs/errors#${error.code}`}>${error.code}</a></p>`
  }
  return why && html`<p>${withTimes(why)}</p>`
}

const sentence = (words: string | null) => words && `${words.replace(/\.$/, '')}.`

const ISO = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/

/** A sentence in which times are shown in the reader's zone. */
function withTimes(text: string): Content {
  return text.split(ISO).map((part) => (ISO.test(part) ? time(part) : part))
}

function facts(message: Message): Content {
  const rows: [string, Content][] = [
    ['ID', copyable(message.id)],
    ['To', html`<bdi>${message.to}</bdi>`],
    ['From', html`<bdi>${message.from}</bdi>`],
    ['Class', message.class],
    ['Tags', message.tags.map((tag) => html`<bdi class="tag">${tag}</bdi> `)],
    ['Accepted', time(message.createdAt)],
    ['Scheduled for', message.scheduledAt && time(message.scheduledAt)],
    ['Sent', message.sentAt && time(message.sentAt)],
    ['Delivered', message.deliveredAt && time(message.deliveredAt)],
    ['Segments', message.segments],
    ['Credits', message.credits],
  ]
  return html`<dl class="facts">${rows
    .filter(
      ([, value]) =>
        value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0),
    )
    .map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** What the provider or the network said. */
function words({ detail }: Event): Content {
  const said = [detail.code, detail.text].filter((part) => part !== undefined).join(' ')
  return html`${said && html`<bdi>${said}</bdi>`}${detail.isAmbiguous && ' (it is unknown whether it was accepted)'}`
}

function attempts({ events, attempts, sentAt }: Message): Content {
  const finished = events.filter(({ detail }) => detail.attempt !== undefined)
  return html`${table(
    'Attempts',
    finished,
    [
      { label: 'Attempt', cell: ({ detail }) => detail.attempt },
      { label: 'Ended', cell: ({ occurredAt }) => time(occurredAt) },
      { label: 'Provider', cell: ({ detail }) => detail.provider ?? '–' },
      { label: 'Outcome', cell: ({ type }) => status(type) },
      { label: 'Words of the provider', cell: (event) => words(event) },
    ],
    'No attempt has ended.',
  )}
  ${attempts > finished.length && !sentAt && html`<p class="hint">Attempt ${attempts} has not ended.</p>`}`
}

const DELIVERY_COLUMNS = [
  { label: 'Event', cell: ({ type, event }: Delivery) => html`${type} <code>${event}</code>` },
  { label: 'Endpoint', cell: ({ url }: Delivery) => html`<bdi>${url}</bdi>` },
  { label: 'State', cell: stateOf },
  {
    label: 'Attempts',
    cell: ({ attempts }: Delivery) =>
      attempts.map(
        ({ attempt, startedAt, status: code, error, response, durationMs }) =>
          html`<p class="attempt">${attempt}. ${time(startedAt)} ${code ?? 'no response'} in ${durationMs} ms
            ${error && html` <bdi>${error}</bdi>`}
            ${error && response && html`<details><summary>Response</summary><pre>${response}</pre></details>`}</p>`,
      ),
  },
]

function stateOf({ attempts, dueAt, isDisabled }: Delivery): Content {
  const isDelivered = attempts.some(({ error }) => error === null)
  if (dueAt) return html`${status('pending')} next attempt ${time(dueAt)}`
  if (isDelivered) return status('delivered')
  return isDisabled ? status('disabled') : status('failed')
}

function recipients(visit: Visit, { recipients }: Message): Content {
  if (!recipients) return null
  const mayChange = hasRole(visit, 'member')
  return html`<h2>Recipients</h2>
    ${table(
      'Recipients',
      recipients,
      [
        { label: 'Address', cell: ({ email }) => html`<bdi>${email}</bdi>` },
        {
          label: 'Suppressed',
          cell: ({ email, suppressed }) =>
            suppressed && suppressed !== 'unsubscribe'
              ? suppressed
              : html`${suppressed ?? 'no'} ${mayChange && actionButton(`${messagePath(visit)}/suppress`, 'Suppress', { email }, 'danger')}`,
        },
      ],
      'There are no recipients.',
    )}`
}

function body(visit: Visit, { channel, class: name, body }: Message): Content {
  if (!body) {
    return html`<h2>Body</h2><p>The body has been deleted after its retention period.</p>`
  }
  const path = messagePath(visit)
  const headers: [string, string][] = [
    ['From', body.sender],
    ...(['to', 'cc', 'bcc'] as const).flatMap((field): [string, string][] =>
      body[field].length > 0
        ? [[`${field.charAt(0).toUpperCase()}${field.slice(1)}`, body[field].join(', ')]]
        : [],
    ),
    ...(body.replyTo ? [['Reply-To', body.replyTo] as [string, string]] : []),
    ...Object.entries(body.headers ?? {}),
  ]
  const frame = (part: string, label: string, isOpen: boolean) =>
    html`<details open=${isOpen}><summary>${label}</summary>
      <iframe sandbox="" loading="lazy" title=${label} src=${`${path}/body?part=${part}`}></iframe></details>`
  return html`<h2>Body</h2>
    <p><a href=${`${path}/curl`} data-copy-from>Copy as curl</a></p>
    ${
      name === 'marketing' &&
      channel === 'email' &&
      html`<p class="hint">Each recipient got a copy of its own, with an unsubscribe link in the headers and in place of <code>${'{{unsubscribe_url}}'}</code>.</p>`
    }
    ${body.hasHtml && frame('html', 'HTML', true)}
    ${body.hasText && frame('text', 'Text', !body.hasHtml)}
    ${body.hasHtml && frame('source', 'Source of the HTML', false)}
    <details><summary>Headers</summary>
      <dl class="facts">${headers.map(([label, value]) => html`<div><dt><bdi>${label}</bdi></dt><dd><bdi>${value}</bdi></dd></div>`)}</dl>
    </details>`
}
