import type { DnsRecord } from './records.ts'

/**
 * Simulates what DNS has for a record of a sandbox domain: the expected value, so that a domain can be
 * verified without owning one. A domain whose first label begins with `missing` has nothing; one that
 * begins with `wrong`, such as `wrong-shop.example`, has another value.
 */
export function publishedInSandbox({ purpose, name, value }: DnsRecord): string[] {
  // The domain follows a selector and _domainkey, or the MAIL FROM label, or _dmarc.
  const label = name.split('.')[purpose === 'dkim' ? 2 : 1] ?? ''
  if (label.startsWith('missing')) return []
  return [label.startsWith('wrong') ? wrong[purpose] : value]
}

const wrong: Record<DnsRecord['purpose'], string> = {
  dkim: 'elsewhere.example',
  mail_from_mx: '10 mx.elsewhere.example',
  mail_from_spf: 'v=spf1 include:elsewhere.example -all',
  dmarc: 'v=DMARC1',
}
