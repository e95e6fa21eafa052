import type { DkimKey, DomainWork } from '../db/api.gen.ts'
import type { Call } from '../db/call.ts'
import type { EmailProvider } from '../providers/email.ts'
import { type DnsRecord, recordsOf, SELECTORS } from './records.ts'
import type { Resolver } from './resolver.ts'

/** What the requests and jobs for sending domains need. */
export type DomainServices = {
  call: Call
  provider: EmailProvider
  resolver: Resolver
  dkimZone: string
  mailFromLabel: string
}

export type StoredKey = Pick<DkimKey, 'selector' | 'state' | 'value'>

/** Makes the sending identity at the provider, or returns the existing one, with the records to publish. */
export async function makeIdentity(
  { provider, dkimZone }: DomainServices,
  { name, mailFromLabel, token }: DomainWork,
) {
  const { keys, ...mailFrom } = await provider.createDomain({
    name,
    mailFrom: `${mailFromLabel}.${name}`,
    selectors: [...SELECTORS],
  })
  return {
    records: recordsOf({ name, mailFromLabel, token, dkimZone, identity: mailFrom }),
    identity: { provider: provider.account, dkim_zone: dkimZone, keys },
  }
}

/** Deletes the identity of a name whose claim lapsed, so that the next claim gets a new one. */
export async function releaseName(
  { call, provider }: DomainServices,
  work: DomainWork,
): Promise<void> {
  try {
    if (work.provider === provider.account) await provider.deleteDomain(work.name)
  } catch (error) {
    await call('end_release', { id: work.id, is_removed: false }).catch(() => undefined)
    throw error
  }
  await call('end_release', { id: work.id, is_removed: true })
}

export function storedRecords({ records }: DomainWork): DnsRecord[] {
  return (records ?? []) as DnsRecord[]
}

export function storedKeys({ keys }: DomainWork): StoredKey[] {
  return (keys ?? []) as StoredKey[]
}
