import { Readable } from 'node:stream'
import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import { asStored, suppressionSchema } from '../../schemas/suppression.ts'
import { csvLine } from '../../text/csv.ts'
import { storable } from '../../text/storable.ts'
import { type Form, parseForm, textOf } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type Resource, refusedIn, type Visit } from '../page.ts'
import { actionButton, count, field, nextLink, status, table, time } from '../parts.ts'
import { type BadLine, type ListEntry, linesOf, readList } from '../suppression-list.ts'

/** Addresses stored by one call: the organisation's sends wait while it runs. */
const SLICE = 1000

const MAX_LINES = 100_000

const MAX_SHOWN_BAD_LINES = 100

const CURSOR = /^cur_[0-7][0-9a-hjkmnp-tv-z]{25}$/
const OPT_OUTS_CURSOR = /^[0-9]{1,17} \+[0-9]{7,15}$/
const LOOKS_LIKE_NUMBER = /^\+?[0-9\s().-]+$/

const suppressionsSchema = v.object({
  data: v.array(
    v.object({
      id: v.string(),
      email: v.string(),
      reason: v.picklist(['hard_bounce', 'complaint', 'unsubscribe', 'manual']),
      messageId: v.nullable(v.string()),
      note: v.string(),
      createdAt: v.string(),
    }),
  ),
  nextCursor: v.nullable(v.string()),
})

const optOutsSchema = v.object({
  data: v.array(
    v.object({
      phone: v.string(),
      optedOutAt: v.string(),
      optedOutBy: v.string(),
      source: v.nullable(v.string()),
      consentedAt: v.nullable(v.string()),
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

const importSchema = v.object({ listReason: v.picklist(['manual', 'unsubscribe']) })
const idSchema = v.strictObject({ id: v.string() })

const phone = v.pipe(
  v.string(),
  // As people write numbers: +27 (82) 123-4567.
  v.transform((text) => text.replace(/[\s().-]/g, '')),
)
const optOutSchema = v.strictObject({ phone })
const consentSchema = v.strictObject({ phone, source: v.string() })

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
        ${optedOutNumbers(visit, lists.optOuts, search)}`
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
        const { reason, list } = parseImport(form)
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

      async 'opt-out'(visit, form) {
        const { session, organisation } = visit
        const { phone } = parseForm(optOutSchema, form)
        await call('dashboard_opt_out', { session, organisation, phone })
        return { to: pathOf(visit, 'suppressions'), notice: `${phone} is opted out.` }
      },

      async consent(visit, form) {
        const { session, organisation } = visit
        const { phone, source } = parseForm(consentSchema, form)
        await call('dashboard_record_consent', { session, organisation, phone, source })
        return { to: back(visit), notice: `The consent of ${phone} is recorded.` }
      },
    },
  }
}

/** The lists as CSV. */
export function suppressionResources(call: Call): Resource[] {
  return [
    {
      path: '/dashboard/:organisation/suppressions/addresses.csv',
      respond: ({ ctx, session, organisation }) =>
        exportCsv(ctx, 'suppressions.csv', ['email', 'reason', 'message', 'note', 'created_at'], {
          async fetch(cursor) {
            const page = await call('dashboard_export_suppressions', {
              session,
              organisation,
              ...cursor,
            })
            const { data, nextCursor } = v.parse(suppressionsSchema, page)
            const rows = data.map(({ email, reason, messageId, note, createdAt }) => [
              ...[email, reason, messageId, note, createdAt],
            ])
            return { rows, nextCursor }
          },
        }),
    },
    {
      path: '/dashboard/:organisation/suppressions/opt-outs.csv',
      respond: ({ ctx, session, organisation }) =>
        exportCsv(ctx, 'opt-outs.csv', ['phone', 'opted_out_at', 'opted_out_by'], {
          async fetch(cursor) {
            const page = await call('dashboard_export_opt_outs', {
              session,
              organisation,
              ...cursor,
            })
            const { data, nextCursor } = v.parse(optOutsSchema, page)
            const rows = data.map(({ phone, optedOutAt, optedOutBy }) => [
              ...[phone, optedOutAt, optedOutBy],
            ])
            return { rows, nextCursor }
          },
        }),
    },
  ]
}

type Rows = { rows: (string | null)[][]; nextCursor: string | null }

/** Streams a list as CSV. The first rows are fetched before the response begins, so that a refusal is a page. */
async function exportCsv(
  ctx: Visit['ctx'],
  name: string,
  columns: readonly string[],
  { fetch }: { fetch(cursor: { cursor?: string }): Promise<Rows> },
): Promise<void> {
  const first = await fetch({})
  async function* lines() {
    yield csvLine(columns)
    for (let page = first; ; page = await fetch({ cursor: page.nextCursor })) {
      yield page.rows.map(csvLine).join('')
      if (page.nextCursor === null) return
    }
  }
  ctx.set('Content-Type', 'text/csv; charset=utf-8')
  ctx.set('Content-Disposition', `attachment; filename="${name}"`)
  ctx.body = Readable.from(lines())
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
                cell: ({ id, reason }: (typeof data)[number]) =>
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
      <div class="field">
        <label for="field-file">Or a CSV file</label>
        <input type="file" id="field-file" name="file" accept=".csv,.txt,text/csv,text/plain" />
      </div>
      ${field({ name: 'listReason', label: 'Reason', refused, options: REASONS })}
      <button>Import list</button>
    </form>
  </details>`
}

/** Returns the list of a form, which is a file or a text. Throws a Refusal for an empty or too long one. */
function parseImport(form: Form) {
  const { listReason } = parseForm(importSchema, form)
  const text = (textOf(form, 'file') || textOf(form, 'list')).trimEnd()
  const lines = linesOf(text)
  const refuse = (problem: string) => {
    throw new Refusal('validation_error', { list: [problem] })
  }
  if (text === '') refuse('paste addresses, or choose a file that has some')
  if (lines > MAX_LINES) {
    refuse(`has ${count(lines)} lines, but at most ${count(MAX_LINES)} are imported at once`)
  }
  return { reason: listReason, list: readList(text) }
}

/** Reads the entries of a list in slices, so that other work is done in between. */
function* slicesOf(
  list: Iterable<ListEntry | BadLine>,
  onBad: (line: BadLine) => void,
): Generator<ListEntry[], undefined> {
  let slice: ListEntry[] = []
  for (const entry of list) {
    if ('problem' in entry) onBad(entry)
    else slice.push(entry)
    if (slice.length === SLICE) {
      yield slice
      slice = []
    }
  }
  if (slice.length > 0) yield slice
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

function optedOutNumbers(
  visit: Visit,
  { data, nextCursor }: v.InferOutput<typeof optOutsSchema>,
  search: string,
): Content {
  const isMember = hasRole(visit, 'member')
  return html`<section aria-labelledby="numbers">
    <h2 id="numbers">Opt-outs</h2>
    ${isMember && optOutForm(visit)}
    <p><a href=${pathOf(visit, 'suppressions/opt-outs.csv')} download>Export opt-outs</a></p>
    ${table(
      'Opt-outs',
      data,
      [
        { label: 'Number', cell: ({ phone }) => html`<span class="word">${phone}</span>` },
        { label: 'Since', cell: ({ optedOutAt }) => time(optedOutAt) },
        { label: 'By', cell: ({ optedOutBy }) => optedOutBy },
        {
          label: 'Consent before',
          cell: ({ source, consentedAt }) =>
            consentedAt ? html`${source}, ${time(consentedAt)}` : 'none',
        },
        ...(isMember
          ? [
              {
                label: 'Action',
                cell: ({ phone }: (typeof data)[number]) => consentForm(visit, phone),
              },
            ]
          : []),
      ],
      search
        ? 'No number that opted out contains this text.'
        : 'No number has opted out of marketing SMS. A reply of STOP opts a number out; a member can add others.',
    )}
    ${nextLink(withQuery(visit, 'before', nextCursor))}
  </section>`
}

function optOutForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'opt-out')
  return html`<details open=${refused !== null}>
    <summary>Opt a number out</summary>
    <form method="post" action=${pathOf(visit, 'suppressions/opt-out')} class="stack">
      ${field({ name: 'phone', label: 'Number', type: 'tel', refused, isRequired: true, hint: 'In E.164, such as +27821234567' })}
      <button>Opt out</button>
    </form>
  </details>`
}

/** An opt-out ends by a new consent, for which the organisation must be able to show a source. */
function consentForm(visit: Visit, phone: string): Content {
  const refused = refusedIn(visit, 'consent')
  const isRefused = refused !== null && textOf(refused.form, 'phone') === phone
  return html`<details open=${isRefused}>
    <summary>Remove</summary>
    <form method="post" action=${pathOf(visit, 'suppressions/consent') + visit.ctx.search} class="stack">
      <input type="hidden" name="phone" value=${phone} />
      <label>Source of the new consent
        <input name="source" required value=${isRefused ? textOf(refused.form, 'source') : ''} autocomplete="off" />
      </label>
      <button>Record consent</button>
    </form>
  </details>`
}
