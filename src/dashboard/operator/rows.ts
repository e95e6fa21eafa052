import * as v from 'valibot'

/** A time in a row of a view of ops, as an ISO 8601 text in UTC. */
export const timestamp = v.pipe(
  v.string(),
  v.transform((text) => new Date(text).toISOString()),
)

export const nullableTimestamp = v.nullable(timestamp)
