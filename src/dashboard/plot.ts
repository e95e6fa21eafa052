/** Plots drawn on the server, each with its numbers as a table. */
import { type Content, html } from './html.ts'
import { count, table } from './parts.ts'

/** The colour of a part: good, bad, warn, accent or plain. */
type Tone = 'good' | 'bad' | 'warn' | 'accent' | 'plain'

type PlotDay = {
  /** The UTC day: 2026-03-01. */
  day: string
  /** The parts of its bar, from the bottom. All days have the same parts. */
  parts: readonly { name: string; value: number; tone: Tone }[]
  /** Further numbers, for the table only. */
  more?: readonly { name: string; value: number }[]
}

type BarsOptions = {
  label: string
  days: readonly PlotDay[]
  /** A value to compare the bars with, such as a limit. */
  line?: { value: number; label: string }
}

const HEIGHT = 100
const STEP = 10
const GAP = 2

/**
 * A bar for each day. The drawing stretches to the width of the page; its texts stand beside it, so that they keep
 * their size.
 */
export function bars({ label, days, line }: BarsOptions): Content {
  const highest = Math.max(0, ...days.map(totalOf))
  const scale = HEIGHT / (Math.max(highest, line?.value ?? 0) || 1)
  return html`<figure class="plot">
    ${legend(days[0]?.parts ?? [], line?.label)}
    <svg viewBox=${`0 0 ${days.length * STEP} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${label}>
      ${days.map((day, place) => column(day, place * STEP, scale))}
      ${line && horizontal(days.length * STEP, HEIGHT - line.value * scale)}
    </svg>
    <p class="plot-days"><span>${days[0]?.day}</span><span>at most ${count(highest)} a day</span><span>${days.at(-1)?.day}</span></p>
    <details>
      <summary>Numbers</summary>
      ${table(label, days.toReversed(), columnsOf(days[0]), 'There are no numbers yet.')}
    </details>
  </figure>`
}

function column(day: PlotDay, x: number, scale: number): Content {
  let top = HEIGHT
  const rects = day.parts.map(({ value, tone }) => {
    const height = value * scale
    top -= height
    return (
      height > 0 &&
      html`<rect class=${`tone-${tone}`} x=${x + GAP / 2} y=${rounded(top)} width=${STEP - GAP} height=${rounded(height)} />`
    )
  })
  const numbers = day.parts.map(({ name, value }) => `${name} ${count(value)}`).join(', ')
  return html`<g><title>${`${day.day}: ${numbers}`}</title>${rects}</g>`
}

const horizontal = (width: number, y: number) =>
  html`<line class="plot-line" x1="0" x2=${width} y1=${rounded(y)} y2=${rounded(y)} vector-effect="non-scaling-stroke" />`

function legend(parts: PlotDay['parts'], line: string | undefined): Content {
  return html`<ul class="legend">
    ${parts.map(
      ({ name, tone }) =>
        html`<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class=${`tone-${tone}`} width="10" height="10" /></svg> ${name}</li>`,
    )}
    ${line && html`<li><svg viewBox="0 0 10 10" aria-hidden="true">${horizontal(10, 5)}</svg> ${line}</li>`}
  </ul>`
}

function columnsOf(first: PlotDay | undefined) {
  const numbersOf = ({ parts, more = [] }: PlotDay) => [...parts, ...more]
  const columns = (first ? numbersOf(first) : []).map(({ name }, place) => ({
    label: name,
    cell: (day: PlotDay) => count(numbersOf(day)[place]?.value ?? 0),
    isNumber: true,
  }))
  return [{ label: 'Day', cell: ({ day }: PlotDay) => day as Content }, ...columns]
}

const totalOf = ({ parts }: PlotDay) => parts.reduce((sum, { value }) => sum + value, 0)

const rounded = (value: number) => Math.round(value * 100) / 100
