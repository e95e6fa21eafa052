import * as v from 'valibot'
import { enums } from '../db/api.gen.ts'
import { line, list } from './fields.ts'

const MAX_TAGS = 10
const MAX_TAG_LENGTH = 64

export const messageClass = v.picklist(enums.class, 'must be transactional or marketing')

export const tag = line(MAX_TAG_LENGTH)

/** The tags of both channels, which are searched together. */
export const tags = list(tag, MAX_TAGS, 'tags')
