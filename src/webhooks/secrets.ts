import { createHash } from 'node:crypto'
import type { Secrets } from '../crypto/secrets.ts'
import type { Call } from '../db/call.ts'

/** A signing secret that none of the keys in SECRET_KEY opens. */
export class UnopenableSecret extends Error {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    super(
      `the event could not be signed: ${reason}; add the SECRET_KEY of that time after the current one, or rotate the endpoint's secret`,
      { cause },
    )
  }
}

/** Returns the signing secret in a sealed text. Throws UnopenableSecret. */
export function openSecret(secrets: Secrets, sealed: string): string {
  try {
    return secrets.open(sealed)
  } catch (error) {
    throw new UnopenableSecret(error)
  }
}

/**
 * Returns a function that seals secrets which are not sealed, and seals again those of an older
 * SECRET_KEY, at most 100 in a call. It returns how many it sealed. Calls at the same time share a run. Who can
 * read a secret before it is sealed: src/docs/security.md#webhook-signing-secrets.
 */
export function createSealer(call: Call, secrets: Secrets): () => Promise<number> {
  const [keyId = ''] = secrets.keyIds

  async function seal(): Promise<number> {
    const found = await call('secrets_to_seal', { key_ids: [...secrets.keyIds] })
    const sealed = found.flatMap(({ endpointId, secret, isSealed }) => {
      // A damaged text stays as it is: its deliveries fail and name the reason.
      if (isSealed && secrets.keyOf(secret) === null) return []
      const text = isSealed ? secrets.open(secret) : secret
      const replaced = createHash('sha256').update(secret).digest('hex')
      return [{ endpoint_id: endpointId, replaces_sha256: replaced, sealed: secrets.seal(text) }]
    })
    if (sealed.length === 0) return 0
    return call('store_sealed_secrets', { secrets: sealed, key_id: keyId })
  }

  let running: Promise<number> | undefined
  return () => {
    running ??= seal().finally(() => {
      running = undefined
    })
    return running
  }
}
