import { DomainRefused, type Rotation } from '../providers/email.ts'
import { withoutBlanks } from './check-records.ts'
import {
  type DomainServices,
  makeIdentity,
  releaseName,
  storedKeys,
  storedRecords,
} from './identity.ts'
import { inspectDomain } from './inspect.ts'
import type { DnsRecord } from './records.ts'
import type { Resolver } from './resolver.ts'
import { publishedInSandbox } from './sandbox-zone.ts'

/** What the worker does for domains. `id` is a UUID. All but makeKey throw ProviderUnavailable. */
export function createDomainJobs(services: DomainServices) {
  const { call, provider, resolver } = services

  return {
    /** Runs a scheduled check. */
    async check(id: string) {
      const [work] = await call('domain_to_check', { id })
      if (!work) return
      const result = await inspectDomain(services, work).catch((error) => {
        if (!(error instanceof DomainRefused)) throw error
        // A retry would be refused again, so the check ends with this result.
        return { id: work.id, is_active: false, records: JSON.stringify(storedRecords(work)) }
      })
      await call('finish_check', result)
    },

    /** Makes the identity, with its DKIM keys, of a manually verified domain that was never checked. */
    async makeKey(name: string) {
      const [work] = await call('domain_to_sign', { name })
      if (!work) return
      const { records, identity } = await makeIdentity(services, work)
      await call('store_signing_key', {
        id: work.id,
        identity,
        records: JSON.stringify(records),
      })
    },

    /** Deletes the provider's identity of a name that an operator released. */
    async release(id: string) {
      const [work] = await call('begin_release', { id })
      if (work) await releaseName(services, work)
    },

    /** Rotates DKIM keys. Throws until DNS has the key to activate, as its signatures would fail. */
    async rotate(id: string, rotation: Rotation) {
      const [work] = await call('domain_to_check', { id })
      if (!work) return
      const { activate, retire } = rotation
      const host = `${activate}._domainkey.${work.name}`
      const key = storedKeys(work).find(({ selector }) => selector === activate)
      const record = storedRecords(work).find(({ name }) => name === host)
      if (!key || !record || !(await isPublished(record, key.value, resolver))) {
        throw new Error(`the key of ${host} is not in DNS yet`)
      }
      const renewed = await provider.rotateDkim(work.name, rotation)
      await call('finish_rotation', { id, activate, retire, key: renewed })
    },
  }
}

/** Whether a receiver that follows a DKIM record finds this key. Throws LookupFailed. */
async function isPublished(record: DnsRecord, value: string, resolver: Resolver): Promise<boolean> {
  if (resolver.isSandbox(record.name)) return publishedInSandbox(record).includes(record.value)
  const texts = await resolver.look(record.name, 'TXT')
  return texts.some((text) => withoutBlanks(text) === withoutBlanks(value))
}
