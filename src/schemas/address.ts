import { domainToASCII } from 'node:url'
import { isLongerThan, tooLong } from './limits.ts'

/** A mailbox: `address` is `local@domain`; the local part is as given, the domain in lower-case ASCII. */
export type Address = { name: string | null; address: string; domain: string }

/** The reason why a text is not an address, as it appears in `fields`. */
type Problem = { problem: string }

// RFC 5322, 2.1.1 limits the line, RFC 5321, 4.5.3.1 the rest; 254 is its path without < and >.
const MAX_LENGTH = 998
const MAX_LOCAL_LENGTH = 64
const MAX_DOMAIN_LENGTH = 253
const MAX_ADDRESS_LENGTH = 254

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
const LOCAL = String.raw`${ATOM}(?:\.${ATOM})*`
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
// Without punycode and without a last label that could be a number: domainToASCII only lowers the case of
// such a domain, so it is not called.
const ORDINARY_DOMAIN = String.raw`(?:(?![Xx][Nn]--)${LABEL}\.)+(?![Xx][Nn]--|[0-9])${LABEL}`
const ORDINARY_SPEC = new RegExp(`^(${LOCAL})@(${ORDINARY_DOMAIN})$`)
const ORDINARY_NAMED = /^([A-Za-z0-9]+(?: [A-Za-z0-9]+)*) <([^<>]+)>$/

const CONTROL = /\p{Cc}/u
const [QUOTE, BACKSLASH] = [0x22, 0x5c]
/** The specials of RFC 5322, 3.2.3, without the dot, which is common in names: "Acme Inc.". */
const isSpecial = new Uint8Array(0x10000)
for (const special of '"()<>[]:;@\\,') isSpecial[special.charCodeAt(0)] = 1
const NOT_ASCII = /\P{ASCII}/u
// domainToASCII only lowers the case of any other domain.
const MAY_CHANGE_IN_ASCII = /\P{ASCII}|xn--|\.[0-9]/iu
const IS_LOCAL = new RegExp(`^${LOCAL}$`)
const IS_DOMAIN = new RegExp(String.raw`^(?:${LABEL}\.)+(?![0-9]+$)${LABEL}$`)
const MAY_BECOME_DOMAIN = /^[A-Za-z0-9.-]*(?:\P{ASCII}[A-Za-z0-9.-]*)*$/u
// A label has at most 63 characters in ASCII. The time of domainToASCII is quadratic in a label's length.
const LONG_LABEL = /[^.\u3002\uff0e\uff61]{64}/u
const NEEDS_NO_QUOTES = /^(?:[^\s\p{Cc}\p{Cs}()<>[\]:;@\\,".]| )+$/u

const NOT_AN_ADDRESS = 'must be an email address, as name@example.com or Name <name@example.com>'
const NOT_BARE = 'must be a bare email address, as name@example.com'
const NOT_ONE = 'must be one address, not a list or a group'
const QUOTE_THE_NAME = 'a name with any of ( ) < > [ ] : ; @ \\ , must be in double quotes'
const NOT_A_DOMAIN = 'must have a domain such as example.com after the @'

/**
 * Parses one mailbox of at most 998 characters, bare or as `Display Name <address>`, by RFC 5322 without its
 * comments, groups and quoted local parts. The display name may have any characters (RFC 6532); an
 * international domain becomes ASCII. A returned name is never empty. The time is linear in the length.
 */
export function parseAddress(text: string): Address | Problem {
  const ordinary = readOrdinary(text)
  if (ordinary) return ordinary
  if (text.trim() === '') return { problem: 'must not be empty' }
  if (isLongerThan(text, MAX_LENGTH)) return { problem: tooLong(MAX_LENGTH, text) }
  if (CONTROL.test(text)) return { problem: 'must not contain control characters' }
  if (!text.isWellFormed()) return { problem: 'must not contain lone surrogates' }

  const outline = readOutline(text)
  const problem = outlineProblem(outline)
  if (problem) return { problem }
  const { open, close } = outline
  const spec = readSpec(open < 0 ? text : text.slice(open + 1, close))
  if ('problem' in spec) return spec
  const name = text.slice(0, Math.max(open, 0))
  // The grammar allows a dot only after a word.
  if (/^ *\./.test(name)) return { problem: NOT_AN_ADDRESS }
  return { name: readName(name), ...spec }
}

/** Parses one mailbox like `parseAddress`, but refuses a display name and angle brackets. */
export function parseBareAddress(text: string): Address | Problem {
  if (/[<>]/.test(text)) return { problem: NOT_BARE }
  const parsed = parseAddress(text)
  return 'problem' in parsed && parsed.problem === NOT_AN_ADDRESS ? { problem: NOT_BARE } : parsed
}

/**
 * Returns the header form of a mailbox: bare without a name, otherwise `Name <address>`, with the name in double
 * quotes where RFC 5322 needs them. `parseAddress` parses it back unchanged.
 */
export function formatAddress({ name, address }: Pick<Address, 'name' | 'address'>): string {
  if (!name) return address
  if (NEEDS_NO_QUOTES.test(name)) return `${name} <${address}>`
  return `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
}

/** The syntax of a mailbox without its quoted strings. */
type Outline = {
  /** The special characters in order; a double quote is one that is not closed. */
  specials: string
  /** The positions of the first `<` and the first `>`, or -1. */
  open: number
  close: number
  /** Whether only spaces follow the first `>`. */
  isClosedAtEnd: boolean
}

function readOutline(text: string): Outline {
  let specials = ''
  let open = -1
  let close = -1
  for (let at = 0; at < text.length; at++) {
    if (isSpecial[text.charCodeAt(at)] === 0) continue
    const character = text.charAt(at)
    if (character === '"') {
      at = endOfQuoted(text, at)
      if (at < text.length) continue
    } else if (character === '<' && open < 0) open = at
    else if (character === '>' && close < 0) close = at
    specials += character
  }
  return { specials, open, close, isClosedAtEnd: /^ *$/.test(text.slice(close + 1)) }
}

/** Returns the position of the quote that closes the string that opens at `start`, or the length of the text. */
function endOfQuoted(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at
    if (code === BACKSLASH) at++
  }
  return text.length
}

function outlineProblem({ specials, close, isClosedAtEnd }: Outline): string | undefined {
  if (specials.includes('"')) return 'must not have a double quote that is not closed'
  if (/[()]/.test(specials)) return `must not have comments; ${QUOTE_THE_NAME}`
  const [, ofName] = /^([^<>]*)<[^<>]*>$/.exec(specials) ?? []
  if (ofName === undefined || !isClosedAtEnd) {
    if (/[,;]/.test(specials)) return NOT_ONE
    return close >= 0 || specials.includes('<') ? NOT_AN_ADDRESS : undefined
  }
  if (ofName.includes('@') && /[,;]/.test(ofName)) return NOT_ONE
  return /[,;:@[\]\\]/.test(ofName) ? QUOTE_THE_NAME : undefined
}

/** Returns the words of a display name without quotes, with one space between them. */
function readName(given: string): string | null {
  let name = ''
  let at = 0
  for (;;) {
    const open = given.indexOf('"', at)
    if (open < 0) break
    const close = endOfQuoted(given, open)
    name += given.slice(at, open) + unescaped(given.slice(open + 1, close))
    at = close + 1
  }
  name += given.slice(at)
  return name.replace(/ {2,}/g, ' ').trim() || null
}

function unescaped(quoted: string): string {
  return quoted.includes('\\') ? quoted.replace(/\\(.)/gsu, '$1') : quoted
}

type Spec = Omit<Address, 'name'>

/** Parses most addresses with the same result as the rest of `parseAddress`; undefined for others. */
function readOrdinary(text: string): Address | undefined {
  if (text.length > MAX_LENGTH) return
  const [, name = null, spec = text] = ORDINARY_NAMED.exec(text) ?? []
  const ordinary = readOrdinarySpec(spec)
  return ordinary && { name, address: ordinary.address, domain: ordinary.domain }
}

/** Parses ordinary addresses with the same result as `readSpec`, many times faster; undefined for others. */
function readOrdinarySpec(text: string): Spec | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return
  const [, local, domain] = ORDINARY_SPEC.exec(text) ?? []
  if (!local || !domain) return
  if (local.length > MAX_LOCAL_LENGTH || domain.length > MAX_DOMAIN_LENGTH) return
  const lowered = domain.toLowerCase()
  return { address: `${local}@${lowered}`, domain: lowered }
}

/** Parses `local@domain`, with or without spaces around it. */
function readSpec(text: string): Spec | Problem {
  const spec = text.trim()
  const ordinary = readOrdinarySpec(spec)
  if (ordinary) return ordinary
  const at = spec.lastIndexOf('@')
  const local = spec.slice(0, at)
  const domain = spec.slice(at + 1)
  if (at < 1 || domain === '') return { problem: NOT_AN_ADDRESS }
  if (local.includes('"')) return { problem: 'must not have quotes before the @' }
  if (NOT_ASCII.test(local)) return { problem: 'must have only ASCII characters before the @' }
  if (local.length > MAX_LOCAL_LENGTH) {
    return {
      problem: `must have at most ${MAX_LOCAL_LENGTH} characters before the @ but has ${local.length}`,
    }
  }
  if (!IS_LOCAL.test(local)) return { problem: NOT_AN_ADDRESS }
  if (/^\[|^[0-9.]+$/.test(domain)) return { problem: 'must not have an IP address after the @' }
  if (domain.length > MAX_DOMAIN_LENGTH) return { problem: longDomain(domain) }
  const ascii = MAY_CHANGE_IN_ASCII.test(domain) ? toAscii(domain) : domain.toLowerCase()
  if (ascii.length > MAX_DOMAIN_LENGTH) return { problem: longDomain(ascii) }
  if (!IS_DOMAIN.test(ascii)) return { problem: NOT_A_DOMAIN }
  const address = `${local}@${ascii}`
  if (address.length > MAX_ADDRESS_LENGTH) {
    return {
      problem: `must be an address of at most ${MAX_ADDRESS_LENGTH} characters but has ${address.length}`,
    }
  }
  return { address, domain: ascii }
}

function longDomain(domain: string): string {
  return `must have at most ${MAX_DOMAIN_LENGTH} characters after the @ but has ${domain.length}`
}

/** Returns the ASCII form of an international domain, or an empty string if it has none. */
function toAscii(domain: string): string {
  const composed = domain.normalize()
  // Tested first, because domainToASCII decodes percent escapes.
  const mayBecome = MAY_BECOME_DOMAIN.test(composed) && !LONG_LABEL.test(composed)
  return mayBecome ? domainToASCII(composed) : ''
}
