import type { Identity } from '../providers/email.ts'

export type RecordType = 'CNAME' | 'MX' | 'TXT'

/** A record that a domain's holder is to publish, as interface 2.3 shows it. */
export type DnsRecord = {
  purpose: 'dkim' | 'mail_from_mx' | 'mail_from_spf' | 'dmarc'
  type: RecordType
  name: string
  /** Of an MX record its priority and host. */
  value: string
  required: boolean
  status: 'pending' | 'verified' | 'missing' | 'mismatch'
  /** What the last lookup found at the name. */
  found: string[]
}

/** The labels of every domain's DKIM selectors: three, so that keys change without its holder. */
export const SELECTORS = ['pg1', 'pg2', 'pg3']

/**
 * The records to publish for a sending domain, in the order of interface 4.4. A DKIM record points
 * at `<selector>.<token>.<dkimZone>`, where the key stands that the provider signs with.
 */
export function recordsOf({
  name,
  mailFromLabel,
  token,
  dkimZone,
  selectors = SELECTORS,
  identity,
}: {
  name: string
  mailFromLabel: string
  /** The domain's id without its prefix. */
  token: string
  dkimZone: string
  selectors?: readonly string[]
  identity: Pick<Identity, 'mail_from_mx' | 'mail_from_spf'>
}): DnsRecord[] {
  const mailFrom = `${mailFromLabel}.${name}`
  const { priority, host } = identity.mail_from_mx
  return [
    ...selectors.map((selector) =>
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

/** A host name in the one way it is written here; the root is a dot, as in an MX that takes no mail. */
export function hostOf(name: string): string {
  return name.toLowerCase().replace(/\.$/, '') || '.'
}
