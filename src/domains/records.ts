import type { Identity } from '../providers/email.ts'

export type RecordType = 'CNAME' | 'MX' | 'TXT'

/** A DNS record to publish, as the API shows it (src/docs/api.md#dns-record-object). */
export type DnsRecord = {
  purpose: 'dkim' | 'mail_from_mx' | 'mail_from_spf' | 'dmarc'
  type: RecordType
  name: string
  /** For an MX record its preference and host. */
  value: string
  required: boolean
  status: 'pending' | 'verified' | 'missing' | 'mismatch'
  /** What the last lookup found at the name. */
  found: string[]
  /** Why the last lookup failed; absent if it did not. Only operators see it. */
  problem?: string | undefined
}

/** The DKIM selectors of every domain. Three of them let keys rotate without new DNS records. */
export const SELECTORS = ['pg1', 'pg2', 'pg3']

/**
 * Returns the records to publish for a sending domain, in the order of the API. A DKIM record points to
 * `<selector>.<token>.<dkimZone>`, which holds the key of that selector.
 */
export function recordsOf({
  name,
  mailFromLabel,
  token,
  dkimZone,
  identity,
}: {
  name: string
  mailFromLabel: string
  /** The domain's id without its prefix. */
  token: string
  dkimZone: string
  identity: Pick<Identity, 'mail_from_mx' | 'mail_from_spf'>
}): DnsRecord[] {
  const mailFrom = `${mailFromLabel}.${name}`
  const { priority, host } = identity.mail_from_mx
  return [
    ...SELECTORS.map((selector) =>
      record('dkim', 'CNAME', `${selector}._domainkey.${name}`, `${selector}.${token}.${dkimZone}`),
    ),
    record('mail_from_mx', 'MX', mailFrom, `${priority} ${hostOf(host)}`),
    record('mail_from_spf', 'TXT', mailFrom, identity.mail_from_spf),
    record('dmarc', 'TXT', `_dmarc.${name}`, 'v=DMARC1; p=none;'),
  ]
}

function record(
  purpose: DnsRecord['purpose'],
  type: RecordType,
  name: string,
  value: string,
): DnsRecord {
  return { purpose, type, name, value, required: purpose !== 'dmarc', status: 'pending', found: [] }
}

/** Returns a host name in lower case without its final dot; '.' for the root, as in a null MX. */
export function hostOf(name: string): string {
  return name.toLowerCase().replace(/\.$/, '') || '.'
}
