import type { DkimKey } from '../db/api.gen.ts'
import { isDmarc, isPolicy } from './dmarc.ts'
import type { DnsRecord } from './records.ts'
import { LookupFailed, type Resolver } from './resolver.ts'
import { publishedInSandbox } from './sandbox-zone.ts'
import { includesSpf, isSpf } from './spf.ts'

/** A DNS response may have 64 KB; the API shows only its beginning. */
const MAX_FOUND = 10
const MAX_FOUND_LENGTH = 1000

type Key = Pick<DkimKey, 'selector' | 'value'>

/**
 * Looks up all records of a domain at the same time. A record becomes `verified`, `missing` if its name has
 * nothing, or `mismatch` if its name has something else, which `found` shows. If a lookup fails, the
 * record stays as it was, with the `problem`, so that an outage does not count as absence.
 * With `keys`, a DKIM name may also hold our TXT value in place of the CNAME: DNS hosts that resolve
 * CNAMEs themselves publish it that way.
 */
export function checkRecords(
  records: readonly DnsRecord[],
  resolver: Resolver,
  keys: readonly Key[] = [],
): Promise<DnsRecord[]> {
  return Promise.all(
    records.map(async (record) => {
      try {
        const [status, found] = await check(record, resolver, keys)
        const shown = found.slice(0, MAX_FOUND).map((text) => text.slice(0, MAX_FOUND_LENGTH))
        return { ...record, status, found: shown, problem: undefined }
      } catch (error) {
        if (!(error instanceof LookupFailed)) throw error
        return { ...record, problem: error.message }
      }
    }),
  )
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
  const found = withSamePurpose(record, all)
  if (isCorrect(record, found)) return ['verified', found]
  if (isSandbox) return incorrect(found)
  if (purpose !== 'dkim') {
    // A name with a CNAME cannot have other records (RFC 2181 10.1), so it prevents this one.
    const aliases = await resolver.look(name, 'CNAME')
    return incorrect([...aliases.map((target) => `CNAME ${target}`), ...found])
  }
  if (found.length > 0) return incorrect(found)
  const texts = await resolver.look(name, 'TXT')
  const key = keys.find(({ selector }) => name.startsWith(`${selector}.`))
  const isOurs = texts.some((text) => key && withoutBlanks(text) === withoutBlanks(key.value))
  return isOurs ? ['verified', texts] : incorrect(texts)
}

function incorrect(found: string[]): Finding {
  return [found.length > 0 ? 'mismatch' : 'missing', found]
}

/** Returns the TXT records of the same purpose; all records of the name if there are none. */
function withSamePurpose({ purpose }: DnsRecord, found: string[]): string[] {
  if (purpose !== 'mail_from_spf' && purpose !== 'dmarc') return found
  const ours = found.filter(purpose === 'dmarc' ? isDmarc : isSpf)
  return ours.length > 0 ? ours : found
}

function isCorrect({ purpose, value }: DnsRecord, found: string[]): boolean {
  const [first = '', ...more] = found
  switch (purpose) {
    case 'dkim':
      return first === value
    case 'mail_from_mx':
      return isAmongFirst(value, found)
    // Two SPF records at a name are an error (RFC 7208 4.5), and receivers ignore two DMARC records
    // (RFC 7489 6.6.3).
    case 'mail_from_spf':
      return more.length === 0 && isSpf(first) && includesSpf(first, value)
    case 'dmarc':
      return more.length === 0 && isPolicy(first)
  }
}

/**
 * Bounces go to the hosts with the lowest preference (RFC 5321 5.1), and ours must be one of them. Others may
 * have the same preference, such as the provider's second host.
 */
function isAmongFirst(value: string, found: string[]): boolean {
  const [, ours = ''] = value.split(' ')
  const [lowest] = (found[0] ?? '').split(' ')
  return found.includes(`${lowest} ${ours}`)
}

/** Returns a TXT value for comparison: blanks in a key have no meaning (RFC 6376 3.2). */
export function withoutBlanks(text: string): string {
  return text.replace(/\s+/g, '')
}
