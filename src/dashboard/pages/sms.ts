import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, refusedIn, type Visit } from '../page.ts'
import {
  count,
  csvFileField,
  field,
  nextLink,
  pageOf,
  ROW_ID,
  shortened,
  table,
  time,
} from '../parts.ts'
import { type ConsentList, consentListOf } from './consent-list.ts'
import { segmentsPreview } from './sms-segments.ts'
import { usageSchema } from './usage.ts'

const pageSchema = v.object({
  usage: usageSchema,
  sharedSender: v.string(),
  senders: v.array(v.object({ sender: v.string(), approvedAt: v.string() })),
  consents: v.array(
    v.object({
      phone: v.string(),
      source: v.nullable(v.string()),
      consentedAt: v.nullable(v.string()),
      optedOutAt: v.nullable(v.string()),
      optedOutBy: v.nullable(v.string()),
    }),
  ),
  ledger: v.array(
    v.object({
      id: v.string(),
      at: v.string(),
      kind: v.picklist(enums.credit_kind),
      credits: v.number(),
      included: v.number(),
      balance: v.number(),
      message: v.nullable(v.string()),
      note: v.string(),
    }),
  ),
})

type Sms = v.InferOutput<typeof pageSchema>

/** What the search for consents accepts: the beginning of a number in E.164. */
const PHONE_PREFIX = /^\+\d{0,15}$/

/** Consents of one transaction. Replies from phones wait for it. */
const SLICE = 1000

/** Bad lines that the report shows. */
const MAX_SHOWN = 100

/** SMS: segments of a text, senders, consents and the ledger. */
export function smsPage(call: Call): Page {
  return {
    path: '/dashboard/:organisation/sms',

    async show(visit) {
      const { session, organisation, query } = visit
      const phone = phonePrefix(query.phone)
      const sms = v.parse(
        pageSchema,
        await call('dashboard_sms', {
          session,
          organisation,
          ...(phone !== null && { phone }),
          ...(query.after && { consents_after: query.after }),
          ...(ROW_ID.test(query.ledger ?? '') && { ledger_before: query.ledger }),
        }),
      )
      const content = html`
        ${segmentsPreview(visit)}
        ${senders(sms)}
        ${consents(visit, sms.consents)}
        ${ledger(visit, sms)}`
      return { title: 'SMS', content }
    },

    actions: {
      async import(visit, form) {
        const { session, organisation } = visit
        const list = consentListOf(form)
        const skipped = new Set<string>()
        const record = async (start: number) => {
          const slice = list.consents.slice(start, start + SLICE)
          const phones = await call('dashboard_import_consents', {
            session,
            organisation,
            phones: slice.map(({ phone }) => phone),
            sources: slice.map(({ source }) => source),
            ends_opt_outs: list.endsOptOuts,
          })
          for (const phone of phones) skipped.add(phone)
        }
        // The first slice is refused before the page begins.
        await record(0)
        const title = 'Import of consents'
        if (list.consents.length <= SLICE) return { title, content: report(visit, list, skipped) }
        return { title, content: null, pieces: pieces() }

        async function* pieces() {
          const total = list.consents.length
          for (let done = SLICE; done < total; done += SLICE) {
            yield html`<p class="progress">${count(done)} of ${count(total)} numbers</p>`
            await record(done)
          }
          yield report(visit, list, skipped)
        }
      },
    },
  }
}

/** The beginning of the numbers that are searched for; null if all are shown. */
function phonePrefix(query = ''): string | null {
  const digits = query.replace(/[\s()-]/g, '')
  if (digits === '') return null
  // A number without + is none in E.164, so nothing begins with it.
  return PHONE_PREFIX.test(digits) ? digits : '+0'
}

function senders({ senders, sharedSender }: Sms): Content {
  return html`<section id="senders">
    <h2>Senders</h2>
    <p>An SMS without <code>senderId</code> comes from the shared sender <code>${sharedSender}</code>.</p>
    ${table(
      'Senders',
      senders,
      [
        { label: 'Sender ID', cell: ({ sender }) => html`<code>${sender}</code>` },
        { label: 'Approved', cell: ({ approvedAt }) => time(approvedAt) },
      ],
      'The organisation has no sender ID of its own. Ask the operator to approve one.',
    )}
  </section>`
}

function consents(visit: Visit, consents: Sms['consents']): Content {
  const { phone = '' } = visit.query
  const { page, last } = pageOf(consents)
  const next =
    last &&
    `${pathOf(visit, 'sms')}?${new URLSearchParams({ ...(phone && { phone }), after: last.phone })}#consents`
  const empty = phone
    ? 'There is no consent or opt-out of a number that begins so.'
    : 'There are no consents. Marketing SMS need them: import the numbers of those who agreed.'
  return html`<section id="consents">
    <h2>Consents</h2>
    ${hasRole(visit, 'member') && importForm(visit)}
    <form method="get" action=${`${pathOf(visit, 'sms')}#consents`} class="row">
      ${field({
        name: 'phone',
        label: 'Number begins with',
        type: 'search',
        value: phone,
        refused: null,
      })}
      <button>Search</button>
    </form>
    ${table(
      'Consents',
      page,
      [
        { label: 'Number', cell: ({ phone }) => phone },
        { label: 'Consented', cell: ({ consentedAt }) => time(consentedAt) },
        { label: 'Source', cell: ({ source }) => html`<bdi>${source ?? '–'}</bdi>` },
        {
          label: 'Opted out',
          cell: ({ optedOutAt, optedOutBy }) =>
            optedOutAt ? html`${time(optedOutAt)}, <bdi>${optedOutBy}</bdi>` : '–',
        },
      ],
      empty,
    )}
    ${nextLink(next, 'Further numbers')}
  </section>`
}

function importForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'import')
  return html`<details open=${refused !== null}>
    <summary>Import consents</summary>
    <form method="post" action=${pathOf(visit, 'sms/import')} enctype="multipart/form-data" class="stack">
      ${field({
        name: 'lines',
        label: 'Lines of CSV',
        lines: 6,
        refused,
        hint: html`A number in E.164 and, optionally, a source: <code>+27821234567,form at acme.example</code>. At most
          100 000 lines.`,
      })}
      ${csvFileField()}
      ${field({
        name: 'source',
        label: 'Source of lines without one',
        refused,
        hint: 'Where and how these people consented. You must be able to show it.',
      })}
      <div class="choices"><label><input type="checkbox" name="endsOptOuts" value="yes" checked=${refused?.form.has('endsOptOuts')} />${' '}
        All of these consents are newer than earlier opt-outs of the same numbers, and end them</label></div>
      <button>Import consents</button>
    </form>
  </details>`
}

/** The result of an import: counts, and the first bad lines. */
function report(visit: Visit, list: ConsentList, optedOut: ReadonlySet<string>): Content {
  const skipped = list.consents
    .filter(({ phone }) => optedOut.has(phone))
    .map(({ line, phone }) => ({
      line,
      text: phone,
      reason: 'opted out earlier; tick the box only if the person agreed again',
    }))
  const bad = [...list.bad, ...skipped].sort((one, other) => one.line - other.line)
  const recorded = list.consents.length - skipped.length
  return html`
    <p role="status">${count(recorded)} of ${count(list.consents.length + list.bad.length)} lines were recorded as consents.
      ${bad.length > 0 && ` ${count(bad.length)} were not:`}</p>
    ${
      bad.length > 0 &&
      table(
        'Lines that were not recorded',
        bad.slice(0, MAX_SHOWN),
        [
          { label: 'Line', cell: ({ line }) => count(line), isNumber: true },
          { label: 'Content', cell: ({ text }) => html`<bdi>${shortened(text)}</bdi>` },
          { label: 'Reason', cell: ({ reason }) => reason },
        ],
        null,
      )
    }
    ${bad.length > MAX_SHOWN && html`<p>The first ${MAX_SHOWN} are listed.</p>`}
    <p><a href=${`${pathOf(visit, 'sms')}#consents`}>To the consents</a></p>`
}

function ledger(visit: Visit, { ledger, usage }: Sms): Content {
  const { page, last } = pageOf(ledger)
  return html`<section id="ledger">
    <h2>Ledger</h2>
    <p>Left: ${count(usage.sms.remaining)} of ${count(usage.sms.included)} segments of the plan until ${time(usage.period.end)},
      and ${count(usage.sms.credits)} credits. One credit pays for one segment.</p>
    ${table(
      'Ledger',
      page,
      [
        { label: 'Time', cell: ({ at }) => time(at) },
        { label: 'Movement', cell: ({ kind }) => kind },
        { label: 'Segments of the plan', cell: ({ included }) => signed(included), isNumber: true },
        { label: 'Credits', cell: ({ credits }) => signed(credits), isNumber: true },
        { label: 'Balance', cell: ({ balance }) => count(balance), isNumber: true },
        {
          label: 'For',
          cell: ({ message, note }) =>
            message
              ? html`<a href=${pathOf(visit, `messages/${message}`)}><code>${message}</code></a>`
              : html`<bdi>${note}</bdi>`,
        },
      ],
      'There are no movements. Each SMS that costs something, and each grant of credits, appears here.',
    )}
    ${nextLink(last && `${pathOf(visit, 'sms')}?ledger=${last.id}#ledger`)}
  </section>`
}

/** A number with its sign: +500, −1. */
const signed = (value: number) =>
  value === 0 ? '0' : `${value > 0 ? '+' : '\u2212'}${count(Math.abs(value))}`
