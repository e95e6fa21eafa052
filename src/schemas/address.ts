import { domainToASCII } from 'node:url'
import emailAddresses from 'email-addresses'

/** One mailbox: `address` is `local@domain`, its local part as given, `domain` lower-case ASCII. */
export type Address = { name: string | null; address: string; domain: string }

/** Why a text is not an address, as it is shown under the field. */
export type Problem = { problem: string }

// RFC 5322 2.1.1 for the line, RFC 5321 4.5.3.1 for the rest; 254 is its path without < and >.
const MAX_LENGTH = 998
const MAX_LOCAL_LENGTH = 64
const MAX_DOMAIN_LENGTH = 253
const MAX_ADDRESS_LENGTH = 254

// The library takes up to 4 µs a character, and one email can have 150 recipients: with this, what
// anyone can make it cost stays near 50 ms, which other requests have to wait for.
const MAX_MIXED_NAME_LENGTH = 100

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
const LOCAL = String.raw`${ATOM}(?:\.${ATOM})*`
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
// No punycode, and no last label that could be read as a number: domainToASCII would only lower
// the case of such a domain, so it need not be asked.
const ORDINARY_DOMAIN = String.raw`(?:(?![Xx][Nn]--)${LABEL}\.)+(?![Xx][Nn]--|[0-9])${LABEL}`
// Characters of an atom, or the dots that the obsolete phrase of RFC 5322 allows after the first
// word: "Acme Inc." is common without quotes.
const WORD = String.raw`[^ \p{Cc}\p{Cs}()<>[\]:;@\\,"]+`
const PHRASE = String.raw`(?!\.)${WORD}(?: +${WORD})*`
const QUOTED = String.raw`(?:[^"\\\p{Cc}\p{Cs}]|\\[^\p{Cc}\p{Cs}])*`
const NAME = `(?:(${PHRASE})|"(${QUOTED})")? *`

const BARE = new RegExp(`^(${LOCAL})@(${ORDINARY_DOMAIN})$`)
const NAMED = new RegExp(`^${NAME}<(${LOCAL})@(${ORDINARY_DOMAIN})>$`, 'u')

const IS_NAME = new RegExp(`^ *${NAME}$`, 'u')
const CONTROL = /\p{Cc}/u
// Also matches one that is not closed, so that a text of quotes is walked once.
const QUOTED_STRING = /"((?:[^"\\]|\\.)*)("|\\?$)/gsu
const ANGLE = /^([^<>]*)<([^<>]*)> *$/
const NOT_ASCII = /\P{ASCII}/u
const IS_LOCAL = new RegExp(`^${LOCAL}$`)
const IS_DOMAIN = new RegExp(String.raw`^(?:${LABEL}\.)+(?![0-9]+$)${LABEL}$`)
const MAY_BECOME_DOMAIN = /^[A-Za-z0-9.-]*(?:\P{ASCII}[A-Za-z0-9.-]*)*$/u
const NEEDS_NO_QUOTES = /^(?:[^\s\p{Cc}\p{Cs}()<>[\]:;@\\,".]| )+$/u

const NOT_AN_ADDRESS = 'must be an email address, as name@example.com or Name <name@example.com>'
const NOT_BARE = 'must be a bare email address, as name@example.com'
const NOT_ONE = 'must be one address, not a list or a group'
const QUOTE_THE_NAME = 'a name with any of ( ) < > [ ] : ; @ \\ , must be in double quotes'
const QUOTE_LONG_NAME = `a name over ${MAX_MIXED_NAME_LENGTH} characters must be in double quotes as a whole`
const LONG_DOMAIN = `must have at most ${MAX_DOMAIN_LENGTH} characters after the @`
const NOT_A_DOMAIN = 'must have a domain such as example.com after the @'

/**
 * Read one mailbox, bare or as `Display Name <address>`, by RFC 5322 without its comments, groups
 * and quoted local parts; RFC 6532 in the display name; an international domain becomes ASCII.
 * The text is at most 998 UTF-16 units long; a name that comes back is never empty.
 */
export function parseAddress(text: string): Address | Problem {
  return parseOrdinary(text) ?? parseUnusual(text)
}

/** Read one mailbox as `parseAddress` does, but without a display name and its angle brackets. */
export function parseBareAddress(text: string): Address | Problem {
  if (/[<>]/.test(text)) return { problem: NOT_BARE }
  const parsed = parseAddress(text)
  return 'problem' in parsed && parsed.problem === NOT_AN_ADDRESS ? { problem: NOT_BARE } : parsed
}

/**
 * The header form of a mailbox: bare without a name, otherwise `Name <address>` with the name in
 * double quotes when RFC 5322 asks for them. `parseAddress` reads it back unchanged.
 */
export function formatAddress({ name, address }: Pick<Address, 'name' | 'address'>): string {
  if (!name) return address
  if (NEEDS_NO_QUOTES.test(name)) return `${name} <${address}>`
  return `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
}

// Accepts a part of what the library accepts, with the same result, some eighty times faster.
function parseOrdinary(text: string): Address | undefined {
  if (text.length > MAX_LENGTH) return
  if (text.endsWith('>')) {
    const [, phrase, quoted, local, domain] = NAMED.exec(text) ?? []
    return mailbox(readName(phrase, quoted), local, domain)
  }
  const [, local, domain] = BARE.exec(text) ?? []
  return mailbox(null, local, domain)
}

function mailbox(
  name: string | null,
  local: string | undefined,
  domain: string | undefined,
): Address | undefined {
  if (!local || !domain) return
  if (local.length > MAX_LOCAL_LENGTH || domain.length > MAX_DOMAIN_LENGTH) return
  const lowered = domain.toLowerCase()
  const address = `${local}@${lowered}`
  return address.length > MAX_ADDRESS_LENGTH ? undefined : { name, address, domain: lowered }
}

function readName(phrase: string | undefined, quoted: string | undefined): string | null {
  const name = phrase ?? unescaped(quoted ?? '')
  return name.replace(/ {2,}/g, ' ').trim() || null
}

function unescaped(quoted: string): string {
  return quoted.includes('\\') ? quoted.replace(/\\(.)/gsu, '$1') : quoted
}

// Says in words what is wrong. Only a name made of several quoted and plain words is left to the
// library, when everything else is known to be right.
function parseUnusual(text: string): Address | Problem {
  if (text.trim() === '') return { problem: 'must not be empty' }
  if (text.length > MAX_LENGTH) return { problem: `must be at most ${MAX_LENGTH} characters` }
  if (CONTROL.test(text)) return { problem: 'must not contain control characters' }
  if (!text.isWellFormed()) return { problem: 'must not contain lone surrogates' }

  // Quoted strings are blotted out, so that the specials that are left are syntax.
  const outline = text.replace(QUOTED_STRING, (quoted, _, end) =>
    (end === '"' ? 'q' : '"').repeat(quoted.length),
  )
  const open = outline.indexOf('<')
  const nameLength = Math.max(open, 0)
  const problem = outlineProblem(outline, outline.slice(0, nameLength))
  if (problem) return { problem }

  const spec = readSpec(open < 0 ? text : text.slice(open + 1, outline.indexOf('>')))
  if ('problem' in spec) return spec
  const given = text.slice(0, nameLength)
  const [plain, phrase, quoted] = IS_NAME.exec(given) ?? []
  if (plain !== undefined) return { name: readName(phrase, quoted), ...spec }

  if (nameLength > MAX_MIXED_NAME_LENGTH) return { problem: QUOTE_LONG_NAME }
  // Before a short address, since only the name is still in question.
  const input = `${given}<a@b>`
  const parsed = emailAddresses.parseOneAddress({ input, rfc6532: true, startAt: 'mailbox' })
  if (parsed?.type !== 'mailbox') return { problem: NOT_AN_ADDRESS }
  // Not the library's name, which has lost the space of `"Jane" Doe`.
  const name = given.replace(QUOTED_STRING, (_, inner) => unescaped(inner))
  return { name: readName(name, undefined), ...spec }
}

function outlineProblem(outline: string, name: string): string | undefined {
  if (outline.includes('"')) return 'must not have a double quote that is not closed'
  if (/[()]/.test(outline)) return `must not have comments; ${QUOTE_THE_NAME}`
  if (!ANGLE.test(outline)) {
    if (/[,;]/.test(outline)) return NOT_ONE
    return /[<>]/.test(outline) ? NOT_AN_ADDRESS : undefined
  }
  if (name.includes('@') && /[,;]/.test(name)) return NOT_ONE
  return /[,;:@[\]\\]/.test(name) ? QUOTE_THE_NAME : undefined
}

// The spec is `local@domain`, here with spaces around it; it comes back with its domain in ASCII.
function readSpec(text: string): { address: string; domain: string } | Problem {
  const spec = text.trim()
  const at = spec.lastIndexOf('@')
  const local = spec.slice(0, at)
  const domain = spec.slice(at + 1)
  if (at < 1 || domain === '') return { problem: NOT_AN_ADDRESS }
  if (local.includes('"')) return { problem: 'must not have quotes before the @' }
  if (NOT_ASCII.test(local)) return { problem: 'must have only ASCII characters before the @' }
  if (local.length > MAX_LOCAL_LENGTH) {
    return { problem: `must have at most ${MAX_LOCAL_LENGTH} characters before the @` }
  }
  if (!IS_LOCAL.test(local)) return { problem: NOT_AN_ADDRESS }
  if (/^\[|^[0-9.]+$/.test(domain)) return { problem: 'must not have an IP address after the @' }
  if (domain.length > MAX_DOMAIN_LENGTH) return { problem: LONG_DOMAIN }
  // Asked before domainToASCII, which would undo percent escapes.
  const ascii = MAY_BECOME_DOMAIN.test(domain) ? domainToASCII(domain) : ''
  if (ascii.length > MAX_DOMAIN_LENGTH) return { problem: LONG_DOMAIN }
  if (!IS_DOMAIN.test(ascii)) return { problem: NOT_A_DOMAIN }
  const address = `${local}@${ascii}`
  if (address.length > MAX_ADDRESS_LENGTH) {
    return { problem: `must be an address of at most ${MAX_ADDRESS_LENGTH} characters` }
  }
  return { address, domain: ascii }
}
