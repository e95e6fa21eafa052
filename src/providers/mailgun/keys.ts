import * as v from 'valibot'
import type { DkimKey } from '../../db/api.gen.ts'
import type { Rotation } from '../email.ts'
import type { Client } from './client.ts'
import { MailgunError } from './transport.ts'

/** A DKIM key at Mailgun, which does not reveal the private key. */
type Key = { selector: string; value: string; isActive: boolean }

const keySchema = v.pipe(
  v.object({
    selector: v.string(),
    dns_record: v.object({
      value: v.pipe(v.string(), v.regex(/p=\S/), v.maxLength(4000)),
      is_active: v.optional(v.boolean(), false),
    }),
  }),
  v.transform(
    ({ selector, dns_record }): Key => ({
      selector,
      value: dns_record.value,
      isActive: dns_record.is_active,
    }),
  ),
)

/** Returns a domain's keys by selector. */
export async function keysOf(client: Client, name: string): Promise<Map<string, Key>> {
  const { items } = await client.domains.domainKeys.list(name)
  return new Map(v.parse(v.array(keySchema), items).map((key) => [key.selector, key]))
}

export async function makeKey(client: Client, name: string, selector: string): Promise<Key> {
  const { domainKeys } = client.domains
  return v.parse(
    keySchema,
    await domainKeys.create({ signingDomain: name, selector, bits: '2048' }),
  )
}

/** Returns the key as Postgram stores it. */
export function dkimKey({ selector, value }: Key, state: DkimKey['state']): DkimKey {
  return { selector, state, value, private_key: null }
}

/** Activates a key; returns false if Mailgun refuses, as it does until it finds the key in DNS. */
export async function activate(client: Client, name: string, key?: Key): Promise<boolean> {
  if (!key) return false
  if (key.isActive) return true
  try {
    await client.domains.domainKeys.activate(name, key.selector)
    return true
  } catch (error) {
    if (error instanceof MailgunError && error.isRefusal) return false
    throw error
  }
}

/** Rotates the keys. Steps that are already done are skipped, so an interrupted rotation can be repeated. */
export async function rotateDkim(
  client: Client,
  name: string,
  rotation: Rotation,
): Promise<DkimKey> {
  const { domainKeys } = client.domains
  const keys = await keysOf(client, name)
  if (!(await activate(client, name, keys.get(rotation.activate)))) {
    throw new Error(`Mailgun does not sign with ${rotation.activate} yet`)
  }
  if (keys.get(rotation.retire)?.isActive) await domainKeys.deactivate(name, rotation.retire)
  if (keys.has(rotation.renew)) await domainKeys.destroy(name, rotation.renew)
  return dkimKey(await makeKey(client, name, rotation.renew), 'next')
}
