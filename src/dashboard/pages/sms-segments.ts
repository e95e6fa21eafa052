import * as v from 'valibot'
import { smsSchema } from '../../schemas/sms.ts'
import { charactersOutsideGsm7, segmentsOf } from '../../sms/segments.ts'
import { type Content, html } from '../html.ts'
import { pathOf, type Visit } from '../page.ts'
import { count, field, PAGE_ROWS, table } from '../parts.ts'

/** As of the API. A longer text may not fit into the path of a request. */
const MAX_TEXT = 1600

/** A form that counts the segments of a text, and what it says about the text in the query. */
export function segmentsPreview(visit: Visit): Content {
  const { query } = visit
  // A browser sends line breaks as CRLF.
  const text = (query.text ?? '').replaceAll('\r\n', '\n')
  const refused = null
  return html`<section id="preview">
    <h2>Segments of a text</h2>
    <form method="get" action=${pathOf(visit, 'sms')} class="stack">
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

/** Characters that editors and phones insert by themselves, and what can replace them. */
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
