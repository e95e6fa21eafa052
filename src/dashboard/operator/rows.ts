import * as v from 'valibot'
import { type Content, html } from '../html.ts'

/** A time in a row of a view of ops, as an ISO 8601 text in UTC. */
export const timestamp = v.pipe(
  v.string(),
  v.transform((text) => new Date(text).toISOString()),
)

export const nullableTimestamp = v.nullable(timestamp)

/** A link to the operator page of an organisation. */
export const linkTo = (organisation: string): Content =>
  html`<a href=${`/operator/organisations/${organisation}`}>${organisation}</a>`
