import { domainToASCII } from 'node:url'
import { parse } from 'tldts'
import * as v from 'valibot'
import { judged } from './fields.ts'

// RFC 1035 2.3.4, less room for a selector or the return-path label in front, which must fit too.
const MAX_LENGTH = 253 - 64
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const IS_NAME = new RegExp(String.raw`^(?:${LABEL}\.)+${LABEL}$`)
// Asked before domainToASCII, which would undo percent escapes and cut off what looks like a path.
const MAY_BECOME_NAME = /^[a-z0-9.-]*(?:\P{ASCII}[a-z0-9.-]*)*$/iu

const domainName = judged(v.string(), (value, report): string | undefined => {
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
  // Also of those that companies have listed: nobody holds github.io or co.za.
  const { domain } = parse(name, { allowPrivateDomains: true, validateHostname: false })
  if (domain !== null) return name
  report('is a public suffix; give a domain below it')
})

/** The body of POST /v1/domains (interface 4.4); the name comes out in lower case and ASCII (design section 8). */
export const domainSchema = v.strictObject({ name: domainName })
