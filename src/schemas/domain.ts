import { domainToASCII } from 'node:url'
import { parse } from 'tldts'
import * as v from 'valibot'
import { checkedBy } from './fields.ts'

// The limit of RFC 1035, 2.3.4, minus the length of a DKIM selector or MAIL FROM label in front.
const MAX_LENGTH = 253 - 64
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const IS_NAME = new RegExp(String.raw`^(?:${LABEL}\.)+${LABEL}$`)
// Tested first, because domainToASCII decodes percent escapes and cuts off paths.
const MAY_BECOME_NAME = /^[a-z0-9.-]*(?:\P{ASCII}[a-z0-9.-]*)*$/iu

const domainName = checkedBy(v.string(), (value, report): string | undefined => {
  if (typeof value !== 'string') {
    report('must be a string')
    return
  }
  const given = value.trim().replace(/\.$/, '')
  const name = given.length <= MAX_LENGTH && MAY_BECOME_NAME.test(given) ? domainToASCII(given) : ''
  if (!IS_NAME.test(name) || name.length > MAX_LENGTH || /(?:^|\.)[0-9]+$/.test(name)) {
    report('must be a domain name, as example.com')
    return
  }
  // Private suffixes such as github.io are refused like co.za.
  const { domain } = parse(name, { allowPrivateDomains: true, validateHostname: false })
  if (domain !== null) return name
  report('is a public suffix; give a domain below it')
})

/** The body of POST /v1/domains; the output name is in lower case and ASCII. */
export const domainSchema = v.strictObject({ name: domainName })
