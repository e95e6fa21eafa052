import type { Secrets } from './crypto/secrets.ts'
import type { Call } from './db/call.ts'
import { SetupError } from './errors.ts'

/**
 * Throws SetupError when SECRET_KEY opens none of the keys and secrets that sending needs: a worker
 * would defer all mail through a relay and sign no webhook. The doctor reports a key that opens some.
 */
export async function checkSecretKey(call: Call, secrets: Secrets): Promise<void> {
  const sealed = await call('sealed_in_use', {})
  if (sealed.length === 0 || sealed.some((text) => secrets.keyOf(text) !== null)) return
  throw new SetupError(
    'SECRET_KEY: it opens nothing that is sealed in this database; set the key of that time, see /docs/deployment#secret-key',
  )
}
