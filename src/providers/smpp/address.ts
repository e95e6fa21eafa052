import { storable } from '../../storable.ts'

/** A phone's number in E.164; undefined for what is none, as a number without its country. */
export function phoneOf(address: string | undefined, ton: number | undefined): string | undefined {
  const digits = /^(?:\+|00)?([1-9]\d{6,14})$/.exec((address ?? '').trim())?.[1]
  if (!digits || ton === NATIONAL || ton === ALPHANUMERIC) return
  return `+${digits}`
}

/** One of our sender IDs: a number in E.164, a short code or a word. */
export function senderOf(address: string | undefined, ton: number | undefined): string | undefined {
  const text = storable((address ?? '').trim())
  return phoneOf(text, ton) ?? (text || undefined)
}

const NATIONAL = 2
const ALPHANUMERIC = 5
