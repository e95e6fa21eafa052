import type { DomainWork, Identity } from '../db/api.gen.ts'
import { checkRecords } from './check-records.ts'
import {
  type DomainServices,
  makeIdentity,
  type StoredKey,
  storedKeys,
  storedRecords,
} from './identity.ts'
import type { DnsRecord } from './records.ts'

/**
 * Asks the provider and DNS about a domain, and returns the result as api.finish_check takes it. If the
 * provider does not have the domain, it is made there again; its owner has nothing to do.
 */
export async function inspectDomain(services: DomainServices, work: DomainWork) {
  const { provider, resolver } = services
  const checkAtProvider = (keys: StoredKey[]) =>
    provider.checkDomain(work.name, keys.find(({ state }) => state === 'active')?.selector)

  const known = storedRecords(work)
  const isMade = known.length > 0 && work.provider === provider.account
  let state = isMade ? await checkAtProvider(storedKeys(work)) : 'unknown'
  let expected = known
  let keys = storedKeys(work)
  let identity: Identity | undefined
  if (state === 'unknown') {
    const made = await makeIdentity(services, work)
    expected = made.records.map((record) => withFindings(record, known))
    keys = made.identity.keys
    identity = made.identity
    state = await checkAtProvider(keys)
  }

  const records = await checkRecords(expected, resolver, keys)
  return {
    id: work.id,
    is_active: state === 'active',
    records: JSON.stringify(records),
    ...(identity ? { identity } : {}),
  }
}

/** Returns the known record that equals this one, with its findings; otherwise the record itself. */
function withFindings(record: DnsRecord, known: readonly DnsRecord[]): DnsRecord {
  const same = known.find(
    ({ type, name, value }) =>
      type === record.type && name === record.name && value === record.value,
  )
  return same ?? record
}
