import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { respondCsv } from '../csv.ts'
import { parseForm, textOf } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type Resource, refusedIn, type Visit } from '../page.ts'
import { field, nextLink, table, time } from '../parts.ts'

/** The opt-outs that api.dashboard_suppressions and api.dashboard_export_opt_outs return. */
export const optOutsSchema = v.object({
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

type OptOuts = v.InferOutput<typeof optOutsSchema>
type OptOut = OptOuts['data'][number]

const phone = v.pipe(
  v.string(),
  // As people write numbers: +27 (82) 123-4567.
  v.transform((text) => text.replace(/[\s().-]/g, '')),
)
const optOutSchema = v.strictObject({ phone })
const consentSchema = v.strictObject({ phone, source: v.string() })

/** The actions of members on opt-outs. `back` returns the path of the list that the user sees. */
export function optOutActions(
  call: Call,
  back: (visit: Visit) => string,
): NonNullable<Page['actions']> {
  return {
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
  }
}

/** The opt-outs as CSV. */
export function optOutsResource(call: Call): Resource {
  return {
    path: '/dashboard/:organisation/suppressions/opt-outs.csv',
    async respond({ ctx, session, organisation }) {
      respondCsv(ctx, 'opt-outs.csv', OPT_OUT_COLUMNS, async (cursor) => {
        const page = await call('dashboard_export_opt_outs', { session, organisation, ...cursor })
        const { data, nextCursor } = v.parse(optOutsSchema, page)
        return { rows: data, nextCursor }
      })
    },
  }
}

const OPT_OUT_COLUMNS: Record<string, (row: OptOut) => string | null> = {
  phone: ({ phone }) => phone,
  opted_out_at: ({ optedOutAt }) => optedOutAt,
  opted_out_by: ({ optedOutBy }) => optedOutBy,
}

/** The numbers that opted out, or those that a search found. `next` is the path of the next page. */
export function optedOutNumbers(
  visit: Visit,
  { data }: OptOuts,
  search: string,
  next: string | null,
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
          ? [{ label: 'Action', cell: ({ phone }: OptOut) => consentForm(visit, phone) }]
          : []),
      ],
      search
        ? 'No number that opted out contains this text.'
        : 'No number has opted out of marketing SMS. A reply of STOP opts a number out; a member can add others.',
    )}
    ${nextLink(next)}
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
