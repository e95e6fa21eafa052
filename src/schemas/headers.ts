import * as v from 'valibot'
import { isObject, judged, line, reportAll, reportPrototype } from './fields.ts'

// Design 8, where the interface is silent.
export const MAX_HEADERS = 50
// RFC 5322 2.1.1 wants lines of at most 78 characters; a name stands on the first with ": ".
const MAX_HEADER_NAME_LENGTH = 76
const MAX_HEADER_VALUE_LENGTH = 998
// Mailgun takes 16 KB for all that is not a body or a recipient; the rest is for tags and for the
// headers that the service sets.
const MAX_HEADERS_BYTES = 12 * 1024

// An RFC 5322 field name may have any printable character; an RFC 9110 token passes every parser.
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/
const SERVICE_HEADERS = new Set([
  'from',
  'sender',
  'to',
  'cc',
  'bcc',
  'reply-to',
  'subject',
  'date',
  'message-id',
  'dkim-signature',
  'return-path',
  'received',
  'mime-version',
  'authentication-results',
])
const SERVICE_HEADER = /^(?:content|resent|arc|x-mailgun)-/
/** What the service itself sets in marketing email (RFC 8058). */
export const UNSUBSCRIBE_HEADER = /^list-unsubscribe(?:-post)?$/i

const headerValue = line(MAX_HEADER_VALUE_LENGTH, { tabs: true })

/** Custom headers by name (interface 4.1), as they came. */
export const headers = judged(
  v.record(v.string(), v.string()),
  (value, report): Record<string, string> | undefined => {
    if (!isObject(value)) {
      report('must be an object')
      return
    }
    const names = Object.keys(value)
    if (names.length > MAX_HEADERS) report(`must have at most ${MAX_HEADERS} headers`)
    const seen = new Set<string>()
    let bytes = 0
    for (const name of names.slice(0, MAX_HEADERS)) {
      const lowered = name.toLowerCase()
      if (!HEADER_NAME.test(name)) report('must have a header name without spaces or colons', name)
      if (name.length > MAX_HEADER_NAME_LENGTH) {
        report(`must have a name of at most ${MAX_HEADER_NAME_LENGTH} characters`, name)
      }
      if (SERVICE_HEADERS.has(lowered) || SERVICE_HEADER.test(lowered)) {
        report('is set by the service and cannot be overridden', name)
      }
      if (seen.has(lowered)) report('is given twice in different case', name)
      reportPrototype(name, report)
      seen.add(lowered)
      const header = value[name]
      reportAll(headerValue, header, report, name)
      bytes += Buffer.byteLength(name)
      if (typeof header === 'string') bytes += Buffer.byteLength(header)
    }
    if (bytes > MAX_HEADERS_BYTES) report(`must be at most ${MAX_HEADERS_BYTES} bytes together`)
    return value as Record<string, string>
  },
)
