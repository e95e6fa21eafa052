import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { suppressionSchema } from '../../schemas/suppression.ts'
import { respondCsv } from '../csv.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type Resource, refusedIn, type Visit } from '../page.ts'
import { actionButton, field, nextLink, status, table, time } from '../parts.ts'
import { importAction, importForm, REASONS } from './suppression-import.ts'

/** The suppressions that api.dashboard_suppressions and api.dashboard_export_suppressions return. */
export const suppressionsSchema = v.object({
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

type Suppressions = v.InferOutput<typeof suppressionsSchema>
type Suppression = Suppressions['data'][number]

const deletedSchema = v.object({ email: v.string(), otherReason: v.nullable(v.string()) })

const idSchema = v.strictObject({ id: v.string() })

/** The actions of members on suppressed addresses. `back` returns the path of the list that the user sees. */
export function suppressionActions(
  call: Call,
  back: (visit: Visit) => string,
): NonNullable<Page['actions']> {
  return {
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

    import: importAction(call),

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
  }
}

/** The suppressed addresses as CSV. */
export function suppressionsResource(call: Call): Resource {
  return {
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
  }
}

const ADDRESS_COLUMNS: Record<string, (row: Suppression) => string | null> = {
  email: ({ email }) => email,
  reason: ({ reason }) => reason,
  message: ({ messageId }) => messageId,
  note: ({ note }) => note,
  created_at: ({ createdAt }) => createdAt,
}

const wordsOf = (reason: string) => reason.replace('_', ' ')

/** The suppressed addresses, or those that a search found. `next` is the path of the next page. */
export function suppressedAddresses(
  visit: Visit,
  { data }: Suppressions,
  search: string,
  next: string | null,
): Content {
  const isMember = hasRole(visit, 'member')
  const none = search
    ? next
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
    ${nextLink(next)}
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
