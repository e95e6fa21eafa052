/** RFC 7208 4.5: the version section, a blank or the end after it, in any case of letters. */
const VERSION = /^v=spf1(?: |$)/i
const MECHANISM =
  /^([-+?~]?)(all|(?:a|mx)(?:[:/][^ ]+)?|ptr(?::[^ ]+)?|(?:include|exists|ip4|ip6):[^ ]+)$/i
const MODIFIER = /^[a-z][a-z0-9._-]*=/i

type Mechanism = { qualifier: string; name: string }

/** Whether a TXT record is an SPF record, right or wrong. */
export function isSpf(text: string): boolean {
  return VERSION.test(text)
}

/**
 * Whether an SPF record lets pass all that `wanted` lets pass by its mechanisms, whatever else it
 * says. One with a term that is none is not right: for receivers all of it is void (RFC 7208 4.6).
 */
export function letsPass(text: string, wanted: string): boolean {
  const terms = termsOf(text)
  if (!terms.every((term) => MECHANISM.test(term) || MODIFIER.test(term))) return false
  const mechanisms = mechanismsOf(terms)
  return mechanismsOf(termsOf(wanted)).every(({ name }) => {
    // The first that matches decides.
    const first = mechanisms.find((mechanism) => mechanism.name === name)
    return first?.qualifier === '+'
  })
}

function termsOf(text: string): string[] {
  return text.replace(VERSION, '').split(' ').filter(Boolean)
}

/** Those before `all`, as what comes after it is ignored (RFC 7208 5.1). */
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
