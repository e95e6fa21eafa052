import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import { smsSchema } from '../../schemas/sms.ts'
import { charactersOutsideGsm7, segmentsOf } from '../../sms/segments.ts'
import { readCsv } from '../../text/csv.ts'
import { type Form, parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, refusedIn, type Visit } from '../page.ts'
import { count, field, nextLink, PAGE_ROWS, table, time } from '../parts.ts'
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
      kind: v.picklist(['grant', 'sms', 'refund']),
      credits: v.number(),
      included: v.number(),
      balance: v.number(),
      message: v.nullable(v.string()),
      note: v.string(),
    }),
  ),
})

type Sms = v.InferOutput<typeof pageSchema>

const importSchema = v.strictObject({
  lines: v.string(),
  file: v.string(),
  source: v.pipe(v.string(), v.maxLength(1000, 'must be at most 1000 characters')),
  endsOptOuts: v.optional(v.literal('yes', 'must be yes or absent')),
})

/** What the search for consents accepts: the beginning of a number in E.164. */
const PHONE_PREFIX = /^\+\d{0,15}$/

/** The ID of a movement in the path of an older page. */
const ROW_ID = /^\d{1,18}$/

/** As of the API. A longer text may not fit into the path of a request. */
const MAX_TEXT = 1600

const MAX_LINES = 100_000

/** Consents of one transaction. Replies from phones wait for it. */
const SLICE = 5000

/** Bad lines that the report shows. */
const MAX_SHOWN = 100

const MAX_SOURCE_LENGTH = 1000

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
        ${preview(visit)}
        ${senders(sms)}
        ${consents(visit, sms.consents)}
        ${ledger(visit, sms)}`
      return { title: 'SMS', content }
    },

    actions: {
      async import(visit, form) {
        const { session, organisation } = visit
        const list = listOf(form)
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

function preview({ query, organisation }: Visit): Content {
  // A browser sends line breaks as CRLF.
  const text = (query.text ?? '').replaceAll('\r\n', '\n')
  const refused = null
  return html`<section id="preview">
    <h2>Segments of a text</h2>
    <form method="get" action=${`/dashboard/${organisation}/sms`} class="stack">
      ${field({ name: 'text', label: 'Text', lines: 4, value: text, refused, maxLength: MAX_TEXT, hint: 'Nothing is sent or stored.' })}
      <button>Count segments</button>
    </form>
    ${text !== '' && segments(text)}
  </section>`
}

function segments(text: string): Content {
  const { encoding, parts } = segmentsOf(text)
  const others = charactersOutsideGsm7(text)
  const { issues = [] } = v.safeParse(smsSchema.entries.body, text)
  const [is, makes] =
    others.length === 1
      ? ['This character is', 'makes']
      : [`These ${count(others.length)} characters are`, 'make']
  const capacity =
    encoding === 'gsm7'
      ? 'GSM-7: up to 160 characters in one segment, 153 in each of several.'
      : 'UCS-2: up to 70 characters in one segment, 67 in each of several.'
  return html`<div class="result" role="status">
    <p><strong>${parts.length === 1 ? '1 segment' : `${count(parts.length)} segments`}</strong>, ${capacity}</p>
    ${issues.map(({ message }) => html`<p class="problem">The API refuses this text: it ${message}.</p>`)}
    ${
      others.length > 0 &&
      html`<p>${is} not in GSM-7 and ${makes} the whole text UCS-2:</p>
        ${table(
          'Characters that are not in GSM-7',
          others.slice(0, PAGE_ROWS),
          [
            { label: 'Character', cell: (character) => html`<bdi>${visible(character)}</bdi>` },
            {
              label: 'Code point',
              cell: (character) => html`<code>${codePoint(character)}</code>`,
            },
            { label: 'Name', cell: (character) => KNOWN[character]?.name ?? '–' },
            {
              label: 'First at',
              cell: (character) => `character ${count([...text].indexOf(character) + 1)}`,
            },
            {
              label: 'In GSM-7 instead',
              cell: (character) =>
                KNOWN[character]
                  ? html`<code>${KNOWN[character].instead || 'nothing'}</code>`
                  : '–',
            },
          ],
          null,
        )}`
    }
    <ol class="parts">${parts.map((part) => html`<li><pre dir="auto">${part}</pre></li>`)}</ol>
  </div>`
}

/** Characters that editors and phones insert by themselves, and what may stand in their place. */
const KNOWN: Record<string, { name: string; instead: string }> = {
  '\u2018': { name: 'left single quotation mark', instead: "'" },
  '\u2019': { name: 'right single quotation mark', instead: "'" },
  '\u201c': { name: 'left double quotation mark', instead: '"' },
  '\u201d': { name: 'right double quotation mark', instead: '"' },
  '\u2013': { name: 'en dash', instead: '-' },
  '\u2014': { name: 'em dash', instead: '-' },
  '\u2026': { name: 'ellipsis', instead: '...' },
  '\u2022': { name: 'bullet', instead: '-' },
  '\u0060': { name: 'grave accent', instead: "'" },
  '\u00b4': { name: 'acute accent', instead: "'" },
  '\u00e7': { name: 'c with cedilla', instead: 'c' },
  '\t': { name: 'tab', instead: ' ' },
  '\u00a0': { name: 'no-break space', instead: ' ' },
  '\u202f': { name: 'narrow no-break space', instead: ' ' },
  '\u200b': { name: 'zero width space', instead: '' },
  '\u200d': { name: 'zero width joiner', instead: '' },
  '\u2060': { name: 'word joiner', instead: '' },
  '\ufeff': { name: 'byte order mark', instead: '' },
  '\ufe0f': { name: 'variation selector of an emoji', instead: '' },
}

/** A character; empty if it cannot be seen or changes the direction of what follows. */
const visible = (character: string) => (/[\p{C}\p{Z}\p{M}]/u.test(character) ? '' : character)

const codePoint = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

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
  const page = consents.slice(0, PAGE_ROWS)
  const last = page.at(-1)
  const next =
    consents.length > PAGE_ROWS && last
      ? `${pathOf(visit, 'sms')}?${new URLSearchParams({ ...(phone && { phone }), after: last.phone })}#consents`
      : null
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
      <div class="field">
        <label for="field-file">Or a CSV file</label>
        <input id="field-file" name="file" type="file" accept=".csv,.txt,text/csv,text/plain" />
      </div>
      ${field({
        name: 'source',
        label: 'Source of lines without one',
        refused,
        hint: 'Where and how these people consented. You must be able to show it.',
      })}
      <label><input type="checkbox" name="endsOptOuts" value="yes" checked=${refused?.form.has('endsOptOuts')} />
        All of these consents are newer than earlier opt-outs of the same numbers, and end them</label>
      <button>Import consents</button>
    </form>
  </details>`
}

type BadLine = { line: number; text: string; reason: string }

type ConsentList = {
  consents: { line: number; phone: string; source: string }[]
  bad: BadLine[]
  endsOptOuts: boolean
}

/** Reads the pasted or uploaded list of a form. Throws a Refusal if there is none or if it is too long. */
function listOf(form: Form): ConsentList {
  const given = parseForm(importSchema, new Map([['lines', ['']], ['file', ['']], ...form]))
  const rows = [...readCsv([given.lines, given.file].filter(Boolean).join('\n'))]
  const [first] = rows
  // A heading has no number.
  if (first && !/\d/.test(first.values[0] ?? '')) rows.shift()
  if (rows.length === 0) {
    throw new Refusal('validation_error', { lines: ['paste lines here, or choose a file'] })
  }
  if (rows.length > MAX_LINES) {
    const problem = `at most ${count(MAX_LINES)} lines at a time; the list has ${count(rows.length)}`
    throw new Refusal('validation_error', { lines: [problem] })
  }
  const lines = new Map<string, number>()
  const consents: ConsentList['consents'] = []
  const bad: BadLine[] = []
  for (const { line, values } of rows) {
    const [phone = '', own = ''] = values
    const source = own || given.source
    const reason =
      problemOf(phone, source, values.length) ??
      (lines.has(phone) ? `repeats the number of line ${lines.get(phone)}` : null)
    if (reason) {
      bad.push({ line, text: values.join(', '), reason })
    } else {
      lines.set(phone, line)
      consents.push({ line, phone, source })
    }
  }
  return { consents, bad, endsOptOuts: given.endsOptOuts === 'yes' }
}

function problemOf(phone: string, source: string, values: number): string | null {
  if (!v.is(smsSchema.entries.to, phone)) return 'is not a number in E.164, such as +27821234567'
  if (values > 2) return 'has more than two values; put a source with commas into quotation marks'
  if (source === '') return 'has no source'
  if (source.length > MAX_SOURCE_LENGTH) return 'has a source longer than 1000 characters'
  return null
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

const shortened = (text: string) =>
  text.length > 80 ? `${text.slice(0, 79).toWellFormed()}…` : text

function ledger(visit: Visit, { ledger, usage }: Sms): Content {
  const page = ledger.slice(0, PAGE_ROWS)
  const last = page.at(-1)
  const next =
    ledger.length > PAGE_ROWS && last ? `${pathOf(visit, 'sms')}?ledger=${last.id}#ledger` : null
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
    ${nextLink(next)}
  </section>`
}

/** A number with its sign: +500, −1. */
const signed = (value: number) =>
  value === 0 ? '0' : `${value > 0 ? '+' : '\u2212'}${count(Math.abs(value))}`
