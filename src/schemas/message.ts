import * as v from 'valibot'
import { line, list } from './fields.ts'

const MAX_TAGS = 10
const MAX_TAG_LENGTH = 64

export const CHANNELS = ['email', 'sms'] as const
export const CLASSES = ['transactional', 'marketing'] as const
export const MODES = ['live', 'test'] as const

export const messageClass = v.picklist(CLASSES, 'must be transactional or marketing')

export const tag = line(MAX_TAG_LENGTH)

/** The tags of both channels, which are searched together. */
export const tags = list(tag, MAX_TAGS, 'tags')
