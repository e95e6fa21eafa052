import type { SigningKey } from '../db/api.gen.ts'
import type { Call } from '../db/call.ts'
import type { EmailProvider, OutgoingEmail } from '../providers/email.ts'
import type { Registry } from './registry.ts'

type Signed = Pick<OutgoingEmail, 'domain' | 'dkimSelector' | 'dkimPrivateKey'>

/** Adds the DKIM key of its domain to an email, if `provider` needs one and the email has none. */
export type Signer = <Email extends Signed>(provider: EmailProvider, email: Email) => Promise<Email>

/**
 * Creates a Signer. A manually verified domain has no DKIM key before its first check, so its first email
 * makes the key. Other emails of the domain wait for the same key, and none is sent unsigned.
 */
export function createSigner(call: Call, registry: Pick<Registry, 'makeKey'>): Signer {
  const keysInProgress = new Map<string, Promise<SigningKey | undefined>>()

  async function makeKey(domain: string): Promise<SigningKey | undefined> {
    await registry.makeKey(domain)
    const [key] = await call('signing_key', { name: domain })
    return key
  }

  return async (provider, email) => {
    const { domain } = email
    if (!provider.signsHere || email.dkimSelector !== null) return email
    let making = keysInProgress.get(domain)
    if (!making) {
      making = makeKey(domain).finally(() => keysInProgress.delete(domain))
      keysInProgress.set(domain, making)
    }
    const key = await making
    return key ? { ...email, dkimSelector: key.selector, dkimPrivateKey: key.privateKey } : email
  }
}
