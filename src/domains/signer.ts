import type { SigningKey } from '../db/api.gen.ts'
import type { Call } from '../db/call.ts'
import type { EmailProvider, OutgoingEmail } from '../providers/email.ts'
import type { Registry } from './registry.ts'

type Signed = Pick<OutgoingEmail, 'domain' | 'dkimSelector' | 'dkimPrivateKey'>

/** Gives an email the key that signs for its domain, where `provider` has us sign and it has none yet. */
export type Signer = <Email extends Signed>(provider: EmailProvider, email: Email) => Promise<Email>

/**
 * A domain that an operator verified has no DKIM key before its first check. The first email makes it
 * instead, so that none leaves unsigned; emails that come meanwhile wait for the same key.
 */
export function createSigner(call: Call, registry: Pick<Registry, 'makeKey'>): Signer {
  const making = new Map<string, Promise<SigningKey | undefined>>()

  async function keyOf(domain: string): Promise<SigningKey | undefined> {
    await registry.makeKey(domain)
    const [key] = await call('signing_key', { name: domain })
    return key
  }

  return async (provider, email) => {
    const { domain } = email
    if (!provider.signsHere || email.dkimSelector !== null) return email
    let key = making.get(domain)
    if (!key) {
      key = keyOf(domain).finally(() => making.delete(domain))
      making.set(domain, key)
    }
    const made = await key
    return made ? { ...email, dkimSelector: made.selector, dkimPrivateKey: made.privateKey } : email
  }
}
