/** Values of environment variables, each read from a string. Their error messages never quote a value. */
import { isIP } from 'node:net'
import * as v from 'valibot'
import { addressProblem } from '../db/address.ts'
import type { ClockSettings } from '../db/client.ts'
import { formatAddress, parseAddress } from '../schemas/address.ts'
import { httpUrl } from '../text/values.ts'

const MAX_ITEMS = 10
const DOMAIN_NAME = /^(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)+(?!-)[a-z0-9-]{1,63}(?<!-)$/

export const listenAddress = v.pipe(
  v.string(),
  v.check((text) => isIP(text) !== 0 || /^[a-z0-9.-]+$/i.test(text), 'must be an address'),
)

/** One of these words. */
export function word<const Words extends string>(...words: Words[]) {
  const last = words.slice(-2).join(' or ')
  return v.picklist(words, `must be ${[...words.slice(0, -2), last].join(', ')}`)
}

/** The address at which clients reach the service, without a path: paths such as /v1 begin at the host. */
export const publicUrl = v.pipe(
  httpUrl,
  v.check((text) => /^[^/]*\/\/[^/]*$/.test(text), 'must have no path, as https://api.example.net'),
)

export const databaseUrl = v.pipe(
  v.string(),
  v.check(
    (text) => addressProblem(text) === null,
    ({ input }) => `${addressProblem(input)}`,
  ),
)

/** The value of DATABASE_URL that selects the embedded database. */
export const EMBEDDED = 'embedded'

/** An address of Postgres, or the word `embedded`; the error message is that of an address. */
export const databaseUrlOrEmbedded = v.union(
  [v.literal(EMBEDDED), databaseUrl],
  (issue) => issue.issues?.at(-1)?.message ?? issue.message,
)

/** Keys of 32 bytes in base64, separated by commas, the one in use first. */
export const secretKeys = list(
  (text) => /^[A-Za-z0-9+/_-]{43}=?$/.test(text),
  'must be 32 bytes in base64, or several such keys separated by commas',
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

/** An email address, with a display name or without. */
export const mailbox = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const address = parseAddress(dataset.value)
    if (!('problem' in address)) return formatAddress(address)
    addIssue({ message: address.problem })
    return NEVER
  }),
)

/** Addresses as node:dns takes them (IPv6 in brackets when a port follows), and the word `sandbox`. */
export const dnsServers = list(
  isDnsServer,
  'must be IP addresses, each with or without a port, or sandbox',
)

/** POSTGRAM_NOW as settings that core.now() reads: a time fixes the clock, a signed duration shifts it. */
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

/** Several values, separated by commas. */
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
