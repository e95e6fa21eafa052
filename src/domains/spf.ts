/** RFC 7208 4.5: the version, case-insensitive, then a blank or the end. */
const VERSION = /^v=spf1(?: |$)/i
const MECHANISM =
  /^([-+?~]?)(all|(?:a|mx)(?:[:/][^ ]+)?|ptr(?::[^ ]+)?|(?:include|exists|ip4|ip6):[^ ]+)$/i
const MODIFIER = /^[a-z][a-z0-9._-]*=/i

type Mechanism = { qualifier: string; name: string }

/** Whether a TXT record is an SPF record, valid or not. */
export function isSpf(text: string): boolean {
  return VERSION.test(text)
}

/**
 * Whether an SPF record passes every sender that the mechanisms of `wanted` pass; other terms do not matter.
 * A malformed term makes the whole record invalid for receivers (RFC 7208 4.6).
 */
export function includesSpf(text: string, wanted: string): boolean {
  const terms = termsOf(text)
  if (!terms.every((term) => MECHANISM.test(term) || MODIFIER.test(term))) return false
  const mechanisms = mechanismsOf(terms)
  return mechanismsOf(termsOf(wanted)).every(({ name }) => {
    // The first match decides.
    const first = mechanisms.find((mechanism) => mechanism.name === name)
    return first?.qualifier === '+'
  })
}

function termsOf(text: string): string[] {
  return text.replace(VERSION, '').split(' ').filter(Boolean)
}

/** Returns the mechanisms before `all`; receivers ignore those after it (RFC 7208 5.1). */
function mechanismsOf(terms: string[]): Mechanism[] {
  const mechanisms = terms.flatMap((term) => {
    const [, qualifier = '', name] = MECHANISM.exec(term) ?? []
    return name
      ? [{ qualifier: qualifier || '+', name: name.toLowerCase().replace(/\.$/, '') }]
      : []
  })
  const end = mechanisms.findIndex(({ name }) => name === 'all')
  return end === -1 ? mechanisms : mechanisms.slice(0, end)
}
