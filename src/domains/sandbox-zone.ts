import type { DnsRecord } from './records.ts'

/**
 * What a sandbox domain's holder has published of a record: what was asked for, so that a newcomer
 * sees a domain verified without owning one. A domain whose first label begins with `missing` has
 * nothing, and one with `wrong` has something else, as in `wrong-shop.example`.
 */
export function publishedInSandbox({ purpose, name, value }: DnsRecord): string[] {
  // Before the domain stand a selector and _domainkey, the return-path label, or _dmarc.
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
