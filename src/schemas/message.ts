import * as v from 'valibot'
import { line, list } from './fields.ts'

/** What messages of both channels have. */

const MAX_TAGS = 10
const MAX_TAG_LENGTH = 64

export const messageClass = v.picklist(
  ['transactional', 'marketing'],
  'must be transactional or marketing',
)

export type MessageClass = v.InferOutput<typeof messageClass>

// Interface 4.11 gives no length for the tags of an SMS; they are searched together with those of emails.
export const tags = list(line(MAX_TAG_LENGTH), MAX_TAGS, 'tags')
