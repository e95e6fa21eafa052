import * as v from 'valibot'
import type { MessageFilter } from '../../db/api.gen.ts'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import { isDate } from '../../schemas/timestamp.ts'
import { respondCsv } from '../csv.ts'
import { parseForm, type Refused } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type Resource, type Visit } from '../page.ts'
import { field, nextLink, optionsOf, PAGE_ROWS, shortened, status, table, time } from '../parts.ts'
import { parseSearch, queryOf, type Search } from './message-filter.ts'

/** Rows of a page of an export. */
const EXPORT_ROWS = 500

const listSchema = v.object({
  messages: v.array(
    v.object({
      id: v.string(),
      channel: v.picklist(enums.channel),
      class: v.picklist(enums.class),
      mode: v.picklist(enums.mode),
      status: v.picklist(enums.message_status),
      to: v.string(),
      from: v.string(),
      subject: v.nullable(v.string()),
      tags: v.array(v.string()),
      error: v.nullable(v.object({ code: v.string(), message: v.nullable(v.string()) })),
      createdAt: v.string(),
      sentAt: v.nullable(v.string()),
      deliveredAt: v.nullable(v.string()),
    }),
  ),
  nextCursor: v.nullable(v.string()),
  searchedBackTo: v.nullable(v.string()),
})

type List = v.InferOutput<typeof listSchema>
type Message = List['messages'][number]

const retrySchema = v.pipe(
  v.strictObject({ message: v.array(v.string()) }),
  v.check(({ message }) => message.length > 0, 'Select the messages to retry.'),
  v.check(({ message }) => message.length <= PAGE_ROWS, `Select at most ${PAGE_ROWS} messages.`),
)

const problemsSchema = v.array(v.object({ id: v.string(), problem: v.string() }))

/** The messages that api.dashboard_retry_messages could not retry, each with its problem. */
type RetryProblems = v.InferOutput<typeof problemsSchema>

/** Retries messages. Returns those that cannot be retried. */
export async function retryMessages(
  call: Call,
  { session, organisation }: Visit,
  messages: readonly string[],
): Promise<RetryProblems> {
  return v.parse(
    problemsSchema,
    await call('dashboard_retry_messages', { session, organisation, messages: [...messages] }),
  )
}

/** Messages: search, filters, CSV, and a retry of those that are selected. */
export function messagesPage(call: Call): Page {
  return {
    path: '/dashboard/:organisation/messages',

    async show(visit) {
      const search = parseSearch(visit.query)
      const list = search.problems
        ? null
        : await listMessages(call, visit, search.filter, PAGE_ROWS, visit.query.cursor)
      const content = html`
        ${filters(visit, search)}
        ${search.messageId && openMessage(visit, search.messageId)}
        ${list && !search.messageId && results(visit, search, list)}`
      return { title: 'Messages', content }
    },

    actions: {
      async retry(visit, form) {
        const { message } = parseForm(retrySchema, form, ['message'])
        const problems = await retryMessages(call, visit, message)
        return {
          to: pathOf(visit, 'messages') + queryOf(parseSearch(visit.query).given, cursorOf(visit)),
          notice: retryNotice(new Set(message).size, problems),
        }
      },
    },
  }
}

/** The CSV file of the messages that match the filters of its query. */
export function messagesResources(call: Call): Resource[] {
  /** Organisations for which a file is being made: each reads all that the filters find. */
  const exporting = new Set<string>()
  return [
    {
      path: '/dashboard/:organisation/messages.csv',
      async respond(visit) {
        const { ctx, organisation } = visit
        const { filter, problems } = parseSearch(visit.query)
        if (problems)
          throw new Refusal('validation_error', problems, { message: 'A filter is not valid.' })
        if (exporting.has(organisation)) {
          const message = 'Another export of this organisation is running. Wait until it has ended.'
          throw new Refusal('rate_limited', null, { message, retryAfter: 10 })
        }
        exporting.add(organisation)
        const file = respondCsv(ctx, 'messages.csv', COLUMNS, async ({ cursor }) => {
          const list = await listMessages(call, visit, filter, EXPORT_ROWS, cursor)
          return { rows: list.messages, nextCursor: list.nextCursor }
        })
        file.once('close', () => exporting.delete(organisation))
      },
    },
  ]
}

const COLUMNS: Record<string, (message: Message) => string | null> = {
  id: ({ id }) => id,
  channel: ({ channel }) => channel,
  class: ({ class: name }) => name,
  mode: ({ mode }) => mode,
  status: ({ status }) => status,
  to: ({ to }) => to,
  from: ({ from }) => from,
  subject: ({ subject }) => subject,
  tags: ({ tags }) => tags.join(', '),
  errorCode: ({ error }) => error?.code ?? null,
  errorMessage: ({ error }) => error?.message ?? null,
  createdAt: ({ createdAt }) => createdAt,
  sentAt: ({ sentAt }) => sentAt,
  deliveredAt: ({ deliveredAt }) => deliveredAt,
}

async function listMessages(
  call: Call,
  { session, organisation }: Visit,
  filter: MessageFilter,
  pageSize: number,
  cursor: string | undefined,
): Promise<List> {
  return v.parse(
    listSchema,
    await call('dashboard_messages', {
      session,
      organisation,
      filter,
      page_size: pageSize,
      ...(cursor !== undefined && { cursor }),
    }),
  )
}

const cursorOf = ({ query }: Visit) => (query.cursor ? { cursor: query.cursor } : undefined)

function filters(visit: Visit, { given, problems }: Search): Content {
  const refused: Refused | null = problems && {
    form: new Map(Object.entries(given).map(([name, text]) => [name, [text]])),
    problems,
    message: '',
  }
  const { q: _, ...others } = given
  const text = (name: string, label: string) =>
    field({ name, label, refused, value: given[name] ?? '' })
  const date = (name: string, label: string) => {
    const value = given[name] ?? ''
    // A date field would not show a timestamp.
    const type = value === '' || isDate(value) ? 'date' : 'text'
    return field({ name, label, refused, value, type })
  }
  const choice = (name: string, label: string, values: readonly string[]) =>
    field({
      name,
      label,
      refused,
      value: given[name] ?? '',
      options: [{ value: '', label: 'any' }, ...optionsOf(values)],
    })
  return html`<form method="get" action=${pathOf(visit, 'messages')} class="search" role="search">
    <div class="search-box">
      ${field({
        name: 'q',
        label: 'Search',
        type: 'search',
        refused,
        value: given.q ?? '',
        hint: html`A recipient, a message ID or a part of the subject; also <code>to:</code> <code>tag:</code>${' '}
          <code>status:</code> <code>subject:"two words"</code> <code>before:2026-11-23</code>`,
      })}
      <button>Search</button>
    </div>
    <details open=${Object.keys(others).length > 0}>
      <summary>Filters</summary>
      <div class="filters">
        ${choice('status', 'Status', enums.message_status)}
        ${choice('channel', 'Channel', enums.channel)}
        ${choice('class', 'Class', enums.class)}
        ${choice('mode', 'Mode', enums.mode)}
        ${text('to', 'Recipient')}
        ${text('from', 'Sender')}
        ${text('tag', 'Tag')}
        ${date('since', 'Since (UTC)')}
        ${date('until', 'Before (UTC)')}
      </div>
      <button class="plain">Apply</button>
      ${' '}<a href=${pathOf(visit, 'messages')}>Clear</a>
    </details>
  </form>`
}

function results(visit: Visit, { given }: Search, list: List): Content {
  const { messages, nextCursor, searchedBackTo } = list
  const mayRetry = hasRole(visit, 'member')
  const here = pathOf(visit, 'messages')
  const next = nextCursor && here + queryOf(given, { cursor: nextCursor })
  const rows = table(
    'Messages',
    messages,
    [
      ...(mayRetry ? [{ label: 'Select', cell: selectOf }] : []),
      {
        label: 'To',
        cell: ({ id, to }: Message) =>
          html`<a href=${`${here}/${id}`}><bdi>${shortened(to)}</bdi></a>`,
      },
      {
        label: 'Subject',
        cell: ({ subject }: Message) => (subject === null ? '–' : html`<bdi>${subject}</bdi>`),
      },
      {
        label: 'Status',
        cell: ({ status: name, mode }: Message) =>
          html`${status(name)} ${mode === 'test' && 'test'}`,
      },
      { label: 'Channel', cell: ({ channel }: Message) => channel },
      {
        label: 'Tags',
        cell: ({ tags }: Message) => tags.map((tag) => html`<bdi class="tag">${tag}</bdi> `),
      },
      { label: 'Time', cell: ({ createdAt }: Message) => time(createdAt) },
    ],
    emptyState(visit, given, searchedBackTo),
  )
  return html`
    ${messages.length > 0 && html`<p><a href=${`${here}.csv${queryOf(given)}`} download>Export as CSV</a></p>`}
    <form method="post" action=${`${here}/retry${queryOf(given, cursorOf(visit))}`}>
      ${rows}
      ${mayRetry && messages.length > 0 && html`<p><button class="plain">Retry the selected</button></p>`}
    </form>
    ${
      searchedBackTo && next
        ? html`<nav class="pager" aria-label="Pages"><p>Searched back to ${time(searchedBackTo)}.${' '}
            <a rel="next" href=${next}>Search further back</a></p></nav>`
        : nextLink(next)
    }`
}

const selectOf = ({ id, to }: Message) =>
  html`<input type="checkbox" name="message" value=${id} aria-label=${`Select ${shortened(to)}`} />`

function emptyState(visit: Visit, given: Search['given'], searchedBackTo: string | null): Content {
  if (searchedBackTo) return 'No message was found so far.'
  if (visit.query.cursor) return 'There are no older messages.'
  if (Object.keys(given).length > 0) {
    return html`No message matches the filters. <a href=${pathOf(visit, 'messages')}>Show all messages</a>`
  }
  return html`No message was sent yet. <a href=${pathOf(visit, 'keys')}>Create an API key</a> and${' '}
    <a href="/docs">send the first one</a>.`
}

function openMessage(visit: Visit, id: string): Content {
  return html`<p><a href=${`${pathOf(visit, 'messages')}/${id}`}>Open ${id}</a></p>`
}

/** Says how many messages are retried, and why others are not. */
export function retryNotice(selected: number, problems: RetryProblems): string {
  const retried = selected - problems.length
  const reasons = [...new Set(problems.map(({ problem }) => problem))].slice(0, 3)
  return [
    retried > 0 && `${retried} ${retried === 1 ? 'message is' : 'messages are'} retried.`,
    problems.length > 0 && `${problems.length} cannot be retried: ${reasons.join('; ')}.`,
  ]
    .filter(Boolean)
    .join(' ')
}
