import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { asStored, suppressionSchema } from '../../schemas/suppression.ts'
import { storable } from '../../text/storable.ts'
import { respondCsv } from '../csv.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type Resource, refusedIn, type Visit } from '../page.ts'
import {
  actionButton,
  count,
  csvFileField,
  field,
  nextLink,
  status,
  table,
  time,
} from '../parts.ts'
import {
  type BadLine,
  type ListEntry,
  MAX_LINES,
  slicesOf,
  suppressionListOf,
} from '../suppression-list.ts'
import { optedOutNumbers, optOutActions, optOutsResource, optOutsSchema } from './opt-outs.ts'

const MAX_SHOWN_BAD_LINES = 100

const CURSOR = /^cur_[0-7][0-9a-hjkmnp-tv-z]{25}$/
const OPT_OUTS_CURSOR = /^[0-9]{1,17} \+[0-9]{7,15}$/
const LOOKS_LIKE_NUMBER = /^\+?[0-9\s().-]+$/

const suppressionsSchema = v.object({
  data: v.array(
    v.object({
      id: v.string(),
      email: v.string(),
      reason: v.picklist(enums.suppression_reason),
      messageId: v.nullable(v.string()),
      note: v.string(),
      createdAt: v.string(),
    }),
  ),
  nextCursor: v.nullable(v.string()),
})

const listsSchema = v.object({ suppressions: suppressionsSchema, optOuts: optOutsSchema })

const deletedSchema = v.object({ email: v.string(), otherReason: v.nullable(v.string()) })

const REASONS = [
  { value: 'manual', label: 'manual: no email at all' },
  { value: 'unsubscribe', label: 'unsubscribe: no marketing email' },
]

const idSchema = v.strictObject({ id: v.string() })

/** Suppressed addresses and opted-out numbers; members add, import and remove them. */
export function suppressionsPage(call: Call): Page {
  const back = (visit: Visit) => pathOf(visit, 'suppressions') + visit.ctx.search

  return {
    path: '/dashboard/:organisation/suppressions',

    async show(visit) {
      const { session, organisation, query } = visit
      const search = storable(query.q ?? '').trim()
      const isNumber = LOOKS_LIKE_NUMBER.test(search)
      const lists = v.parse(
        listsSchema,
        await call('dashboard_suppressions', {
          session,
          organisation,
          ...(search && {
            search: asStored(search),
            // A local number begins with 0 in place of the country's code.
            phone: isNumber ? search.replace(/\D/g, '').replace(/^0+/, '') : search,
          }),
          ...(CURSOR.test(query.cursor ?? '') && { cursor: query.cursor }),
          ...(OPT_OUTS_CURSOR.test(query.before ?? '') && { opt_outs_cursor: query.before }),
        }),
      )
      const content = html`
        ${searchForm(search)}
        ${suppressedAddresses(visit, lists.suppressions, search)}
        ${optedOutNumbers(visit, lists.optOuts, search, withQuery(visit, 'before', lists.optOuts.nextCursor))}`
      return { title: 'Suppressions', content }
    },

    actions: {
      async add(visit, form) {
        const { session, organisation } = visit
        const { email, reason, note } = parseForm(suppressionSchema, form)
        const added = await call('dashboard_add_suppressions', {
          session,
          organisation,
          reason: reason ?? 'manual',
          emails: [email],
          notes: [note ?? ''],
        })
        const notice = added > 0 ? `${email} is suppressed.` : `${email} was in the list already.`
        return { to: pathOf(visit, 'suppressions'), notice }
      },

      async import(visit, form) {
        const { session, organisation } = visit
        const { reason, list } = suppressionListOf(form)
        const result: Imported = { given: 0, added: 0, refusedLines: 0, bad: [] }
        const slices = slicesOf(list, (line) => {
          result.refusedLines += 1
          if (result.bad.length < MAX_SHOWN_BAD_LINES) result.bad.push(line)
        })
        const store = async (entries: readonly ListEntry[]) => {
          result.given += entries.length
          result.added += await call('dashboard_add_suppressions', {
            session,
            organisation,
            reason,
            emails: entries.map(({ email }) => email),
            notes: entries.map(({ note }) => note),
          })
        }
        // The first slice, even an empty one, is refused before the page begins.
        await store(slices.next().value ?? [])
        let slice = slices.next()
        const title = 'Import of addresses'
        if (slice.done) return { title, content: report(visit, result) }
        return { title, content: null, pieces: pieces() }

        async function* pieces() {
          for (; !slice.done; slice = slices.next()) {
            yield html`<p class="progress">${count(result.given)} addresses</p>`
            await store(slice.value)
          }
          yield report(visit, result)
        }
      },

      async remove(visit, form) {
        const { session, organisation } = visit
        const { id } = parseForm(idSchema, form)
        const deleted = await call('dashboard_delete_suppression', { session, organisation, id })
        const { email, otherReason } = v.parse(deletedSchema, deleted)
        const notice =
          otherReason === null
            ? `${email} is no longer suppressed.`
            : `The entry is removed. ${email} stays suppressed for another reason: ${wordsOf(otherReason)}.`
        return { to: back(visit), notice }
      },

      ...optOutActions(call, back),
    },
  }
}

/** The lists as CSV. */
export function suppressionResources(call: Call): Resource[] {
  return [
    {
      path: '/dashboard/:organisation/suppressions/addresses.csv',
      async respond({ ctx, session, organisation }) {
        respondCsv(ctx, 'suppressions.csv', ADDRESS_COLUMNS, async (cursor) => {
          const page = await call('dashboard_export_suppressions', {
            session,
            organisation,
            ...cursor,
          })
          const { data, nextCursor } = v.parse(suppressionsSchema, page)
          return { rows: data, nextCursor }
        })
      },
    },
    optOutsResource(call),
  ]
}

type Suppression = v.InferOutput<typeof suppressionsSchema>['data'][number]

const ADDRESS_COLUMNS: Record<string, (row: Suppression) => string | null> = {
  email: ({ email }) => email,
  reason: ({ reason }) => reason,
  message: ({ messageId }) => messageId,
  note: ({ note }) => note,
  created_at: ({ createdAt }) => createdAt,
}

const wordsOf = (reason: string) => reason.replace('_', ' ')

function searchForm(search: string): Content {
  return html`<form method="get" class="row" role="search">
    ${field({ name: 'q', label: 'Part of an address or number', type: 'search', refused: null, value: search })}
    <button class="plain">Search</button>
  </form>`
}

/** The path of the page with one more query parameter. */
function withQuery(visit: Visit, name: string, value: string | null): string | null {
  if (value === null) return null
  const query = new URLSearchParams({ ...visit.query, [name]: value })
  return `${pathOf(visit, 'suppressions')}?${query}`
}

function suppressedAddresses(
  visit: Visit,
  { data, nextCursor }: v.InferOutput<typeof suppressionsSchema>,
  search: string,
): Content {
  const isMember = hasRole(visit, 'member')
  const none = search
    ? nextCursor
      ? 'None of the newest 10 000 addresses contains this text. Go on to older ones below.'
      : 'No suppressed address contains this text.'
    : 'No address is suppressed. Hard bounces, complaints and unsubscribes add addresses; a member can add others.'
  return html`<section aria-labelledby="addresses">
    <h2 id="addresses">Suppressed addresses</h2>
    ${isMember && addForm(visit)}
    ${isMember && importForm(visit)}
    <p><a href=${pathOf(visit, 'suppressions/addresses.csv')} download>Export addresses</a></p>
    ${table(
      'Suppressed addresses',
      data,
      [
        { label: 'Address', cell: ({ email }) => email },
        { label: 'Reason', cell: ({ reason }) => status(wordsOf(reason)) },
        {
          label: 'Message',
          cell: ({ messageId }) =>
            messageId
              ? html`<a href=${pathOf(visit, `messages/${messageId}`)}>${messageId}</a>`
              : '–',
        },
        { label: 'Note', cell: ({ note }) => note || '–' },
        { label: 'Since', cell: ({ createdAt }) => time(createdAt) },
        ...(isMember
          ? [
              {
                label: 'Action',
                cell: ({ id, reason }: Suppression) =>
                  reason === 'hard_bounce'
                    ? 'Only operators can remove it.'
                    : actionButton(
                        pathOf(visit, 'suppressions/remove') + visit.ctx.search,
                        'Remove',
                        { id },
                        'danger',
                      ),
              },
            ]
          : []),
      ],
      none,
    )}
    ${nextLink(withQuery(visit, 'cursor', nextCursor))}
  </section>`
}

function addForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'add')
  return html`<details open=${refused !== null}>
    <summary>Suppress an address</summary>
    <form method="post" action=${pathOf(visit, 'suppressions/add')} class="stack">
      ${field({ name: 'email', label: 'Address', refused, isRequired: true })}
      ${field({ name: 'reason', label: 'Reason', refused, options: REASONS })}
      ${field({ name: 'note', label: 'Note', refused })}
      <button>Suppress address</button>
    </form>
  </details>`
}

function importForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'import')
  return html`<details open=${refused !== null}>
    <summary>Import a list</summary>
    <form method="post" action=${pathOf(visit, 'suppressions/import')} enctype="multipart/form-data" class="stack">
      ${field({
        name: 'list',
        label: 'Addresses',
        refused,
        lines: 8,
        hint: html`One address on each line, or CSV whose first line is <code>email,note</code>; at most ${count(MAX_LINES)} lines.`,
      })}
      ${csvFileField()}
      ${field({ name: 'listReason', label: 'Reason', refused, options: REASONS })}
      <button>Import list</button>
    </form>
  </details>`
}

type Imported = { given: number; added: number; refusedLines: number; bad: BadLine[] }

function report(visit: Visit, { given, added, refusedLines, bad }: Imported): Content {
  return html`
    <div role="status"><ul>
      <li>${count(added)} added</li>
      <li>${count(given - added)} in the list already, or given twice</li>
      <li>${count(refusedLines)} not imported${refusedLines > 0 && ', because the line is wrong'}</li>
    </ul></div>
    ${
      bad.length > 0 &&
      html`<h2>${refusedLines > bad.length ? `The first ${bad.length} wrong lines` : 'Wrong lines'}</h2>
      ${table(
        'Wrong lines',
        bad,
        [
          { label: 'Line', cell: ({ line }) => String(line), isNumber: true },
          { label: 'Text', cell: ({ text }) => html`<code>${text}</code>` },
          { label: 'Problem', cell: ({ problem }) => problem },
        ],
        null,
      )}`
    }
    <p><a href=${pathOf(visit, 'suppressions')}>To the suppressions</a></p>`
}
