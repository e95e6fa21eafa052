import * as v from 'valibot'
import { checkedBy } from './fields.ts'

const MAX_PAGE = 200
const DEFAULT_PAGE = 50

const CURSOR = /^cur_[0-7][0-9a-hjkmnp-tv-z]{25}$/

/** A query parameter; a repeated one is an array, which is refused. */
export const parameter = v.string('must be given once')

const pageSize = checkedBy(
  v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_PAGE)),
  (value, report): number | undefined => {
    const size = /^[0-9]{1,3}$/.test(String(value)) ? Number(value) : 0
    if (size >= 1 && size <= MAX_PAGE) return size
    report(`must be a number from 1 to ${MAX_PAGE}`)
  },
)

/** The query parameters of every list that has pages. */
export const page = {
  limit: v.exactOptional(pageSize, DEFAULT_PAGE),
  cursor: v.exactOptional(
    v.pipe(parameter, v.regex(CURSOR, 'must be the nextCursor of an earlier page')),
  ),
}
