import * as v from 'valibot'
import { checkedBy } from './fields.ts'

const FORM =
  /^(?<date>\d{4}-\d\d-\d\d)T(?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d)(?::(?<second>[0-5]\d)(?:[.,](?<fraction>\d{1,9}))?)?(?<offset>Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?$/

const EXAMPLE = '2026-07-01T09:00:00+02:00'

/**
 * Converts an ISO 8601 date and time with an offset from UTC (Z, +02, +02:00 or +0200) to UTC in milliseconds, or
 * returns its problem. Seconds are optional. Leap seconds and 24:00 are refused, because programs interpret them
 * differently.
 */
export function parseTimestamp(value: string): { utc: string } | { problem: string } {
  const groups = FORM.exec(value)?.groups
  if (!groups) return { problem: `must be an ISO 8601 timestamp, as ${EXAMPLE}` }
  const { date = '', hour, minute, second = '00', fraction = '', offset } = groups
  if (!offset) return { problem: `must have an offset from UTC, as ${EXAMPLE}` }
  const local = new Date(
    `${date}T${hour}:${minute}:${second}.${fraction.padEnd(3, '0').slice(0, 3)}Z`,
  )
  // Some engines convert 30 February to 1 or 2 March.
  const exists = !Number.isNaN(local.getTime()) && local.toISOString().startsWith(date)
  const utc = exists ? new Date(local.getTime() - minutesOf(offset) * 60_000).toISOString() : ''
  // The offset may move the year out of four digits; Postgres has no year 0.
  if (!/^(?!0000)\d{4}-/.test(utc)) return { problem: 'must be a date that exists' }
  return { utc }
}

const DATE = /^\d{4}-\d\d-\d\d$/

/** Returns whether a text has the form of a date. */
export const isDate = (text: string) => DATE.test(text)

/** Converts what parseTimestamp does, or a date, which means its start in UTC. */
export function parseMoment(value: string): ReturnType<typeof parseTimestamp> {
  return parseTimestamp(isDate(value) ? `${value}T00:00:00Z` : value)
}

/** Returns the minutes by which an offset is ahead of UTC. */
function minutesOf(offset: string): number {
  if (offset === 'Z') return 0
  const digits = offset.replaceAll(/\D/g, '')
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))
  return offset.startsWith('-') ? -minutes : minutes
}

/** A timestamp; the output is in UTC. */
export const timestamp = checkedBy(v.pipe(v.string(), v.isoTimestamp()), (value, report) => {
  if (typeof value !== 'string') {
    report('must be a string')
    return
  }
  const parsed = parseTimestamp(value)
  if ('utc' in parsed) return parsed.utc
  report(parsed.problem)
})
