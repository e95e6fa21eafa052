import t from 'tap'
import { render } from '../../src/dashboard/html.ts'
import { bars } from '../../src/dashboard/plot.ts'

const parts = (good: number, bad: number) => [
  { name: 'delivered', value: good, tone: 'good' as const },
  { name: 'bounced', value: bad, tone: 'bad' as const },
]

const rectsOf = (html: string) =>
  [
    ...html.matchAll(/<rect class="([\w-]+)" x="(\d+)" y="([\d.]+)" width="8" height="([\d.]+)">/g),
  ].map(([, ...values]) => values)

t.test('bars: stacks the parts of each day on one scale, and lists the numbers', async (t) => {
  const days = [
    { day: '2026-03-01', parts: parts(30, 10) },
    { day: '2026-03-02', parts: parts(20, 0), more: [{ name: 'left', value: 1234 }] },
  ]
  const html = render(bars({ label: 'Messages "by day"', days }))
  t.same(rectsOf(html), [
    ['tone-good', '1', '25', '75'],
    ['tone-bad', '1', '0', '25'],
    ['tone-good', '11', '50', '50'],
  ])
  t.match(html, 'aria-label="Messages &quot;by day&quot;"')
  t.match(html, '<title>2026-03-01: delivered 30, bounced 10</title>')
  t.match(html, /2026-03-02.*>20<.*2026-03-01.*>30<.*>10</s, 'newest first in the table')
  t.match(html, 'at most 40 a day')
  t.notMatch(html, ' style=')
})

t.test('bars: draws a line at its value, above which no bar is cut off', async (t) => {
  const days = [{ day: '2026-03-01', parts: parts(50, 0) }]
  const above = render(bars({ label: 'x', days, line: { value: 200, label: 'the limit' } }))
  t.match(above, '<line class="plot-line" x1="0" x2="10" y1="0" y2="0"')
  t.match(above, 'the limit')
  t.same(rectsOf(above), [['tone-good', '1', '75', '25']])
  const below = render(bars({ label: 'x', days, line: { value: 10, label: 'the limit' } }))
  t.match(below, 'y1="80" y2="80"')
  t.same(rectsOf(below), [['tone-good', '1', '0', '100']])
})

t.test('bars: days without a number, and no days, have no bars', async (t) => {
  const html = render(bars({ label: 'x', days: [{ day: '2026-03-01', parts: parts(0, 0) }] }))
  t.same(rectsOf(html), [])
  t.notMatch(html, 'NaN')
  t.match(render(bars({ label: 'x', days: [] })), 'There are no numbers yet.')
})
