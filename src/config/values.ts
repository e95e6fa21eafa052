/** What the variables of the environment may be, each a string. Their problems never quote them. */
import { isIP } from 'node:net'
import * as v from 'valibot'
import { addressProblem } from '../db/address.ts'
import type { ClockSettings } from '../db/client.ts'
import { readSmsc } from '../providers/smpp/smsc.ts'
import { readRelay } from '../providers/smtp/relay.ts'
import { formatAddress, parseAddress } from '../schemas/address.ts'

const MAX_ITEMS = 10
const DOMAIN_NAME = /^(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)+(?!-)[a-z0-9-]{1,63}(?<!-)$/

export const folder = v.pipe(v.string(), v.minLength(1, 'must name a folder'))

export const listenAddress = v.pipe(
  v.string(),
  v.check((text) => isIP(text) !== 0 || /^[a-z0-9.-]+$/i.test(text), 'must be an address'),
)

export function integer(min: number, max: number) {
  return v.pipe(
    v.string(),
    v.regex(/^\d{1,9}$/, 'must be a whole number'),
    v.transform(Number),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

/** One of these words. */
export function word<const Words extends string>(...words: Words[]) {
  const last = words.slice(-2).join(' or ')
  return v.picklist(words, `must be ${[...words.slice(0, -2), last].join(', ')}`)
}

/** A base address: paths are put behind it. */
export const httpUrl = v.pipe(
  v.string(),
  // URL reads over line ends, blanks around and slashes left out, with which links would be broken.
  v.check(
    (text) => /^https?:\/\/[!#-;=?-~]+$/i.test(text) && URL.canParse(text),
    'must be an http or https URL',
  ),
  v.check((text) => !/^[^/]*\/\/[^/]*@/.test(text), 'must have no user and password in it'),
  v.check((text) => !/[?#]/.test(text), 'must end with its path, without ? and #'),
  v.transform((text) => text.replace(/\/+$/, '')),
)

/** Where the outside finds the service: its own paths, such as /v1, begin at the host. */
export const publicUrl = v.pipe(
  httpUrl,
  v.check((text) => /^[^/]*\/\/[^/]*$/.test(text), 'must have no path, as https://api.example.net'),
)

/** A base address behind which paths with their version are put. */
export const unversionedUrl = v.pipe(
  httpUrl,
  v.check(
    (text) => !/\/v\d+$/.test(text),
    'must end before the version, as https://api.mailgun.net',
  ),
)

export const databaseUrl = v.pipe(
  v.string(),
  v.rawCheck(({ dataset, addIssue }) => {
    const problem = dataset.typed ? addressProblem(dataset.value) : null
    if (problem !== null) addIssue({ message: problem })
  }),
)

/** What DATABASE_URL says when the embedded database is wanted. */
export const EMBEDDED = 'embedded'

/** An address of Postgres, or the word `embedded`; anything else has the problem of an address. */
export const databaseUrlOrEmbedded = v.union(
  [v.literal(EMBEDDED), databaseUrl],
  (issue) => issue.issues?.at(-1)?.message ?? issue.message,
)

export const smtpUrl = v.pipe(
  v.string(),
  v.rawCheck(({ dataset, addIssue }) => {
    const read = dataset.typed ? readRelay(dataset.value) : undefined
    if (read && 'problem' in read) addIssue({ message: read.problem })
  }),
)

/** smpp://user:password@host:port, or smpps:// over TLS; user and password are the system_id and its password. */
export const smppUrl = v.pipe(
  v.string(),
  v.rawCheck(({ dataset, addIssue }) => {
    const read = dataset.typed ? readSmsc(dataset.value) : undefined
    if (read && 'problem' in read) addIssue({ message: read.problem })
  }),
)

/** A country calling code (E.164): 27 or +27. */
export const countryCode = v.pipe(
  v.string(),
  v.regex(/^\+?[1-9]\d{0,2}$/, 'must be a country calling code of 1 to 3 digits, such as 27'),
  v.transform((text) => text.replace('+', '')),
)

/** A credential that someone else made. */
export const credential = v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,500}$/, 'must be one word'))

/** Keys of 32 bytes in base64, with commas between: one that was replaced stays behind the new one. */
export const secretKeys = list(
  (text) => /^[A-Za-z0-9+/_-]{43}=?$/.test(text),
  'must be 32 bytes in base64, or several such with commas between',
)

export const domainName = v.pipe(
  v.string(),
  v.toLowerCase(),
  v.transform((text) => text.replace(/\.$/, '')),
  v.maxLength(150, 'must have at most 150 characters'),
  v.regex(DOMAIN_NAME, 'must be a domain name'),
)

export const hostLabel = v.pipe(
  v.string(),
  v.toLowerCase(),
  v.regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'must be one label of a host name'),
)

/** An email address in its header form. */
export const mailbox = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const address = parseAddress(dataset.value)
    if (!('problem' in address)) return formatAddress(address)
    addIssue({ message: address.problem })
    return NEVER
  }),
)

/** Addresses as node:dns takes them, of IPv6 in brackets when a port follows; `sandbox` among them. */
export const dnsServers = list(
  isDnsServer,
  'must be addresses, each with a port or without, or sandbox',
)

/** POSTGRAM_NOW as settings of core.now(): a time fixes the clock, a signed duration shifts it. */
export const clockSettings = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }): ClockSettings => {
    const { value } = dataset
    const [, amount, unit] = /^([+-]\d{1,6})([smhd])$/.exec(value) ?? []
    if (amount && unit) return { 'postgram.shift': `${amount} ${UNITS[unit]}` }
    if (/^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value))) {
      return { 'postgram.now': new Date(value).toISOString() }
    }
    addIssue({ message: 'must be an ISO 8601 time, or a shift such as +36h, -5m or +2d' })
    return NEVER
  }),
)

const UNITS: Record<string, string> = { s: 'seconds', m: 'minutes', h: 'hours', d: 'days' }

/** Several values with commas between. */
function list(isOne: (text: string) => boolean, problem: string) {
  return v.pipe(
    v.string(),
    v.transform((text) => text.split(',').map((part) => part.trim())),
    v.check((items) => items.every(isOne), problem),
    v.maxLength(MAX_ITEMS, `must be at most ${MAX_ITEMS}`),
  )
}

function isDnsServer(text: string): boolean {
  if (text === 'sandbox' || isIP(text) !== 0) return true
  const [, six, four, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? []
  return isIP(six ?? four ?? '') !== 0 && Number(port) > 0 && Number(port) < 65_536
}
