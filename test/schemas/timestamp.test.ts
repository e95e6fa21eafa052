import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { parseTimestamp } from '../../src/schemas/timestamp.ts'

const EXAMPLE = '2026-07-01T09:00:00+02:00'
const FORM = `must be an ISO 8601 timestamp, as ${EXAMPLE}`
const OFFSET = `must have an offset from UTC, as ${EXAMPLE}`
const DATE = 'must be a date that exists'

t.test('parseTimestamp(): converts any offset to UTC', async (t) => {
  const cases: Record<string, string> = {
    '2026-07-01T09:00:00Z': '2026-07-01T09:00:00.000Z',
    '2026-07-01T09:00Z': '2026-07-01T09:00:00.000Z',
    '2026-07-01T09:00:00+02:00': '2026-07-01T07:00:00.000Z',
    '2026-07-01T09:00:00+0200': '2026-07-01T07:00:00.000Z',
    '2026-07-01T09:00:00+02': '2026-07-01T07:00:00.000Z',
    '2026-07-01T09:00+05:45': '2026-07-01T03:15:00.000Z',
    '2026-07-01T09:00-0330': '2026-07-01T12:30:00.000Z',
    '2026-07-01T09:00:00-00:00': '2026-07-01T09:00:00.000Z',
    '2026-07-01T09:00:00.1Z': '2026-07-01T09:00:00.100Z',
    '2026-07-01T09:00:00,25Z': '2026-07-01T09:00:00.250Z',
    '2026-07-01T09:00:00.123999999Z': '2026-07-01T09:00:00.123Z',
    '2026-12-31T23:30:00-01:00': '2027-01-01T00:30:00.000Z',
    '2027-01-01T00:30:00+01:00': '2026-12-31T23:30:00.000Z',
    '2028-02-29T23:59:59.999+14:00': '2028-02-29T09:59:59.999Z',
    '2028-03-01T01:00:00+02:00': '2028-02-29T23:00:00.000Z',
    '2000-02-29T00:00:00Z': '2000-02-29T00:00:00.000Z',
    '0001-01-01T00:00:00Z': '0001-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59Z': '9999-12-31T23:59:59.000Z',
  }
  for (const [value, utc] of Object.entries(cases)) {
    t.strictSame(parseTimestamp(value), { utc }, value)
  }
})

t.test('parseTimestamp(): refuses other texts with the problem', async (t) => {
  const refused: Record<string, string[]> = {
    [OFFSET]: ['2026-07-01T09:00:00', '2026-07-01T09:00', '2026-07-01T09:00:00.5'],
    [DATE]: [
      '2026-02-29T09:00:00Z',
      '2100-02-29T09:00:00Z',
      '2026-02-30T09:00:00Z',
      '2026-04-31T09:00:00+02:00',
      '2026-13-01T09:00:00Z',
      '2026-00-01T09:00:00Z',
      '2026-01-00T09:00:00Z',
      '2026-01-32T09:00:00Z',
      '0000-01-01T00:00:00Z',
      '0001-01-01T00:00:00+01:00',
      '9999-12-31T23:59:59-01:00',
    ],
    [FORM]: [
      ...['', ' ', 'now', 'tomorrow', 'infinity', '1782896400', '2026', '2026-07-01'],
      ...['2026-07-01 09:00:00Z', '2026-07-01t09:00:00z', '20260701T090000Z', '26-07-01T09:00:00Z'],
      ...[
        '2026-W27-3T09:00:00Z',
        '2026-182T09:00:00Z',
        '2026-7-1T09:00:00Z',
        '+002026-07-01T09:00Z',
      ],
      ...['2026-07-01T24:00:00Z', '2026-07-01T09:60:00Z', '2026-06-30T23:59:60Z', '2026-07-01T09Z'],
      ...['2026-07-01T09:00:00.Z', '2026-07-01T09:00.5Z', `2026-07-01T09:00:00.${'1'.repeat(10)}Z`],
      ...['2026-07-01T09:00:00+2', '2026-07-01T09:00:00+24:00', '2026-07-01T09:00:00+02:60'],
      ...['2026-07-01T09:00:00+02:0', '2026-07-01T09:00:00Z+02:00', '2026-07-01T09:00:00 Z'],
      ...['2026-07-01T09:00:00SAST', ' 2026-07-01T09:00:00Z', '2026-07-01T09:00:00Z\n'],
      ...['2026-07-01T09:00:00\u221202:00', '２０２６-07-01T09:00:00Z', `2026-07-01T09:00:00Z\0`],
    ],
  }
  for (const [problem, values] of Object.entries(refused)) {
    for (const value of values) t.strictSame(parseTimestamp(value), { problem }, value)
  }
})

const two = (n: number) => String(n).padStart(2, '0')

t.test('parseTimestamp(): parses any moment with any offset', async () => {
  const moment = fc.date({
    min: new Date('0001-01-02T00:00:00Z'),
    max: new Date('9999-12-30T00:00:00Z'),
    noInvalidDate: true,
  })
  const offset = fc.integer({ min: -(23 * 60 + 59), max: 23 * 60 + 59 })
  fc.assert(
    fc.property(moment, offset, fc.constantFrom(':', ''), (moment, minutes, colon) => {
      const local = new Date(moment.getTime() + minutes * 60_000).toISOString().slice(0, -1)
      const ahead = Math.abs(minutes)
      const sign = minutes < 0 ? '-' : '+'
      const value = `${local}${sign}${two(Math.trunc(ahead / 60))}${colon}${two(ahead % 60)}`
      assert.deepEqual(parseTimestamp(value), { utc: moment.toISOString() })
    }),
    { numRuns: 2000 },
  )
})

t.test('parseTimestamp(): accepts exactly the days of the calendar', async (t) => {
  const isLeap = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  for (const year of [1900, 2000, 2026, 2027, 2028, 2100]) {
    const months = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    const found = Array.from({ length: 14 }, (_, month) =>
      Array.from({ length: 40 }, (_, day) => `${year}-${two(month)}-${two(day)}T00:00:00Z`),
    )
      .flat()
      .filter((value) => 'utc' in parseTimestamp(value))
    const expected = months.flatMap((days, month) =>
      Array.from(
        { length: days },
        (_, day) => `${year}-${two(month + 1)}-${two(day + 1)}T00:00:00Z`,
      ),
    )
    t.strictSame(found, expected, String(year))
  }
})
