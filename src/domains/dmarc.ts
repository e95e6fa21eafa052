/** RFC 7489 6.4: the version is the first tag; the tag's name is case-insensitive, its value is not. */
const VERSION = /^[vV][ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/
const TAG = /^([a-z0-9_]+)[ \t]*=[ \t]*(.*)$/is
const POLICY = /^(?:none|quarantine|reject)$/i
const REPORT_TO = /(?:^|,)[ \t]*mailto:[^@,\s]+@[^@,\s]+/i

/** Whether a TXT record is a DMARC record, valid or not. */
export function isDmarc(text: string): boolean {
  return VERSION.test(text)
}

/**
 * Whether receivers apply this DMARC record: it has a policy, or a report address, which counts as policy
 * none (RFC 7489 6.6.3). A repeated tag makes it invalid (RFC 6376 3.2); unknown tags are ignored.
 */
export function isPolicy(text: string): boolean {
  if (!isDmarc(text)) return false
  const tags = text.split(';').flatMap((part) => {
    const [, name = '', value = ''] = TAG.exec(part.trim()) ?? []
    return name ? [[name.toLowerCase(), value] as const] : []
  })
  const values = new Map(tags)
  if (values.size < tags.length) return false
  const hasPolicy = POLICY.test(values.get('p') ?? '') && POLICY.test(values.get('sp') ?? 'none')
  return hasPolicy || REPORT_TO.test(values.get('rua') ?? '')
}
