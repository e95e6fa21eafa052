import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
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

/** A row of ops.organisations. */
export const organisationRow = v.object({
  id: v.string(),
  name: v.string(),
  owner_email: v.string(),
  plan: v.string(),
  state: v.picklist(enums.organisation_state),
  state_reason: v.nullable(v.string()),
  emails_used: v.number(),
  emails_included: v.number(),
  sms_used: v.number(),
  sms_included: v.number(),
  sms_credits: v.number(),
  messages_waiting: v.number(),
  created_at: timestamp,
})
