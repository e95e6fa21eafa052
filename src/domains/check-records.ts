import type { DkimKey } from '../providers/email.ts'
import { isDmarc, isPolicy } from './dmarc.ts'
import type { DnsRecord } from './records.ts'
import { LookupFailed, type Resolver } from './resolver.ts'
import { publishedInSandbox } from './sandbox-zone.ts'
import { isSpf, letsPass } from './spf.ts'

/** An answer may have 64 KB, of which a person needs to see the beginning. */
const MAX_FOUND = 10
const MAX_FOUND_LENGTH = 1000

type Key = Pick<DkimKey, 'selector' | 'value'>

/**
 * Look a domain's records up, all at the same time. A record is `verified`; `missing` when there is
 * nothing at its name; `mismatch` when there is something else, which `found` shows. One that could
 * not be looked up stays as it was and its failure is told, so that an outage is not taken for
 * absence. With the domain's keys, a DKIM name may also hold our TXT value in place of the CNAME: so
 * DNS hosts show it that resolve CNAMEs themselves.
 */
export async function checkRecords(
  records: readonly DnsRecord[],
  resolver: Resolver,
  keys: readonly Key[] = [],
): Promise<{ records: DnsRecord[]; failures: LookupFailed[] }> {
  const failures: LookupFailed[] = []
  const checked = await Promise.all(
    records.map(async (record) => {
      try {
        const [status, found] = await check(record, resolver, keys)
        const shown = found.slice(0, MAX_FOUND).map((text) => text.slice(0, MAX_FOUND_LENGTH))
        return { ...record, status, found: shown }
      } catch (error) {
        if (!(error instanceof LookupFailed)) throw error
        failures.push(error)
        return record
      }
    }),
  )
  return { records: checked, failures }
}

type Finding = [status: DnsRecord['status'], found: string[]]

async function check(
  record: DnsRecord,
  resolver: Resolver,
  keys: readonly Key[],
): Promise<Finding> {
  const { name, type, purpose } = record
  const isSandbox = resolver.isSandbox(name)
  const all = isSandbox ? publishedInSandbox(record) : await resolver.look(name, type)
  const found = aboutIt(record, all)
  if (isBalanced(record, found)) return ['verified', found]
  if (isSandbox) return notRight(found)
  if (purpose !== 'dkim') {
    // A name with a CNAME has no other records (RFC 2181 10.1), so theirs cannot be published.
    const aliases = await resolver.look(name, 'CNAME')
    return notRight([...aliases.map((target) => `CNAME ${target}`), ...found])
  }
  if (found.length > 0) return notRight(found)
  const texts = await resolver.look(name, 'TXT')
  const key = keys.find(({ selector }) => name.startsWith(`${selector}.`))
  const isOurs = texts.some((text) => key && withoutBlanks(text) === withoutBlanks(key.value))
  return isOurs ? ['verified', texts] : notRight(texts)
}

function notRight(found: string[]): Finding {
  return [found.length > 0 ? 'mismatch' : 'missing', found]
}

/** TXT records of other purposes may stand at the same name: they are shown only when ours is not there. */
function aboutIt({ purpose }: DnsRecord, found: string[]): string[] {
  if (purpose !== 'mail_from_spf' && purpose !== 'dmarc') return found
  const ours = found.filter(purpose === 'dmarc' ? isDmarc : isSpf)
  return ours.length > 0 ? ours : found
}

function isBalanced({ purpose, value }: DnsRecord, found: string[]): boolean {
  const [first = '', ...more] = found
  switch (purpose) {
    case 'dkim':
      return first === value
    case 'mail_from_mx':
      return isAmongFirst(value, found)
    // Two SPF records at a name are an error (RFC 7208 4.5), and of two DMARC records none counts
    // (RFC 7489 6.6.3).
    case 'mail_from_spf':
      return more.length === 0 && isSpf(first) && letsPass(first, value)
    case 'dmarc':
      return more.length === 0 && isPolicy(first)
  }
}

/**
 * Bounces go to the hosts with the lowest number (RFC 5321 5.1), whatever number that is, and ours
 * has to be one of them. Others may share it: a provider's second host is not known to us.
 */
function isAmongFirst(value: string, found: string[]): boolean {
  const [, ours = ''] = value.split(' ')
  const [lowest] = (found[0] ?? '').split(' ')
  return found.includes(`${lowest} ${ours}`)
}

/** A TXT value as it is compared: blanks in a key mean nothing (RFC 6376 3.2). */
export function withoutBlanks(text: string): string {
  return text.replace(/\s+/g, '')
}
