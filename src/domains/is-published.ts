import { checkRecords, withoutBlanks } from './check-records.ts'
import type { DnsRecord } from './records.ts'
import type { Resolver } from './resolver.ts'

/**
 * Whether whoever follows a domain's DKIM record finds this key, as a receiver of its mail does.
 * Throws LookupFailed.
 */
export async function isPublished(
  record: DnsRecord,
  value: string,
  resolver: Resolver,
): Promise<boolean> {
  if (resolver.isSandbox(record.name)) {
    const { records } = await checkRecords([record], resolver)
    return records[0]?.status === 'verified'
  }
  const texts = await resolver.look(record.name, 'TXT')
  return texts.some((text) => withoutBlanks(text) === withoutBlanks(value))
}
